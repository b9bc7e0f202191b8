#include "services/worker/generate_service.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/metrics.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/worker/testing/fake_model.h"

namespace pagoda::worker {
namespace {

using testing::FakeModel;
using ::testing::HasSubstr;

constexpr int32_t kBlocks = 64, kBlockTokens = 4, kMaxModelLen = 128;
constexpr uint32_t kVocabulary = 1000;

// A worker's engine and service on loopback, over a model whose tokens are known.
class GenerateServiceTest : public ::testing::Test {
 protected:
  GenerateServiceTest()
      : model_(kBlocks, kBlockTokens, kVocabulary),
        engine_metrics_(&metrics_),
        engine_(EngineOptions(), &model_, &model_, nullptr, &engine_metrics_, SystemClock::Get()),
        service_(&engine_, WorkerModel{}, Info()) {
    engine_.Start();
    auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {&service_}});
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Worker::NewStub(rpc::MakeChannel(server_->address(), rpc::ChannelKind::kControl));
  }

  static Engine::Options EngineOptions() {
    Engine::Options options;
    options.vocabulary_size = kVocabulary;
    options.max_model_len = kMaxModelLen;
    options.scheduler.block_tokens = kBlockTokens;
    options.num_blocks = kBlocks;
    return options;
  }

  static v1::GetModelInfoResponse Info() {
    v1::GetModelInfoResponse info;
    info.set_vocabulary_size(kVocabulary);
    return info;
  }

  static v1::WorkerGenerateRequest Request(std::vector<TokenId> prompt, uint32_t max_tokens) {
    v1::WorkerGenerateRequest request;
    request.mutable_prompt_ids()->Assign(prompt.begin(), prompt.end());
    request.mutable_sampling()->set_temperature(0);
    request.mutable_sampling()->set_seed(5);
    request.mutable_stop()->set_max_tokens(max_tokens);
    return request;
  }

  struct Answer {
    std::vector<TokenId> tokens;
    v1::WorkerGenerateResponse first, last;
    grpc::Status status;
  };

  Answer Generate(const v1::WorkerGenerateRequest& request) {
    grpc::ClientContext context;
    auto reader = stub_->Generate(&context, request);
    Answer answer;
    while (reader->Read(&answer.last)) {
      if (answer.tokens.empty()) answer.first = answer.last;
      answer.tokens.insert(answer.tokens.end(), answer.last.token_ids().begin(),
                           answer.last.token_ids().end());
    }
    answer.status = reader->Finish();
    return answer;
  }

  bool EventuallyIdle() {
    for (int i = 0; i < 10'000; ++i) {
      if (engine_.stats().running + engine_.stats().waiting == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }

  Metrics metrics_;
  FakeModel model_;
  EngineMetrics engine_metrics_;
  Engine engine_;
  GenerateService service_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<v1::Worker::Stub> stub_;
};

TEST_F(GenerateServiceTest, StreamsEveryTokenOnceAndThenUsage) {
  std::vector<TokenId> prompt = {1, 2, 3, 4, 5, 6};
  Answer answer = Generate(Request(prompt, 20));
  EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.tokens, FakeModel::Generate(prompt, 20, 5, kVocabulary));
  EXPECT_EQ(answer.last.finish_reason(), v1::LENGTH);
  EXPECT_EQ(answer.first.usage().prompt_tokens(), 6u) << "for who hears no more";
  EXPECT_EQ(answer.first.usage().computed(), 6u);
  EXPECT_EQ(answer.last.usage().prompt_tokens(), 6u);
  EXPECT_EQ(answer.last.usage().completion_tokens(), 20u);
  EXPECT_EQ(answer.last.usage().computed(), 6u);
}

TEST_F(GenerateServiceTest, AnIdleWorkerStartsARequestWithOneTokenToCompute) {
  EXPECT_EQ(Generate(Request({9}, 3)).tokens, FakeModel::Generate({9}, 3, 5, kVocabulary));
  std::vector<TokenId> prompt = {1, 2, 3, 4, 5};  // a block and one token
  Generate(Request(prompt, 1));
  Answer cached = Generate(Request(prompt, 3));
  EXPECT_EQ(cached.tokens, FakeModel::Generate(prompt, 3, 5, kVocabulary));
  EXPECT_EQ(cached.last.usage().local(), 4u);
}

TEST_F(GenerateServiceTest, AResumedRequestContinuesWhereItStopped) {
  std::vector<TokenId> prompt = {1, 2, 3};
  std::vector<TokenId> whole = Generate(Request(prompt, 12)).tokens;
  v1::WorkerGenerateRequest request = Request(prompt, 12);
  request.mutable_output_ids()->Assign(whole.begin(), whole.begin() + 5);
  Answer answer = Generate(request);
  EXPECT_EQ(answer.tokens, std::vector<TokenId>(whole.begin() + 5, whole.end()));
  EXPECT_EQ(answer.last.usage().prompt_tokens(), 3u);
}

TEST_F(GenerateServiceTest, ARefusedRequestSendsNoMessage) {
  Answer too_long = Generate(Request({1, 2, 3}, kMaxModelLen));
  EXPECT_EQ(too_long.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(too_long.status.error_message(), HasSubstr("max_tokens"));
  EXPECT_EQ(Generate(Request({}, 3)).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Generate(Request({kVocabulary}, 3)).status.error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  v1::WorkerGenerateRequest unbuilt = Request({1}, 3);
  unbuilt.set_top_logprobs(2);
  EXPECT_EQ(Generate(unbuilt).status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_TRUE(Generate(Request({1}, 3)).status.ok());
}

TEST_F(GenerateServiceTest, ACancelledCallFreesItsSequence) {
  grpc::ClientContext context;
  auto reader = stub_->Generate(&context, Request({1, 2, 3}, 120));
  v1::WorkerGenerateResponse response;
  reader->Read(&response);
  context.TryCancel();
  while (reader->Read(&response)) {
  }
  reader->Finish();
  EXPECT_TRUE(EventuallyIdle());
  EXPECT_EQ(engine_.stats().free_blocks, kBlocks);
}

TEST_F(GenerateServiceTest, AnExpiredDeadlineEndsTheSequence) {
  model_.before_launch = [](const StepPlan&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return absl::OkStatus();
  };
  engine_.Wake();  // hands the hook over by a lock that ThreadSanitizer sees; gRPC's it does not
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(20));
  auto reader = stub_->Generate(&context, Request({1, 2, 3}, 120));
  v1::WorkerGenerateResponse response;
  while (reader->Read(&response)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(EventuallyIdle());
}

TEST_F(GenerateServiceTest, AFailedStepIsTheCallsError) {
  model_.before_launch = [](const StepPlan&) { return absl::InternalError("step failed"); };
  engine_.Wake();  // as above
  EXPECT_EQ(Generate(Request({1, 2}, 4)).status.error_code(), grpc::StatusCode::INTERNAL);
}

TEST_F(GenerateServiceTest, ManyCallsAtOnceGetTheTokensOfLoneRuns) {
  std::vector<std::thread> clients;
  for (TokenId i = 0; i < 16; ++i) {
    clients.emplace_back([this, i] {
      std::vector<TokenId> prompt = {i, i + 1, 7, 8, 9};
      Answer answer = Generate(Request(prompt, 30));
      EXPECT_TRUE(answer.status.ok()) << answer.status.error_message();
      EXPECT_EQ(answer.tokens, FakeModel::Generate(prompt, 30, 5, kVocabulary));
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST_F(GenerateServiceTest, GetModelInfoAnswersWhatIsServed) {
  grpc::ClientContext context;
  v1::GetModelInfoResponse response;
  ASSERT_TRUE(stub_->GetModelInfo(&context, {}, &response).ok());
  EXPECT_EQ(response.vocabulary_size(), kVocabulary);
}

}  // namespace
}  // namespace pagoda::worker
