#include "services/kvstore/kvstore_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "common/base/bounded_queue.h"
#include "common/base/metrics.h"
#include "common/base/version.h"
#include "common/http/http_client.h"
#include "common/kv/testing/block_store_conformance.h"
#include "common/rpc/channel.h"
#include "common/rpc/remote_block_store.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/kvstore/testing/temp_folder.h"

namespace pagoda::testing {
namespace {

// A silence that only ends hangs: what a test moves may take long on a slow machine.
constexpr auto kPatience = std::chrono::minutes(4);
constexpr rpc::ConnectionLimits kPatientConnection{
    .connect = kPatience, .ping_interval = kPatience, .ping_timeout = kPatience};

rpc::RemoteBlockStore::Options PatientClient(const std::string& address) {
  return {.address = address,
          .max_call = kPatience,
          .report_timeout = kPatience,
          .connection = kPatientConnection};
}

std::unique_ptr<kvstore::KvStoreServer> StartServer(uint64_t ram_bytes = 16 << 20) {
  kvstore::KvStoreServer::Options options;
  options.grpc_address = options.http_address = "127.0.0.1:0";
  options.ram_bytes = ram_bytes;
  options.streams.get_stall = options.streams.put_stall = kPatience;
  return *kvstore::KvStoreServer::Start(options);
}

// The client, and with it the server.
StoreUnderTest MakeRemote() {
  struct Both {
    std::unique_ptr<kvstore::KvStoreServer> server = StartServer();
    rpc::RemoteBlockStore client{PatientClient(server->grpc_address())};
  };
  auto both = std::make_shared<Both>();
  return {std::shared_ptr<BlockStore>(both, &both->client)};
}

INSTANTIATE_TEST_SUITE_P(Remote, BlockStoreConformance,
                         ::testing::Values(StoreFactory{"remote", MakeRemote}));

}  // namespace
}  // namespace pagoda::testing

namespace pagoda::kvstore {
namespace {

using rpc::RemoteBlockStore;
using testing::Diverge;
using testing::FindAndWait;
using testing::GetAndWait;
using testing::MakeChain;
using testing::PatientClient;
using testing::PutAndWait;
using testing::RecordingSink;
using testing::RefsOf;
using testing::StartServer;

CallContext Within(Duration time) {
  CallContext context;
  context.deadline = SystemClock::Get()->Now() + time;
  return context;
}

TEST(KvStoreServer, DescribesItsLimitsAndItself) {
  auto server = StartServer();
  auto stub =
      v1::KvStore::NewStub(rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl));
  grpc::ClientContext context;
  v1::DescribeResponse response;
  ASSERT_TRUE(stub->Describe(&context, {}, &response).ok());
  EXPECT_EQ(response.max_message_bytes(), (64u << 20) + (64u << 10));
  EXPECT_EQ(response.put_credit_bytes(), 8u << 20);
  EXPECT_EQ(response.max_keys_per_call(), kMaxBlocksPerCall);
  EXPECT_NE(response.instance_id(), 0u);
  EXPECT_EQ(response.shard_id().size(), 32u);
}

TEST(KvStoreServer, ItsStreamsKeepTheLimitsOfItsOptions) {
  KvStoreServer::Options options;
  options.grpc_address = options.http_address = "127.0.0.1:0";
  options.ram_bytes = 1 << 20;
  options.streams.put_credit_bytes = 12345;
  auto server = *KvStoreServer::Start(options);
  auto stub =
      v1::KvStore::NewStub(rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl));
  grpc::ClientContext context;
  v1::DescribeResponse response;
  ASSERT_TRUE(stub->Describe(&context, {}, &response).ok());
  EXPECT_EQ(response.put_credit_bytes(), 12345u);
}

TEST(KvStoreServer, ABlockOfTheLargestSizeGoesAndComes) {
  auto server = StartServer(uint64_t{160} << 20);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 1, kMaxPayloadBytes);
  ASSERT_EQ(PutAndWait(client, blocks)[0].outcome, PutOutcome::kStored);
  auto sink = GetAndWait(client, RefsOf(blocks), RecordingSink::Mode::kLend);
  ASSERT_EQ(sink->result(0).outcome, GetOutcome::kFound) << sink->result(0).status;
  EXPECT_EQ(sink->result(0).lent.bytes(), blocks[0].payload.bytes());
}

TEST(KvStoreServer, APutOfMoreBytesThanOneOfferMayHoldArrivesWhole) {
  auto server = StartServer(uint64_t{160} << 20);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 100, 1 << 20);  // 100 MiB: several offers
  for (const PutResult& result : PutAndWait(client, blocks)) {
    EXPECT_EQ(result.outcome, PutOutcome::kStored) << result.status;
  }
  auto sink = GetAndWait(client, RefsOf(blocks));
  for (size_t i = 0; i < blocks.size(); ++i) {
    ASSERT_EQ(sink->bytes(i), blocks[i].payload.bytes());
  }
}

TEST(KvStoreServer, AFullStoreEvictsForNewBlocks) {
  auto server = StartServer(1 << 20);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    for (const PutResult& result : PutAndWait(client, MakeChain(seed, 4, 60'000))) {
      EXPECT_TRUE(result.outcome == PutOutcome::kStored || result.outcome == PutOutcome::kNoRoom)
          << result.status;
    }
  }
  EXPECT_TRUE(FindAndWait(client, RefsOf(MakeChain(9, 4, 60'000))).blocks[0]);
}

// What is left of a chain of three runs when as many blocks of others have come as half of it.
void ExpectTheDeeperHalfGoes(RemoteBlockStore& client, const std::vector<PutBlock>& chain) {
  size_t half = chain.size() / 2;
  for (const PutResult& result : PutAndWait(client, MakeChain(99, half, 4096 - 256))) {
    ASSERT_EQ(result.outcome, PutOutcome::kStored) << result.status;
  }
  std::vector<Held> held = FindAndWait(client, RefsOf(chain)).blocks;
  for (size_t i = 0; i < chain.size(); ++i) {
    EXPECT_EQ(static_cast<bool>(held[i]), i < half) << i;
  }
}

constexpr size_t kThreeRuns = 3 * kRunBlocks;

TEST(KvStoreServer, OfAChainThatWasPutTheDeepestGoesFirst) {
  auto server = StartServer(kThreeRuns * 4096);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto chain = MakeChain(1, kThreeRuns, 4096 - 256);
  PutAndWait(client, chain);
  ExpectTheDeeperHalfGoes(client, chain);
}

TEST(KvStoreServer, OfAChainThatWasReadTheDeepestGoesFirst) {
  auto server = StartServer(kThreeRuns * 4096);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto chain = MakeChain(1, kThreeRuns, 4096 - 256);
  // Put leaf first, so that only the read can bring them into order.
  for (size_t i = chain.size(); i-- > 0;) PutAndWait(client, {chain[i]});
  auto sink = GetAndWait(client, RefsOf(chain));
  for (size_t i = 0; i < chain.size(); ++i) {
    ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound) << i;
  }
  ExpectTheDeeperHalfGoes(client, chain);
}

TEST(KvStoreServer, StatsAndMetricsTellWhatHappened) {
  auto server = StartServer();
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 3, 1000);
  PutAndWait(client, blocks);
  PutAndWait(client, {blocks[0], Diverge(blocks[1])});
  GetAndWait(client, {blocks[0].header.ref, MakeChain(2, 1, 10)[0].header.ref});
  auto stub =
      v1::KvAdmin::NewStub(rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl));
  grpc::ClientContext context;
  v1::StatsResponse stats;
  ASSERT_TRUE(stub->Stats(&context, {}, &stats).ok());
  ASSERT_EQ(stats.tiers_size(), 1);
  EXPECT_EQ(stats.tiers(0).tier(), v1::RAM);
  EXPECT_EQ(stats.tiers(0).blocks(), 3u);
  EXPECT_EQ(stats.tiers(0).bytes_limit(), 16u << 20);
  EXPECT_EQ(stats.owners(0).tenant(), "tenant");
  EXPECT_EQ(stats.owners(0).bytes(), stats.tiers(0).bytes_used());
  EXPECT_EQ(stats.divergent_puts(), 1u);
}

TEST(KvStoreServer, WhatIsNotBuiltSaysSo) {
  auto server = StartServer();
  auto channel = rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl);
  v1::PurgeResponse purged;
  grpc::ClientContext context;
  EXPECT_EQ(v1::KvAdmin::NewStub(channel)->Purge(&context, {}, &purged).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST(KvStoreServer, AReportWithoutAWholeKeyIsRefusedByName) {
  auto server = StartServer();
  auto channel = rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl);
  for (size_t bytes : {0, 31, 64}) {
    v1::ReportCorruptRequest request;
    request.set_key(std::string(bytes, 'k'));
    v1::ReportCorruptResponse response;
    grpc::ClientContext context;
    grpc::Status status =
        v1::KvStore::NewStub(channel)->ReportCorrupt(&context, request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find("key: " + std::to_string(bytes)), std::string::npos);
  }
}

KvStoreServer::Options WithDisk(const std::string& folder) {
  KvStoreServer::Options options;
  options.grpc_address = options.http_address = "127.0.0.1:0";
  options.ram_bytes = 1 << 20;
  options.data_dir = folder;
  options.disk_bytes = 64 << 20;
  options.streams.get_stall = options.streams.put_stall = testing::kPatience;
  return options;
}

std::string MetricsOf(const KvStoreServer& server) {
  auto client = *http::HttpClient::Create("http://" + server.http_address());
  return client.Get("/metrics", SystemClock::Get()->Now() + std::chrono::minutes(4))->body;
}

TEST(KvStoreServer, R70ARestartWithADataDirFindsItsBlocksAndKeepsItsName) {
  testing::TempFolder folder;
  auto blocks = MakeChain(1, 12, 200'000);  // RAM holds 5
  std::string shard_id;
  for (bool first : {true, false}) {
    auto server = *KvStoreServer::Start(WithDisk(folder.path));
    RemoteBlockStore client(PatientClient(server->grpc_address()));
    auto channel = rpc::MakeChannel(server->grpc_address(), rpc::ChannelKind::kControl);
    grpc::ClientContext a, b;
    v1::DescribeResponse self;
    ASSERT_TRUE(v1::KvStore::NewStub(channel)->Describe(&a, {}, &self).ok());
    if (first) {
      shard_id = self.shard_id();
      for (const PutBlock& block : blocks) PutAndWait(client, {block});
    } else {
      EXPECT_EQ(self.shard_id(), shard_id);
      for (Held held : FindAndWait(client, RefsOf(blocks)).blocks) {
        EXPECT_EQ(held, (Held{false, true}));
      }
      auto sink = GetAndWait(client, RefsOf(blocks));
      for (size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound);
        EXPECT_EQ(sink->bytes(i), blocks[i].payload.bytes());
      }
      EXPECT_EQ(sink->result(0).tier, Tier::kDisk);
      v1::StatsResponse stats;
      ASSERT_TRUE(v1::KvAdmin::NewStub(channel)->Stats(&b, {}, &stats).ok());
      ASSERT_EQ(stats.tiers_size(), 2);
      EXPECT_EQ(stats.tiers(1).tier(), v1::DISK);
      EXPECT_EQ(stats.tiers(1).blocks(), 12u);
      EXPECT_EQ(stats.tiers(1).bytes_limit(), 64u << 20);
    }
    server->Shutdown(std::chrono::seconds(1));
  }
}

TEST(KvStoreServer, ASecondStoreOnOneDataDirIsRefusedWithWords) {
  testing::TempFolder folder;
  auto server = *KvStoreServer::Start(WithDisk(folder.path));
  auto second = KvStoreServer::Start(WithDisk(folder.path));
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.status().message().find("--data-dir"), std::string::npos);
  EXPECT_NE(second.status().message().find("used by another store"), std::string::npos);
}

TEST(KvStoreServer, ADiskOverTheMemoryForItsIndexIsRefused) {
  testing::TempFolder folder;
  KvStoreServer::Options options = WithDisk(folder.path);
  options.disk_bytes = uint64_t{1} << 60;
  EXPECT_EQ(KvStoreServer::Start(options).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(KvStoreServer, ADatabaseThatCannotBeOpenedNeverStopsTheStore) {
  testing::TempFolder folder;
  KvStoreServer::Start(WithDisk(folder.path)).IgnoreError();
  std::ofstream(folder.path + "/v1/CURRENT") << "nonsense\n";
  std::filesystem::create_directory(folder.path + "/v2");
  auto server = KvStoreServer::Start(WithDisk(folder.path));
  ASSERT_TRUE(server.ok()) << server.status();
  RemoteBlockStore client(PatientClient((*server)->grpc_address()));
  auto blocks = MakeChain(1, 12, 200'000);
  for (const PutBlock& block : blocks) {
    EXPECT_EQ(PutAndWait(client, {block})[0].outcome, PutOutcome::kStored);
  }
  std::string text = MetricsOf(**server);
  EXPECT_EQ(text.find("pagoda:kvstore_disk_discarded_total 0"), std::string::npos) << text;
  EXPECT_FALSE(std::filesystem::exists(folder.path + "/v2"));
}

TEST(KvStoreServer, RefusesAnAddressInUseAndImpossibleMemoryByName) {
  auto server = StartServer();
  KvStoreServer::Options options;
  options.grpc_address = server->grpc_address();
  options.http_address = "127.0.0.1:0";
  options.ram_bytes = 1 << 20;
  auto second = KvStoreServer::Start(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find("grpc_address"), std::string::npos);
  options.grpc_address = "127.0.0.1:0";
  options.ram_bytes = 0;
  EXPECT_EQ(KvStoreServer::Start(options).status().code(), absl::StatusCode::kInvalidArgument);
  for (uint64_t bytes : {uint64_t{1} << 45, UINT64_MAX}) {
    options.ram_bytes = bytes;
    auto too_large = KvStoreServer::Start(options);
    EXPECT_EQ(too_large.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(too_large.status().message().find("--ram-bytes"), std::string::npos);
  }
}

TEST(RemoteBlockStore, WithoutAServerEveryCallFailsAtOnce) {
  std::string address = StartServer()->grpc_address();  // of a server that is gone
  RemoteBlockStore client(PatientClient(address));
  auto blocks = MakeChain(1, 2, 100);
  auto sink = GetAndWait(client, RefsOf(blocks));
  EXPECT_EQ(sink->result(1).outcome, GetOutcome::kFailed);
  EXPECT_EQ(sink->result(1).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PutAndWait(client, blocks)[1].outcome, PutOutcome::kFailed);
  EXPECT_EQ(FindAndWait(client, RefsOf(blocks)).status.code(), absl::StatusCode::kUnavailable);
}

TEST(RemoteBlockStore, GoesOnWhenTheServerComesBack) {
  auto server = StartServer();
  std::string address = server->grpc_address();
  RemoteBlockStore client(PatientClient(address));
  auto blocks = MakeChain(1, 2, 100);
  ASSERT_EQ(PutAndWait(client, blocks)[0].outcome, PutOutcome::kStored);
  server = nullptr;
  EXPECT_EQ(PutAndWait(client, blocks)[0].outcome, PutOutcome::kFailed);
  KvStoreServer::Options options;
  options.grpc_address = address;
  options.http_address = "127.0.0.1:0";
  options.ram_bytes = 1 << 20;
  server = *KvStoreServer::Start(options);
  // The back-off ends within 2 s; until then calls fail at once.
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  PutOutcome outcome = PutOutcome::kFailed;
  while (outcome == PutOutcome::kFailed && SystemClock::Get()->Now() < limit) {
    outcome = PutAndWait(client, {blocks[0]})[0].outcome;
  }
  EXPECT_EQ(outcome, PutOutcome::kStored) << "a new store knows nothing of the old one's blocks";
}

TEST(RemoteBlockStore, AServerThatEndsInMidGetLeavesAPrefixOfExactBlocks) {
  auto server = StartServer(uint64_t{64} << 20);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 40, 1 << 20);
  PutAndWait(client, blocks);
  std::thread killer;
  auto kill_at_fifth = [&](size_t index, const RecordHeader&) {
    if (index == 5) killer = std::thread([&] { server->Shutdown(Duration::zero()); });
    return absl::OkStatus();
  };
  auto sink = GetAndWait(client, RefsOf(blocks), RecordingSink::Mode::kMemory, {}, kill_at_fifth);
  killer.join();
  ASSERT_TRUE(sink->EachDoneOnce());
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (sink->result(i).outcome == GetOutcome::kFound) {
      ASSERT_EQ(sink->bytes(i), blocks[i].payload.bytes());
    } else {
      EXPECT_EQ(sink->result(i).outcome, GetOutcome::kFailed);
    }
  }
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFound);
}

TEST(RemoteBlockStore, AServerThatEndsInMidPutFailsTheRest) {
  auto server = StartServer(uint64_t{256} << 20);
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 160, 1 << 20);
  std::atomic<bool> answered{false};
  std::vector<PutResult> results;
  std::thread putter([&] {
    results = PutAndWait(client, blocks);
    answered = true;
  });
  RemoteBlockStore other(PatientClient(server->grpc_address()));
  while (!answered && !FindAndWait(other, {blocks[3].header.ref}).blocks[0]) {
  }
  server->Shutdown(Duration::zero());
  putter.join();
  ASSERT_EQ(results.size(), blocks.size());
  for (const PutResult& result : results) {
    EXPECT_TRUE(result.outcome == PutOutcome::kStored || result.outcome == PutOutcome::kFailed);
  }
}

TEST(RemoteBlockStore, ACallIsNotHeldLongerThanItsDeadline) {
  // Listens and accepts, but nobody speaks gRPC there.
  auto silent = StartServer();
  RemoteBlockStore client(PatientClient(silent->http_address()));
  auto blocks = MakeChain(1, 2, 100);
  auto sink = GetAndWait(client, RefsOf(blocks), RecordingSink::Mode::kMemory,
                         Within(std::chrono::milliseconds(100)));
  EXPECT_EQ(sink->result(0).outcome, GetOutcome::kFailed);
  EXPECT_EQ(PutAndWait(client, blocks, Within(std::chrono::milliseconds(100)))[0].outcome,
            PutOutcome::kFailed);
}

TEST(RemoteBlockStore, ItsEndCallsOffWhatRuns) {
  auto server = StartServer(uint64_t{64} << 20);
  auto client = std::make_unique<RemoteBlockStore>(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 40, 1 << 20);
  PutAndWait(*client, blocks);
  auto sink = std::make_shared<RecordingSink>(blocks.size(), RecordingSink::Mode::kMemory);
  client->Get({}, RefsOf(blocks), sink);
  client = nullptr;
  ASSERT_TRUE(sink->Wait(Duration::zero())) << "every answer came before the end";
  EXPECT_TRUE(sink->EachDoneOnce());
}

TEST(RemoteBlockStore, RunningPutsAreBoundedInBytes) {
  auto server = StartServer();
  auto options = PatientClient(server->grpc_address());
  options.max_put_bytes = 1000;
  RemoteBlockStore client(options);
  auto large = MakeChain(1, 1, 3000);
  EXPECT_EQ(PutAndWait(client, large)[0].outcome, PutOutcome::kStored) << "one may always run";
  options.max_gets = 0;
  RemoteBlockStore none(options);
  EXPECT_EQ(GetAndWait(none, RefsOf(large))->result(0).status.code(),
            absl::StatusCode::kResourceExhausted);
}

// A store that answers Get as it is told, and says of itself what it is told.
class LyingStore final : public v1::KvStore::Service {
 public:
  std::vector<v1::GetResponse> answers;
  v1::DescribeResponse self;
  BoundedQueue<v1::ReportCorruptRequest> reports{100};

  LyingStore() {
    self.mutable_protocol()->set_min(kProtocolMin);
    self.mutable_protocol()->set_max(kProtocolMax);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  grpc::Status Describe(grpc::ServerContext*, const v1::DescribeRequest*,
                        v1::DescribeResponse* response) override {
    *response = self;
    return grpc::Status::OK;
  }
  grpc::Status Get(grpc::ServerContext*, const v1::GetRequest*,
                   grpc::ServerWriter<v1::GetResponse>* writer) override {
    for (const v1::GetResponse& answer : answers) writer->Write(answer);
    return grpc::Status::OK;
  }
  grpc::Status ReportCorrupt(grpc::ServerContext*, const v1::ReportCorruptRequest* report,
                             v1::ReportCorruptResponse*) override {
    reports.TryPush(v1::ReportCorruptRequest(*report));
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

v1::GetResponse Found(uint32_t index, const PutBlock& block) {
  v1::GetResponse answer;
  answer.set_index(index);
  answer.set_outcome(v1::GetResponse::FOUND);
  answer.set_tier(v1::RAM);
  answer.set_header(EncodeHeader(block.header));
  answer.set_payload(std::string(block.payload.bytes()));
  return answer;
}

TEST(RemoteBlockStore, BytesThatChangedOnTheWayAreCorruptCountedAndTheRestIsUsed) {
  LyingStore store;
  Metrics metrics;
  auto options = PatientClient(store.address());
  options.metrics = &metrics;
  RemoteBlockStore client(options);
  auto blocks = MakeChain(1, 6, 1000);
  for (uint32_t i = 0; i < 6; ++i) store.answers.push_back(Found(i, blocks[i]));
  (*store.answers[1].mutable_payload())[500] ^= 1;
  (*store.answers[2].mutable_header())[100] ^= 1;
  store.answers[3].mutable_payload()->pop_back();
  *store.answers[4].mutable_header() = EncodeHeader(blocks[5].header);  // another block
  auto sink = GetAndWait(client, RefsOf(blocks));
  ASSERT_TRUE(sink->EachDoneOnce());
  EXPECT_EQ(sink->bytes(0), blocks[0].payload.bytes());
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(sink->result(i).outcome, GetOutcome::kCorrupt) << i;
  EXPECT_EQ(sink->bytes(5), blocks[5].payload.bytes());
  EXPECT_NE(metrics.Render().find("pagoda:kv_corrupt_blocks_total{hop=\"get\"} 4"),
            std::string::npos);
  // Each is reported, once, with its producer where the header could be trusted.
  std::map<std::string, uint64_t> reported;
  for (int i = 0; i < 4; ++i) {
    std::optional<v1::ReportCorruptRequest> report = store.reports.Pop();
    EXPECT_FALSE(report->reason().empty());
    EXPECT_TRUE(reported.emplace(report->key(), report->producer_instance_id()).second);
  }
  for (size_t i = 1; i < 5; ++i) {
    std::string key(blocks[i].header.ref.key.view());
    ASSERT_TRUE(reported.count(key)) << i;
    EXPECT_EQ(reported[key], i == 2 ? 0 : blocks[i].header.producer_instance) << i;
  }
}

// Calls `done` until it is true; only a hang ends it otherwise.
void Eventually(const std::function<bool()>& done) {
  TimePoint limit = SystemClock::Get()->Now() + std::chrono::minutes(4);
  while (!done() && SystemClock::Get()->Now() < limit) std::this_thread::yield();
}

TEST(RemoteBlockStore, R25AStoreOfAForeignProtocolIsAskedForNothing) {
  LyingStore store;
  store.self.mutable_protocol()->set_min(kProtocolMax + 1);
  store.self.mutable_protocol()->set_max(kProtocolMax + 1);
  Metrics metrics;
  RemoteBlockStore client({.address = store.address(), .metrics = &metrics});
  auto blocks = MakeChain(1, 1, 1000);
  store.answers = {Found(0, blocks[0])};
  auto outcome = [&] { return GetAndWait(client, RefsOf(blocks))->result(0).outcome; };
  Eventually([&] { return outcome() == GetOutcome::kFailed; });
  EXPECT_EQ(outcome(), GetOutcome::kFailed);
  EXPECT_EQ(FindAndWait(client, RefsOf(blocks)).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PutAndWait(client, blocks)[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(metrics.Render().find("kv_handshake_mismatches_total 0"), std::string::npos);
}

TEST(RemoteBlockStore, KeepsToTheStoresLimitsWhereTheyAreSmaller) {
  LyingStore store;
  store.self.set_max_keys_per_call(1);
  store.self.set_max_message_bytes(100'000);
  RemoteBlockStore client({.address = store.address()});
  auto blocks = MakeChain(1, 2, 50'000);  // with the largest header one of them is over the limit
  Eventually([&] {
    return FindAndWait(client, RefsOf(blocks)).status.code() == absl::StatusCode::kInvalidArgument;
  });
  EXPECT_EQ(GetAndWait(client, RefsOf(blocks))->result(0).status.code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PutAndWait(client, {blocks[0]})[0].status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(RemoteBlockStore, WhatTheStoreItselfFoundCorruptIsNotReportedBack) {
  LyingStore store;
  RemoteBlockStore client(PatientClient(store.address()));
  auto blocks = MakeChain(1, 2, 1000);
  store.answers = {Found(0, blocks[0]), Found(1, blocks[1])};
  store.answers[0].set_outcome(v1::GetResponse::CORRUPT);
  (*store.answers[1].mutable_payload())[0] ^= 1;
  GetAndWait(client, RefsOf(blocks));
  EXPECT_EQ(store.reports.Pop()->key(), blocks[1].header.ref.key.view());
  EXPECT_EQ(store.reports.size(), 0u);
}

TEST(RemoteBlockStore, AHeaderOfAnUnknownVersionIsAMiss) {
  LyingStore store;
  RemoteBlockStore client(PatientClient(store.address()));
  auto blocks = MakeChain(1, 1, 1000);
  store.answers = {Found(0, blocks[0])};
  (*store.answers[0].mutable_header())[4] = 9;
  EXPECT_EQ(GetAndWait(client, RefsOf(blocks))->result(0).outcome, GetOutcome::kMissing);
}

TEST(RemoteBlockStore, AStreamThatStopsEarlyOrLosesItsOrderFailsTheRest) {
  LyingStore store;
  RemoteBlockStore client(PatientClient(store.address()));
  auto blocks = MakeChain(1, 4, 1000);
  store.answers = {Found(0, blocks[0]), Found(1, blocks[1])};
  auto early = GetAndWait(client, RefsOf(blocks));
  ASSERT_TRUE(early->EachDoneOnce());
  EXPECT_EQ(early->result(1).outcome, GetOutcome::kFound);
  EXPECT_EQ(early->result(2).outcome, GetOutcome::kFailed);
  store.answers = {Found(0, blocks[0]), Found(3, blocks[3]), Found(1, blocks[1])};
  auto disordered = GetAndWait(client, RefsOf(blocks));
  ASSERT_TRUE(disordered->EachDoneOnce());
  EXPECT_EQ(disordered->result(0).outcome, GetOutcome::kFound);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(disordered->result(i).outcome, GetOutcome::kFailed);
    EXPECT_EQ(disordered->result(i).status.code(), absl::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace pagoda::kvstore
