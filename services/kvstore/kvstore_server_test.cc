#include "services/kvstore/kvstore_server.h"

#include <filesystem>
#include <fstream>

#include "common/http/http_client.h"
#include "common/kv/testing/block_store_conformance.h"
#include "common/rpc/channel.h"
#include "common/rpc/remote_block_store.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/kvstore/testing/temp_folder.h"
#include "services/kvstore/testing/test_server.h"

namespace pagoda::testing {
namespace {

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

TEST(KvStoreServer, R13AReportOfABlockInBothTiersCountsOnce) {
  testing::TempFolder folder;
  auto server = *KvStoreServer::Start(WithDisk(folder.path));
  RemoteBlockStore client(PatientClient(server->grpc_address()));
  auto blocks = MakeChain(1, 12, 200'000);  // RAM holds 5
  for (const PutBlock& block : blocks) PutAndWait(client, {block});
  const BlockRef ref = blocks[5].header.ref;  // one that went to disk
  auto wait_for = [&](Held wanted) {
    auto deadline = std::chrono::steady_clock::now() + testing::kPatience;
    while (FindAndWait(client, {ref}).blocks[0] != wanted) {
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
    return true;
  };
  ASSERT_TRUE(wait_for({false, true}));
  GetAndWait(client, {ref});
  ASSERT_TRUE(wait_for({true, true}));
  client.ReportCorrupt({ref.key, 1, "the reader found other bytes"});
  ASSERT_TRUE(wait_for({false, false}));
  EXPECT_NE(MetricsOf(*server).find("pagoda:kv_corrupt_blocks_total{hop=\"reader\"} 1\n"),
            std::string::npos);
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

}  // namespace
}  // namespace pagoda::kvstore
