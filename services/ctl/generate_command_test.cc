#include <nlohmann/json.hpp>

#include "common/base/mutex.h"
#include "common/http/http_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Result {
  int status;
  std::string output;
  std::string error;
};

Result Generate(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "generate");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Result result;
  result.status = RunGenerate(static_cast<int>(arguments.size()), arguments.data());
  result.output = testing::internal::GetCapturedStdout();
  result.error = testing::internal::GetCapturedStderr();
  return result;
}

// A router that answers every prompt with `answer_` and keeps what it was asked.
class GenerateCommandTest : public testing::Test {
 protected:
  GenerateCommandTest() {
    http::HttpRoutes routes;
    routes.Add("POST", "/v1/completions",
               [this](http::HttpRequest request, std::shared_ptr<http::Responder> responder) {
                 MutexLock lock(mutex_);
                 asked_ = json::parse(request.body);
                 responder->Start(200, {{"x-pagoda-worker", "worker-1"}});
                 responder->Write(answer_);
                 responder->Finish();
               });
    server_ = *http::HttpServer::Start({}, std::move(routes));
    url_ = server_->address();
  }
  ~GenerateCommandTest() override {
    if (server_) server_->Stop();
  }

  json asked() {
    MutexLock lock(mutex_);
    return asked_;
  }
  void Answer(std::string answer) {
    MutexLock lock(mutex_);
    answer_ = std::move(answer);
  }

  std::string url_;
  std::unique_ptr<http::HttpServer> server_;

 private:
  Mutex mutex_;
  json asked_ ABSL_GUARDED_BY(mutex_);
  std::string answer_ ABSL_GUARDED_BY(mutex_) =
      "data: {\"choices\":[{\"index\":0,\"text\":\" blue\"}]}\n\n"
      "data: "
      "{\"choices\":[{\"index\":0,\"text\":\".\",\"finish_reason\":\"length\"}]"
      "}\n\n"
      "data: "
      "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}"
      "\n\n"
      "data: [DONE]\n\n";
};

TEST_F(GenerateCommandTest, TheContinuationGoesToStandardOutputAndTheStatusLineToStandardError) {
  Result result = Generate({"--http", url_.c_str(), "--prompt", "The sky is"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.output, " blue.\n");
  EXPECT_THAT(result.error, HasSubstr("worker-1 | prompt 3 = "));
  EXPECT_EQ(Generate({"--http", url_.c_str(), "--prompt", "x", "--no-stats"}).error, "");
}

TEST_F(GenerateCommandTest, OptionsAreSentOnlyWhenGiven) {
  ASSERT_EQ(Generate({"--http", url_.c_str(), "--prompt", "The sky is"}).status, 0);
  EXPECT_EQ(asked(), json::parse(R"({"model":"default","prompt":"The sky is","stream":true,
                                     "stream_options":{"include_usage":true}})"));
  ASSERT_EQ(Generate({"--http", url_.c_str(), "--prompt", "x", "--max-tokens", "5", "--temperature",
                      "0.5", "--seed", "-7"})
                .status,
            0);
  EXPECT_EQ(asked()["max_tokens"], 5);
  EXPECT_EQ(asked()["temperature"], 0.5);
  EXPECT_EQ(asked()["seed"], -7);
}

TEST_F(GenerateCommandTest, JsonIsOneObjectWithAllOfIt) {
  Result result = Generate({"--http", url_.c_str(), "--prompt", "x", "--output", "json"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.error, "");
  json object = json::parse(result.output);
  EXPECT_EQ(object["text"], " blue.");
  EXPECT_EQ(object["finish_reason"], "length");
  EXPECT_EQ(object["usage"], json::parse(R"({"prompt_tokens":3,"completion_tokens":2})"));
}

TEST_F(GenerateCommandTest, AnErrorIsAFailureWithWords) {
  Answer(
      "data: {\"error\":{\"message\":\"no worker can go on\"}}\n\ndata: "
      "[DONE]\n\n");
  Result broken = Generate({"--http", url_.c_str(), "--prompt", "x", "--output", "json"});
  EXPECT_EQ(broken.status, 1);
  EXPECT_EQ(broken.output, "");
  EXPECT_EQ(broken.error, "pagoda generate: no worker can go on\n");
  server_->Stop();
  server_.reset();
  Result nobody = Generate({"--http", url_.c_str(), "--prompt", "x"});
  EXPECT_EQ(nobody.status, 1);
  EXPECT_EQ(nobody.output, "");
  EXPECT_THAT(nobody.error, HasSubstr("pagoda generate: "));
}

TEST(GenerateUsageTest, WrongFlagsAreWrongUsage) {
  EXPECT_EQ(Generate({"--prompt", "x", "--http", "nowhere"}).status, 2);
  EXPECT_EQ(Generate({"--prompt", "x", "--temperature", "3"}).status, 2);
  EXPECT_EQ(Generate({"--prompt", "x", "--seed", "1.5"}).status, 2);
  EXPECT_EQ(Generate({"--prompt", "x", "--output", "xml"}).status, 2);
  EXPECT_EQ(Generate({"--prompt", "x", "--promt"}).status, 2);
}

}  // namespace
}  // namespace pagoda::ctl
