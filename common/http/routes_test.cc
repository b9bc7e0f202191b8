#include "common/http/routes.h"

#include "common/http/exchange.h"
#include "gtest/gtest.h"

namespace pagoda::http {
namespace {

std::string Answer(const HttpRoutes& routes, std::string method, std::string path) {
  auto exchange = std::make_shared<Exchange>(Exchange::Options{}, [] {});
  HttpRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  routes.Dispatch(std::move(request), exchange);
  std::string out;
  exchange->Take(out);
  return out;
}

HttpRoutes Routes() {
  HttpRoutes routes;
  routes.Add("GET", "/a", [](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->Send(TextResponse(200, "got"));
  });
  routes.Add("POST", "/a", [](HttpRequest, std::shared_ptr<Responder> responder) {
    responder->Send(TextResponse(200, "posted"));
  });
  return routes;
}

TEST(RoutesTest, PathAndMethodChooseTheHandler) {
  EXPECT_NE(Answer(Routes(), "GET", "/a").find("got"), std::string::npos);
  EXPECT_NE(Answer(Routes(), "HEAD", "/a").find("got"), std::string::npos);
  EXPECT_NE(Answer(Routes(), "POST", "/a").find("posted"), std::string::npos);
}

TEST(RoutesTest, AnUnknownPathIs404AsAnOpenAiError) {
  std::string answer = Answer(Routes(), "GET", "/b\"");
  EXPECT_EQ(answer.substr(0, 22), "HTTP/1.1 404 Not Found");
  EXPECT_NE(answer.find("{\"error\":{\"message\":\"no such path: /b\\\"\",\"type\":"
                        "\"invalid_request_error\",\"param\":null,\"code\":\"not_found\"}}"),
            std::string::npos)
      << answer;
}

TEST(RoutesTest, AnotherMethodIs405AndSaysWhichAreAllowed) {
  std::string answer = Answer(Routes(), "DELETE", "/a");
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 405");
  EXPECT_NE(answer.find("Allow: GET, POST\r\n"), std::string::npos) << answer;
}

TEST(RoutesTest, UnknownPathsShareOneLabel) {
  EXPECT_EQ(Routes().Label("/a"), "/a");
  EXPECT_EQ(Routes().Label("/b"), "other");
}

}  // namespace
}  // namespace pagoda::http
