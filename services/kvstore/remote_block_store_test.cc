// The KV store's client against the real server, and against stores that are not what they should
// be.
#include "common/rpc/remote_block_store.h"

#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <thread>

#include "common/base/bounded_queue.h"
#include "common/base/metrics.h"
#include "common/base/testing/metric_value.h"
#include "common/base/version.h"
#include "common/kv/testing/test_blocks.h"
#include "common/rpc/channel.h"
#include "gtest/gtest.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/kvstore/testing/test_server.h"

namespace pagoda::kvstore {
namespace {

using rpc::RemoteBlockStore;
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
  std::atomic<int> gets = 0;  // calls

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
    ++gets;
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
  RemoteBlockStore::Options options = PatientClient(store.address());
  options.metrics = &metrics;
  RemoteBlockStore client(options);
  auto blocks = MakeChain(1, 1, 1000);
  store.answers = {Found(0, blocks[0])};
  auto outcome = [&] { return GetAndWait(client, RefsOf(blocks))->result(0).outcome; };
  Eventually([&] { return outcome() == GetOutcome::kFailed; });
  const int asked = store.gets;
  EXPECT_EQ(outcome(), GetOutcome::kFailed);
  EXPECT_EQ(store.gets, asked);
  EXPECT_EQ(FindAndWait(client, RefsOf(blocks)).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(PutAndWait(client, blocks)[0].status.code(), absl::StatusCode::kUnavailable);
  EXPECT_GE(testing::MetricValue(metrics, "kv_handshake_mismatches_total").value_or(0), 1);
}

TEST(RemoteBlockStore, KeepsToTheStoresLimitsWhereTheyAreSmaller) {
  LyingStore store;
  store.self.set_max_keys_per_call(1);
  store.self.set_max_message_bytes(100'000);
  RemoteBlockStore client(PatientClient(store.address()));
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
