#include "common/base/status.h"

#include <memory>

#include "gtest/gtest.h"

namespace pagoda {
namespace {

StatusOr<std::unique_ptr<int>> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("n must be even");
  return std::make_unique<int>(n / 2);
}

StatusOr<int> Quarter(int n) {
  PAGODA_ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(n));
  PAGODA_ASSIGN_OR_RETURN(auto quarter, Half(*half));
  return *quarter;
}

Status CheckQuarter(int n) {
  PAGODA_RETURN_IF_ERROR(Quarter(n).status());
  return absl::OkStatus();
}

TEST(StatusTest, AnnotateKeepsTheCodeAndAddsContext) {
  Status status = Annotate(absl::NotFoundError("key 12"), "shard 2");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "shard 2: key 12");
}

TEST(StatusTest, AnnotateLeavesOkAlone) { EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok()); }

TEST(StatusTest, AssignOrReturnMovesTheValueOrReturnsTheError) {
  EXPECT_EQ(Quarter(8).value(), 2);
  EXPECT_EQ(Quarter(6).status().message(), "n must be even");
}

TEST(StatusTest, ReturnIfErrorStopsAtTheFirstError) {
  EXPECT_TRUE(CheckQuarter(4).ok());
  EXPECT_FALSE(CheckQuarter(5).ok());
}

}  // namespace
}  // namespace pagoda
