// The router end to end over gRPC, in front of fake workers.
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <future>

#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pagoda/v1/inference.grpc.pb.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

using testing::AnswerText;
using ::testing::ElementsAreArray;
using testing::FakeAnswer;
using testing::FakeWorker;
using ::testing::HasSubstr;

class RouterGrpcTest : public ::testing::Test {
 protected:
  RouterGrpcTest()
      : router_(testing::StartTestRouter({.served_names = {"tiny"}})),
        stub_(v1::Inference::NewStub(
            rpc::MakeChannel(router_->grpc_address(), rpc::ChannelKind::kControl))) {}

  struct Result {
    grpc::Status status;
    std::string text;
    std::vector<v1::GenerateResponse> messages;
    std::string worker;
  };
  Result Generate(const v1::GenerateRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    auto stream = stub_->Generate(&context, request);
    Result result;
    v1::GenerateResponse message;
    while (stream->Read(&message)) {
      result.text += message.text();
      result.messages.push_back(message);
    }
    result.status = stream->Finish();
    auto worker = context.GetServerInitialMetadata().find("x-pagoda-worker");
    if (worker != context.GetServerInitialMetadata().end()) {
      result.worker.assign(worker->second.data(), worker->second.size());
    }
    return result;
  }

  std::unique_ptr<RouterServer> router_;
  std::unique_ptr<v1::Inference::Stub> stub_;
};

TEST_F(RouterGrpcTest, StreamsTextWithIdsAndUsage) {
  FakeWorker worker("w0", [](const auto& request) { return AnswerText(request, "hello"); });
  worker.Join(router_->grpc_address());
  v1::GenerateRequest request;
  request.set_text("q");
  request.set_return_token_ids(true);
  Result result = Generate(request);
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  EXPECT_EQ(result.text, "hello");
  EXPECT_EQ(result.worker, "w0");
  EXPECT_THAT(result.messages.front().prompt_token_ids(), ElementsAreArray(testing::ByteIds("q")));
  EXPECT_EQ(result.messages.front().request_id().size(), 32u);
  std::vector<uint32_t> ids;
  for (const auto& message : result.messages) {
    ids.insert(ids.end(), message.token_ids().begin(), message.token_ids().end());
  }
  EXPECT_THAT(ids, ElementsAreArray(testing::ByteIds("hello")));
  const v1::GenerateResponse& last = result.messages.back();
  EXPECT_EQ(last.finish_reason(), v1::STOP);
  EXPECT_EQ(last.usage().completion_tokens(), 5u);
  EXPECT_EQ(last.usage().workers(0), "w0");
}

TEST_F(RouterGrpcTest, ErrorsKeepTheirCodes) {
  v1::GenerateRequest request;
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_text("q");
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::UNAVAILABLE);
  request.set_n(2);
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  request.set_model("gpt-4");
  EXPECT_EQ(Generate(request).status.error_code(), grpc::StatusCode::NOT_FOUND);
  v1::GenerateRequest pinned;
  pinned.set_text("q");
  pinned.set_worker("w0");
  Result refused = Generate(pinned);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("worker"));
}

TEST_F(RouterGrpcTest, ACancelledCallCancelsTheWorker) {
  FakeWorker worker("w0",
                    [](const auto&) { return FakeAnswer{.messages = {{100}}, .hang = true}; });
  worker.Join(router_->grpc_address());
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_text("q");
  auto stream = stub_->Generate(&context, request);
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(worker.WaitForCancel());
}

TEST_F(RouterGrpcTest, ADeadlineReachesTheWorker) {
  FakeWorker worker("w0", [](const auto& request) { return AnswerText(request, "x"); });
  worker.Join(router_->grpc_address());
  v1::GenerateRequest request;
  request.set_text("q");
  ASSERT_TRUE(Generate(request).status.ok());  // with 20 s
  EXPECT_GT(worker.last_time_left(), Duration::zero());
  EXPECT_LE(worker.last_time_left(), std::chrono::seconds(21));  // gRPC rounds up on the wire
}

// A client whose gRPC takes so little ahead of Read that the router's writes wait for it.
std::unique_ptr<v1::Inference::Stub> SlowReader(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 5);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::Inference::NewStub(
      grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
}

FakeAnswer SaysALotAndHangs(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer = AnswerText(request, std::string(400, 'x'));
  answer.hang = true;
  return answer;
}

TEST_F(RouterGrpcTest, StoppingTheRouterTellsASlowReaderWhyItsAnswerEnds) {
  FakeWorker worker("w0", SaysALotAndHangs);
  worker.Join(router_->grpc_address());
  auto stub = SlowReader(router_->grpc_address());
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_text("q");
  request.set_return_token_ids(true);
  auto stream = stub->Generate(&context, request);
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  auto stop = std::async(std::launch::async, [&] { router_->Stop(); });
  EXPECT_TRUE(worker.WaitForCancel());
  while (stream->Read(&message)) {
  }
  grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "the router is stopping");
}

TEST_F(RouterGrpcTest, AClientThatDoesNotReadDoesNotHoldUpAStop) {
  FakeWorker worker("w0", SaysALotAndHangs);
  worker.Join(router_->grpc_address());
  auto stub = SlowReader(router_->grpc_address());
  grpc::ClientContext context;
  v1::GenerateRequest request;
  request.set_text("q");
  request.set_return_token_ids(true);
  auto stream = stub->Generate(&context, request);
  v1::GenerateResponse message;
  ASSERT_TRUE(stream->Read(&message));
  router_->Stop();
  while (stream->Read(&message)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(RouterGrpcTest, ListsItsModels) {
  grpc::ClientContext context;
  v1::ListModelsResponse response;
  ASSERT_TRUE(stub_->ListModels(&context, {}, &response).ok());
  EXPECT_EQ(response.models(0).name(), "tiny");
  EXPECT_EQ(response.models(0).max_model_len(), testing::kTestContext);
}

}  // namespace
}  // namespace pagoda::router
