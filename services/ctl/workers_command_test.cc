#include "common/http/http_server.h"
#include "gtest/gtest.h"
#include "services/ctl/command.h"

namespace pagoda::ctl {
namespace {

struct Result {
  int status;
  std::string output;
};

// Runs `pagoda workers` against a server whose answer is `status` and `body`.
Result Workers(int status, const std::string& body, std::vector<const char*> flags = {}) {
  http::HttpRoutes routes;
  routes.Add("GET", "/pagoda/v1/workers",
             [&](http::HttpRequest, std::shared_ptr<http::Responder> responder) {
               responder->Send(http::JsonResponse(status, body));
             });
  auto server = *http::HttpServer::Start({}, std::move(routes));
  std::string address = server->address();
  std::vector<const char*> argv{"workers", "--http", address.c_str()};
  argv.insert(argv.end(), flags.begin(), flags.end());
  testing::internal::CaptureStdout();
  Result result;
  result.status = RunWorkers(static_cast<int>(argv.size()), argv.data());
  result.output = testing::internal::GetCapturedStdout();
  return result;
}

constexpr char kBody[] =
    R"({"workers":[{"name":"worker-0","state":"ready","grpc":"127.0.0.1:1","http":"127.0.0.1:2","pid":3,"free_blocks":40}]})";

TEST(WorkersCommandTest, WorkersArePrintedAsATable) {
  Result result = Workers(200, kBody);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(
      result.output,
      "name      state  running  waiting  free_blocks  total_blocks  grpc         http        "
      " pid\n"
      "worker-0  ready  -        -        40           -             127.0.0.1:1  127.0.0.1:2 "
      " 3\n");
}

TEST(WorkersCommandTest, JsonIsTheRoutersAnswer) {
  Result result = Workers(200, kBody, {"--output", "json"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.output, std::string(kBody) + "\n");
}

TEST(WorkersCommandTest, AnswersThatAreNoListAreErrors) {
  for (const char* body : {"", "[]", "{}", R"({"workers":7})"}) {
    EXPECT_EQ(Workers(200, body).status, 1) << body;
  }
  EXPECT_EQ(Workers(503, "{}").status, 1);
}

TEST(WorkersCommandTest, AMalformedUrlIsWrongUsage) {
  const char* argv[] = {"workers", "--http", "nowhere"};
  EXPECT_EQ(RunWorkers(3, argv), 2);
}

}  // namespace
}  // namespace pagoda::ctl
