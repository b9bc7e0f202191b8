#include "services/worker/request_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "services/worker/testing/test_sequences.h"

namespace pagoda::worker {
namespace {

using ::testing::HasSubstr;
using testing::Request;
using testing::Tokens;

constexpr RequestLimits kLimits{.vocabulary_size = 1000,
                                .max_model_len = 100,
                                .block_tokens = 4,
                                .num_blocks = 20,
                                .max_prefill_tokens = 0};

void ExpectRefused(const GenerationRequest& request, absl::StatusCode code, const char* field,
                   const char* limit, const RequestLimits& limits = kLimits) {
  Status status = CheckRequest(request, limits);
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  EXPECT_THAT(std::string(status.message()), HasSubstr(limit));
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kOutOfRange = absl::StatusCode::kOutOfRange;

TEST(RequestCheckTest, AGoodRequestPasses) {
  EXPECT_TRUE(CheckRequest(Request(Tokens(40), 41), kLimits).ok());
}

TEST(RequestCheckTest, AnErrorNamesTheFieldAndTheLimit) {
  ExpectRefused(Request({}, 1), kInvalid, "prompt_ids", "at least 1");
  ExpectRefused(Request(Tokens(4), 0), kInvalid, "max_tokens", "1");
  ExpectRefused(Request(Tokens(4), 97), kInvalid, "4 + 97", "100");
  ExpectRefused(Request(Tokens(4), UINT32_MAX), kInvalid, "max_tokens", "100");
  ExpectRefused(Request({5, 1000}, 1), kInvalid, "prompt_ids[1]: 1000", "1000");
  GenerationRequest request = Request(Tokens(4), 2);
  request.output_ids = {1, 2};
  ExpectRefused(request, kInvalid, "output_ids", "2");
  request.output_ids = {2000};
  ExpectRefused(request, kInvalid, "output_ids[0]: 2000", "1000");
}

TEST(RequestCheckTest, SamplingParametersOutOfRangeAreRefused) {
  auto with = [](float temperature, int32_t top_k, float top_p) {
    GenerationRequest request = Request(Tokens(4), 2);
    request.sampling = {.temperature = temperature, .top_k = top_k, .top_p = top_p};
    return request;
  };
  EXPECT_TRUE(CheckRequest(with(0.7f, 40, 0.9f), kLimits).ok());
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  for (float temperature : {-1.0f, 1e-9f, nan, infinity}) {
    ExpectRefused(with(temperature, 0, 1), kInvalid, "temperature", "100000");
  }
  ExpectRefused(with(1, -1, 1), kInvalid, "top_k", "0");
  for (float top_p : {0.0f, 1.5f, nan}) ExpectRefused(with(1, 0, top_p), kInvalid, "top_p", "1");
}

TEST(RequestCheckTest, WhatCanNeverFitIsRefusedAtOnce) {
  // 80 tokens of KV fill 20 blocks; the last token needs none.
  EXPECT_TRUE(CheckRequest(Request(Tokens(80), 1), kLimits).ok());
  ExpectRefused(Request(Tokens(80), 2), kOutOfRange, "21 KV blocks", "20");
  RequestLimits whole = kLimits;
  whole.max_prefill_tokens = 64;
  EXPECT_TRUE(CheckRequest(Request(Tokens(60), 5), whole).ok());
  ExpectRefused(Request(Tokens(60), 6), kOutOfRange, "65", "64", whole);
}

TEST(RequestCheckTest, KeysThatDifferFromOursAreRefused) {
  auto sequence = testing::MakeSequence(1, Request(Tokens(8), 1), 4);
  GenerationRequest request = Request(Tokens(8), 1);
  EXPECT_TRUE(CheckBlockKeys(request, sequence->refs()).ok());
  request.block_keys = {{BlockKey{}, sequence->refs()[1].key}};
  EXPECT_TRUE(CheckBlockKeys(request, sequence->refs()).ok());
  request.block_keys = {{BlockKey{}, BlockKey{}}};
  EXPECT_EQ(CheckBlockKeys(request, sequence->refs()).code(), kInvalid);
  request.block_keys = {{sequence->refs()[1].key}};
  EXPECT_EQ(CheckBlockKeys(request, sequence->refs()).code(), kInvalid);
}

}  // namespace
}  // namespace pagoda::worker
