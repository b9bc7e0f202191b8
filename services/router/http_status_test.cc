#include "services/router/http_status.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

using ::testing::HasSubstr;

TEST(HttpStatusTest, CodesBecomeTheStatusThatClientsExpect) {
  EXPECT_EQ(ToHttpError(absl::InvalidArgumentError("")).status, 400);
  EXPECT_EQ(ToHttpError(absl::NotFoundError("")).status, 404);
  EXPECT_EQ(ToHttpError(absl::ResourceExhaustedError("")).status, 429);
  EXPECT_EQ(ToHttpError(absl::InternalError("")).status, 500);
  EXPECT_EQ(ToHttpError(absl::UnimplementedError("")).status, 501);
  EXPECT_EQ(ToHttpError(absl::UnavailableError("")).status, 503);
  EXPECT_EQ(ToHttpError(absl::DeadlineExceededError("")).status, 504);
}

TEST(HttpStatusTest, AFieldErrorNamesItsFieldInMessageAndParam) {
  http::HttpError error = ToHttpError(InvalidField("top_p", "2 is not up to 1"));
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.param, "top_p");
  EXPECT_EQ(error.message, "top_p: 2 is not up to 1");
}

TEST(HttpStatusTest, AParameterThatIsNotBuiltIsTheClientsToLeaveOut) {
  http::HttpError error = ToHttpError(UnsupportedField("n", "only 1"));
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.code, "unsupported_parameter");
}

TEST(HttpStatusTest, AnUnknownModelHasOpenAisCode) {
  EXPECT_THAT(ToHttpResponse(UnknownModel("gpt-x")).body,
              HasSubstr("\"param\":\"model\",\"code\":\"model_not_found\""));
}

TEST(HttpStatusTest, RetryAfterStandsWhereTryingAgainHelps) {
  auto retry_after = [](const Status& status) {
    return http::FindHeader(ToHttpResponse(status).headers, "retry-after").has_value();
  };
  EXPECT_TRUE(retry_after(absl::UnavailableError("")));
  EXPECT_TRUE(retry_after(absl::ResourceExhaustedError("")));
  EXPECT_FALSE(retry_after(absl::InvalidArgumentError("")));
}

TEST(FieldErrorTest, QuotesAreCutAndEscaped) {
  EXPECT_EQ(Quote("a\"b"), "\"a\\\"b\"");
  EXPECT_LT(Quote(std::string(1000, 'x')).size(), 80u);
}

}  // namespace
}  // namespace pagoda::router
