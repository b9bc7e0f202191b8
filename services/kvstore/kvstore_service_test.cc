// The wire protocol, spoken by plain generated clients: what any protobuf client may do, and what
// none may.
#include "services/kvstore/kvstore_service.h"

#include <grpcpp/create_channel.h>

#include <algorithm>
#include <future>
#include <memory>
#include <thread>

#include "common/base/random.h"
#include "common/base/testing/metric_value.h"
#include "common/kv/testing/test_blocks.h"
#include "common/rpc/block_wire.h"
#include "common/rpc/channel.h"
#include "common/rpc/remote_block_store.h"
#include "common/rpc/server.h"
#include "gtest/gtest.h"
#include "services/kvstore/put_stream.h"
#include "services/kvstore/ram_tier.h"

namespace pagoda::kvstore {
namespace {

using testing::Diverge;
using testing::MakeChain;
using testing::PutAndWait;
using testing::RefsOf;

constexpr auto kLimit = std::chrono::minutes(4);  // only ends hangs
// As patient: what a test moves may take long on a slow machine.
constexpr StreamLimits kPatient{.get_stall = kLimit, .put_stall = kLimit};
constexpr rpc::ConnectionLimits kPatientConnection{
    .connect = kLimit, .ping_interval = kLimit, .ping_timeout = kLimit};

// A store with chosen limits, and a client of its own connection.
class KvStoreServiceTest : public ::testing::Test {
 protected:
  void StartWith(StreamLimits limits, uint64_t ram_bytes = 16 << 20) {
    tier_ = *RamTier::Create({.bytes = ram_bytes, .policy = nullptr, .metrics = &metrics_});
    budgets_ = std::make_unique<ConnectionBudgets>(limits.inflight_bytes, watch_.Waker());
    context_ = std::make_unique<StreamContext>(
        StreamContext{*tier_, store_metrics_, watch_, *budgets_, *SystemClock::Get(), limits});
    service_ = std::make_unique<KvStoreService>(*context_, KvStoreService::Identity{"shard", 1});
    server_ = *rpc::Server::Start({.address = "127.0.0.1:0",
                                   .services = {service_.get()},
                                   .max_receive_bytes = rpc::kMaxMessageBytes,
                                   .max_concurrent_streams = 16});
    stub_ = v1::KvStore::NewStub(Connect());
    call_.set_deadline(std::chrono::system_clock::now() + kLimit);
  }
  // A plain client, which a slow machine does not cut off by keepalive. Its window does not grow:
  // who reads nothing stalls the server however fast the machine is.
  std::shared_ptr<grpc::Channel> Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  rpc::RemoteBlockStore::Options PatientClient() {
    return {.address = server_->address(), .max_call = kLimit, .connection = kPatientConnection};
  }
  void SetUp() override { StartWith(kPatient); }
  void TearDown() override {
    stub_ = nullptr;
    server_ = nullptr;
    EXPECT_TRUE(tier_->CheckIntegrity().ok()) << tier_->CheckIntegrity();
  }
  uint64_t UsedBytes() { return tier_->Stats()->tiers[0].bytes_used; }
  uint64_t BlockCount() { return tier_->Stats()->tiers[0].blocks; }
  // kvstore_requests_total; -1: there is no such series.
  double Requests(const std::string& op, const std::string& result) {
    const std::string labels = "{op=\"" + op + "\",result=\"" + result + "\"}";
    return pagoda::testing::MetricValue(metrics_, "kvstore_requests_total" + labels).value_or(-1);
  }
  // Waits for what happens when streams end.
  bool Becomes(const std::function<bool()>& condition) {
    TimePoint limit = SystemClock::Get()->Now() + kLimit;
    while (!condition()) {
      if (SystemClock::Get()->Now() > limit) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // leaves the machine to the store
    }
    return true;
  }

  Metrics metrics_;
  StoreMetrics store_metrics_{metrics_};
  StreamWatch watch_{SystemClock::Get()};
  std::unique_ptr<RamTier> tier_;
  std::unique_ptr<ConnectionBudgets> budgets_;
  std::unique_ptr<StreamContext> context_;
  std::unique_ptr<KvStoreService> service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::KvStore::Stub> stub_;
  grpc::ClientContext call_;
};

v1::PutRequest BlockMessage(uint64_t id, const PutBlock& block) {
  v1::PutRequest message;
  message.set_block_id(id);
  message.set_header(EncodeHeader(block.header));
  message.mutable_meta()->set_owner_tenant("acme");
  message.set_payload(std::string(block.payload.bytes()));
  return message;
}

v1::PutRequest Offer(const std::vector<PutBlock>& blocks, uint64_t first_id = 0) {
  v1::PutRequest message;
  for (size_t i = 0; i < blocks.size(); ++i) {
    v1::PutOffer::Block* block = message.mutable_offer()->add_blocks();
    block->set_block_id(first_id + i);
    block->set_header(EncodeHeader(blocks[i].header));
  }
  return message;
}

using PutCall = grpc::ClientReaderWriter<v1::PutRequest, v1::PutResponse>;

// The next `count` verdicts in order of block id; fewer when the stream ends.
std::vector<v1::PutResponse::Verdict> Verdicts(PutCall& call, size_t count) {
  std::vector<std::pair<uint64_t, v1::PutResponse::Verdict>> answers;
  v1::PutResponse response;
  while (answers.size() < count && call.Read(&response)) {
    for (const auto& answer : response.answers()) {
      answers.emplace_back(answer.block_id(), answer.verdict());
    }
  }
  std::sort(answers.begin(), answers.end());
  std::vector<v1::PutResponse::Verdict> verdicts;
  for (const auto& [id, verdict] : answers) verdicts.push_back(verdict);
  return verdicts;
}

using V = std::vector<v1::PutResponse::Verdict>;
constexpr auto kSend = v1::PutResponse::SEND;
constexpr auto kStored = v1::PutResponse::STORED;

TEST_F(KvStoreServiceTest, AnyProtobufClientCanPutAndGet) {
  auto blocks = MakeChain(1, 3, 5000);
  auto put = stub_->Put(&call_);
  put->Write(Offer(blocks));
  EXPECT_EQ(Verdicts(*put, 3), (V{kSend, kSend, kSend}));
  for (size_t i = 0; i < 3; ++i) put->Write(BlockMessage(i, blocks[i]));
  put->WritesDone();
  EXPECT_EQ(Verdicts(*put, 3), (V{kStored, kStored, kStored}));
  EXPECT_TRUE(put->Finish().ok());
  EXPECT_EQ(tier_->Stats()->owners[0].tenant, "") << "the offer's meta counts";

  grpc::ClientContext get_call;
  v1::GetRequest request;
  request.set_keys(rpc::PackKeys(RefsOf(blocks)) + std::string(32, 'x'));
  auto get = stub_->Get(&get_call, request);
  v1::GetResponse response;
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(get->Read(&response));
    EXPECT_EQ(response.index(), i);
    EXPECT_EQ(response.outcome(), v1::GetResponse::FOUND);
    EXPECT_EQ(response.tier(), v1::RAM);
    EXPECT_EQ(response.header(), EncodeHeader(blocks[i].header));
    EXPECT_EQ(response.payload(), blocks[i].payload.bytes());
  }
  ASSERT_TRUE(get->Read(&response));
  EXPECT_EQ(response.outcome(), v1::GetResponse::MISSING);
  EXPECT_FALSE(get->Read(&response));
  EXPECT_TRUE(get->Finish().ok());
  EXPECT_EQ(Requests("put", "stored"), 3);
  EXPECT_EQ(Requests("get", "found"), 3);
  EXPECT_EQ(Requests("get", "missing"), 1);
}

TEST_F(KvStoreServiceTest, FindMissingAnswersOneBitAKey) {
  auto blocks = MakeChain(1, 11, 100);
  PutAndWait(*tier_, {blocks[0], blocks[9], blocks[10]});
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
  request.set_keys(rpc::PackKeys(RefsOf(blocks)));
  ASSERT_TRUE(stub_->FindMissing(&call_, request, &response).ok());
  EXPECT_EQ(response.in_ram(), std::string("\x01\x06", 2));
  EXPECT_TRUE(response.on_disk().empty());
}

TEST_F(KvStoreServiceTest, KeysOfAWrongLengthOrNumberAreRefusedByName) {
  for (size_t bytes : {size_t{31}, size_t{33}, (kMaxBlocksPerCall + 1) * 32}) {
    v1::FindMissingRequest find;
    v1::FindMissingResponse found;
    find.set_keys(std::string(bytes, 'k'));
    grpc::ClientContext a, b;
    grpc::Status status = stub_->FindMissing(&a, find, &found);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find("keys"), std::string::npos);
    v1::GetRequest get;
    get.set_keys(find.keys());
    auto stream = stub_->Get(&b, get);
    v1::GetResponse response;
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(Requests("find_missing", "error"), 3);
}

TEST_F(KvStoreServiceTest, AnUnaskedBlockIsOneRoundTripAndAnswersLikeAnOffer) {
  PutBlock block = MakeChain(1, 1, 1000)[0];
  PutBlock broken = MakeChain(2, 1, 1000)[0];
  broken.header.payload_crc ^= 1;
  auto put = stub_->Put(&call_);
  put->Write(BlockMessage(1, block));
  put->Write(BlockMessage(2, block));
  put->Write(BlockMessage(3, Diverge(block)));
  put->Write(BlockMessage(4, broken));
  put->WritesDone();
  EXPECT_EQ(Verdicts(*put, 4), (V{kStored, v1::PutResponse::HAVE, v1::PutResponse::DIVERGENT,
                                  v1::PutResponse::CORRUPT}));
  EXPECT_TRUE(put->Finish().ok());
  EXPECT_NE(metrics_.Render().find("pagoda:kv_corrupt_blocks_total{hop=\"put\"} 1"),
            std::string::npos);
  EXPECT_EQ(Requests("put", "have"), 1);
  EXPECT_EQ(Requests("put", "divergent"), 1);
  EXPECT_EQ(Requests("put", "corrupt"), 1);
}

TEST_F(KvStoreServiceTest, ABlockThatIsFoundCorruptIsAnAnswerAndTheStreamGoesOn) {
  auto blocks = MakeChain(1, 2, 1000);
  PutAndWait(*tier_, blocks);
  auto lent =
      testing::GetAndWait(*tier_, {blocks[0].header.ref}, testing::RecordingSink::Mode::kLend);
  const_cast<std::byte&>(lent->result(0).lent.data[-200]) ^= std::byte{8};  // in its header
  v1::GetRequest request;
  request.set_keys(rpc::PackKeys(RefsOf(blocks)));
  auto get = stub_->Get(&call_, request);
  v1::GetResponse response;
  ASSERT_TRUE(get->Read(&response));
  EXPECT_EQ(response.outcome(), v1::GetResponse::CORRUPT);
  EXPECT_TRUE(response.payload().empty());
  ASSERT_TRUE(get->Read(&response));
  EXPECT_EQ(response.payload(), blocks[1].payload.bytes());
  EXPECT_FALSE(get->Read(&response));
  EXPECT_TRUE(get->Finish().ok());
  EXPECT_EQ(Requests("get", "corrupt"), 1);
}

TEST_F(KvStoreServiceTest, HostilePutMessagesEndTheStreamByName) {
  auto blocks = MakeChain(1, 65, 100);
  v1::PutRequest no_header = BlockMessage(1, blocks[0]);
  no_header.clear_header();
  v1::PutRequest bad_offer = Offer({blocks[0]});
  bad_offer.mutable_offer()->mutable_blocks(0)->set_header(std::string(200, 'h'));
  v1::PutRequest both = Offer({blocks[0]});
  both.set_payload("x");
  v1::PutRequest twice = Offer({blocks[0], blocks[1]});
  twice.mutable_offer()->mutable_blocks(1)->set_block_id(0);
  v1::PutRequest empty;
  empty.mutable_offer();
  for (const v1::PutRequest& bad : {no_header, bad_offer, both, twice, empty, Offer(blocks)}) {
    grpc::ClientContext call;
    auto put = stub_->Put(&call);
    put->Write(bad);
    v1::PutResponse response;
    while (put->Read(&response)) {
    }
    grpc::Status status = put->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad.DebugString();
    EXPECT_FALSE(status.error_message().empty());
  }
  EXPECT_TRUE(Becomes([&] { return UsedBytes() == 0; })) << "promised room must come back";
}

TEST_F(KvStoreServiceTest, AnotherBlockThanWasOfferedEndsTheStream) {
  auto blocks = MakeChain(1, 2, 100);
  auto put = stub_->Put(&call_);
  put->Write(Offer({blocks[0]}));
  EXPECT_EQ(Verdicts(*put, 1), V{kSend});
  put->Write(BlockMessage(0, blocks[1]));
  EXPECT_TRUE(Verdicts(*put, 1).empty());
  EXPECT_EQ(put->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BlockCount(), 0u);
}

TEST_F(KvStoreServiceTest, AFullStoreAnswersNoRoomToTheOffer) {
  TearDown();
  StartWith(kPatient, 64 << 10);
  auto held = MakeChain(1, 1, 60'000);
  PutAndWait(*tier_, held);
  auto reader = testing::GetAndWait(*tier_, RefsOf(held), testing::RecordingSink::Mode::kLend);
  grpc::ClientContext call;
  auto put = stub_->Put(&call);
  put->Write(Offer(MakeChain(2, 1, 60'000)));
  v1::PutResponse response;
  ASSERT_TRUE(put->Read(&response));
  EXPECT_EQ(response.answers(0).verdict(), v1::PutResponse::NO_ROOM);
  EXPECT_GT(response.answers(0).retry_ms(), 0u);
  put->WritesDone();
  EXPECT_TRUE(put->Finish().ok());
  EXPECT_EQ(Requests("put", "no_room"), 1);
}

TEST_F(KvStoreServiceTest, PromisedRoomOfOneStreamIsBoundedButOneBlockAlwaysFits) {
  TearDown();
  StartWith({.reserved_bytes = 2500, .get_stall = kLimit, .put_stall = kLimit});
  grpc::ClientContext call;
  auto put = stub_->Put(&call);
  put->Write(Offer(MakeChain(1, 3, 1000)));
  EXPECT_EQ(Verdicts(*put, 3), (V{kSend, kSend, v1::PutResponse::NO_ROOM}));
  grpc::ClientContext other_call;
  auto other = stub_->Put(&other_call);
  other->Write(Offer(MakeChain(2, 1, 9000)));
  EXPECT_EQ(Verdicts(*other, 1), V{kSend});
  call.TryCancel();
  other_call.TryCancel();
  put->Finish();
  other->Finish();
  EXPECT_TRUE(Becomes([&] { return UsedBytes() == 0; })) << "a cancelled put leaves nothing (R50)";
}

TEST_F(KvStoreServiceTest, AClientThatReadsNoAnswersPassesItsCreditOrIsHeldBack) {
  TearDown();
  StartWith({.put_credit_bytes = 3000, .get_stall = kLimit, .put_stall = kLimit});
  auto blocks = MakeChain(1, 64, 2000);
  grpc::ClientContext call;
  auto put = stub_->Put(&call);
  // Answers are small, so writing them is quick: as a rule each block's credit is back before the
  // next comes, and all are stored; a client that is faster is told so.
  for (size_t i = 0; i < blocks.size() && put->Write(BlockMessage(i, blocks[i])); ++i) {
  }
  put->WritesDone();
  size_t stored = Verdicts(*put, blocks.size()).size();
  grpc::Status status = put->Finish();
  EXPECT_TRUE((status.ok() && stored == blocks.size()) ||
              status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
}

TEST_F(KvStoreServiceTest, RoomThatAStalledClientWasPromisedComesBack) {
  TearDown();
  StartWith({.put_stall = std::chrono::milliseconds(1)});
  grpc::ClientContext call;
  auto put = stub_->Put(&call);
  put->Write(Offer(MakeChain(1, 2, 1000)));
  EXPECT_EQ(Verdicts(*put, 2), (V{kSend, kSend}));
  EXPECT_EQ(put->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(Becomes([&] { return UsedBytes() == 0; }));
  EXPECT_NE(metrics_.Render().find("kvstore_stalled_streams_total{op=\"put\"} 1"),
            std::string::npos);
}

TEST_F(KvStoreServiceTest, ASlowReaderIsCancelledAndPinsNothingAnyMore) {
  TearDown();
  StartWith({.get_stall = std::chrono::milliseconds(300)});
  auto blocks = MakeChain(1, 40, 256 << 10);
  PutAndWait(*tier_, blocks);
  v1::GetRequest request;
  request.set_keys(rpc::PackKeys(RefsOf(blocks)));
  auto get = stub_->Get(&call_, request);  // and then read nothing: flow control stops the server
  ASSERT_TRUE(Becomes([&] {
    return metrics_.Render().find("kvstore_stalled_streams_total{op=\"get\"} 1") !=
           std::string::npos;
  }));
  EXPECT_TRUE(Becomes([&] { return budgets_->taken() == 0; }));
  v1::GetResponse response;
  size_t read = 0;
  while (get->Read(&response)) ++read;
  EXPECT_LT(read, blocks.size());
  EXPECT_EQ(get->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(KvStoreServiceTest, StreamsOfOneConnectionShareItsBytesInFlightAndAllFinish) {
  TearDown();
  StartWith({.inflight_bytes = 300'000, .get_stall = kLimit, .put_stall = kLimit});
  auto blocks = MakeChain(1, 20, 100'000);
  PutAndWait(*tier_, blocks);
  rpc::RemoteBlockStore client(PatientClient());
  std::vector<std::thread> readers;
  for (int t = 0; t < 4; ++t) {
    readers.emplace_back([&] {
      auto sink = testing::GetAndWait(client, RefsOf(blocks));
      for (size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_EQ(sink->result(i).outcome, GetOutcome::kFound) << sink->result(i).status;
        ASSERT_EQ(sink->bytes(i), blocks[i].payload.bytes());
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST_F(KvStoreServiceTest, R50CallsCancelledAtAnyPointLeaveNoPinAndNoPromise) {
  TearDown();
  // Half of the blocks in play.
  StartWith({.inflight_bytes = 500'000, .get_stall = kLimit, .put_stall = kLimit}, 4 << 20);
  uint64_t seed = RandomId();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<std::vector<PutBlock>> chains;
  for (uint64_t c = 0; c < 10; ++c) chains.push_back(MakeChain(seed + c, 8, 100'000));
  auto client = std::make_unique<rpc::RemoteBlockStore>(PatientClient());
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, state = seed + 1000 * t]() mutable {
      auto next = [&] {
        return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33;
      };
      for (int round = 0; round < 60; ++round) {
        const auto& chain = chains[next() % chains.size()];
        std::stop_source cancel;
        CallContext context;
        context.cancel = cancel.get_token();
        size_t cancel_at = next() % 12;  // of 8 blocks: a third of the calls run to their end
        if (next() % 2 == 0) {
          std::promise<void> answered;
          client->Put(context, chain, [&](std::vector<PutResult>) { answered.set_value(); });
          for (size_t i = 0; i < cancel_at * 4; ++i) std::this_thread::yield();
          cancel.request_stop();
          answered.get_future().wait();
        } else {
          auto check = [&](size_t index, const RecordHeader&) {
            if (index == cancel_at) cancel.request_stop();
            return absl::OkStatus();
          };
          auto sink = testing::GetAndWait(*client, RefsOf(chain),
                                          testing::RecordingSink::Mode::kLend, context, check);
          ASSERT_TRUE(sink->EachDoneOnce());
          for (size_t i = 0; i < chain.size(); ++i) {
            if (sink->result(i).outcome != GetOutcome::kFound) continue;
            ASSERT_EQ(sink->bytes(i), chain[i].payload.bytes());
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  client = nullptr;
  EXPECT_TRUE(Becomes([&] {
    StoreStats stats = *tier_->Stats();
    uint64_t owned = 0;
    for (const OwnerStats& owner : stats.owners) owned += owner.bytes;
    return budgets_->taken() == 0 && owned == stats.tiers[0].bytes_used;
  }));
}

TEST(InflightBytes, BoundsWhatIsTakenAndTellsWhoWaits) {
  int woken = 0;
  InflightBytes budget(100, [&] { ++woken; });
  EXPECT_TRUE(budget.TryTake(1000)) << "one block may always go";
  EXPECT_FALSE(budget.TryTake(1));
  EXPECT_FALSE(budget.TryTake(UINT64_MAX));
  budget.Return(1000);
  EXPECT_EQ(woken, 1);
  EXPECT_TRUE(budget.TryTake(60));
  EXPECT_TRUE(budget.TryTake(40));
  EXPECT_FALSE(budget.TryTake(1));
  budget.Return(60);
  budget.Return(40);
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(InflightBytes, ALentViewReturnsItsBytesWhenItIsReleased) {
  auto budget = std::make_shared<InflightBytes>(100, [] {});
  budget->TryTake(8);
  BlockView view = ReturnWhenReleased(testing::OwnedView("8 bytes!"), budget);
  BlockView copy = view;
  view = {};
  EXPECT_EQ(budget->taken(), 8u);
  EXPECT_EQ(copy.bytes(), "8 bytes!");
  copy = {};
  EXPECT_EQ(budget->taken(), 0u);
}

TEST(BlockWire, MetaKeepsItsFieldsAndAnExpiryNeverBecomesNever) {
  RecordMeta meta{"acme", 3, 1ull << 40, -2, 5000, 0};
  RecordMeta back = rpc::FromWire(rpc::ToWire(meta, 1000), 1000);
  EXPECT_EQ(back.expires_unix_ms, 5000);
  back.last_use_unix_ms = 0;
  EXPECT_EQ(back, meta);
  EXPECT_EQ(rpc::ToWire(meta, 9000).ttl_ms(), 1u);
  v1::RecordMeta hostile;
  hostile.set_ttl_ms(UINT64_MAX);
  EXPECT_EQ(rpc::FromWire(hostile, 1000).expires_unix_ms, INT64_MAX);
}

}  // namespace
}  // namespace pagoda::kvstore
