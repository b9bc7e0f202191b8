#include "services/worker/request_translation.h"

#include <functional>
#include <limits>

#include "common/kv/identity.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/worker/request_check.h"

namespace pagoda::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

WorkerModel Model() {
  WorkerModel model;
  model.space.bytes.fill(7);
  model.stop_ids = {2};
  return model;
}

v1::WorkerGenerateRequest Valid() {
  v1::WorkerGenerateRequest message;
  message.set_request_id("r1");
  for (uint32_t id : {5, 6, 7}) message.add_prompt_ids(id);
  message.mutable_sampling()->set_temperature(0.5f);
  message.mutable_sampling()->set_seed(0);
  message.mutable_stop()->set_max_tokens(4);
  return message;
}

TEST(RequestTranslationTest, CarriesEveryFieldOver) {
  v1::WorkerGenerateRequest message = Valid();
  message.add_output_ids(8);
  message.set_choice_index(3);
  message.mutable_sampling()->set_top_k(40);
  message.mutable_sampling()->set_top_p(0.9f);
  message.mutable_sampling()->set_min_p(0.1f);
  message.mutable_sampling()->set_presence_penalty(0.5f);
  message.mutable_sampling()->set_frequency_penalty(-0.5f);
  message.mutable_sampling()->set_repetition_penalty(1.5f);
  (*message.mutable_sampling()->mutable_logit_bias())[9] = -3;
  message.mutable_stop()->set_min_tokens(2);
  message.mutable_sampling()->set_seed(99);
  message.mutable_stop()->add_stop_token_ids(11);
  message.set_block_keys(std::string(32, 'a') + std::string(32, 'b'));
  message.set_tenant("acme");
  message.set_tenant_generation(2);
  message.set_priority(-1);
  message.set_age_ms(250);
  message.set_space_required(std::string(Model().space.view()));
  StatusOr<GenerationRequest> request = FromProto(message, Model());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->request_id, "r1");
  EXPECT_THAT(request->prompt_ids, ElementsAre(5, 6, 7));
  EXPECT_THAT(request->output_ids, ElementsAre(8));
  EXPECT_EQ(request->sampling.temperature, 0.5f);
  EXPECT_EQ(request->sampling.top_k, 40);
  EXPECT_EQ(request->sampling.top_p, 0.9f);
  EXPECT_EQ(request->sampling.min_p, 0.1f);
  EXPECT_EQ(request->penalties.presence_penalty, 0.5f);
  EXPECT_EQ(request->penalties.frequency_penalty, -0.5f);
  EXPECT_EQ(request->penalties.repetition_penalty, 1.5f);
  EXPECT_THAT(request->penalties.logit_bias, ElementsAre(std::pair(9u, -3.0f)));
  EXPECT_EQ(request->penalties.min_tokens, 2u);
  EXPECT_EQ(request->sampling.seed, 99u);
  EXPECT_EQ(request->sampling.choice, 3u);
  EXPECT_EQ(request->max_tokens, 4u);
  EXPECT_THAT(request->stop_token_ids, ElementsAre(11, 2));
  ASSERT_TRUE(request->block_keys.has_value());
  EXPECT_EQ((*request->block_keys)[1].view(), std::string(32, 'b'));
  EXPECT_EQ(request->cache.tenant_namespace,
            MakeNamespace("", Model().space, "acme", 2, Model().weight_epoch));
  EXPECT_EQ(request->priority, -1);
  EXPECT_EQ(request->age, std::chrono::milliseconds(250));
}

TEST(RequestTranslationTest, IgnoreEosLeavesTheModelsOwnStopIdsOut) {
  v1::WorkerGenerateRequest message = Valid();
  message.mutable_stop()->set_ignore_eos(true);
  message.mutable_stop()->add_stop_token_ids(11);
  EXPECT_THAT(FromProto(message, Model())->stop_token_ids, ElementsAre(11));
}

TEST(RequestTranslationTest, TheModelsOwnStopIdsComeOnTopOfTheClientsLimit) {
  v1::WorkerGenerateRequest message = Valid();
  for (int i = 0; i < 256; ++i) message.mutable_stop()->add_stop_token_ids(i);
  StatusOr<GenerationRequest> request = FromProto(message, Model());
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->stop_token_ids.size(), 257u);
  EXPECT_EQ(
      CheckRequest(
          *request,
          {.vocabulary_size = 1000, .max_model_len = 100, .block_tokens = 16, .num_blocks = 8}),
      absl::OkStatus());
}

TEST(RequestTranslationTest, DefaultsAreThoseOfTheProto) {
  v1::WorkerGenerateRequest message = Valid();
  message.mutable_sampling()->clear_temperature();
  StatusOr<GenerationRequest> request = FromProto(message, Model());
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->sampling.temperature, 1.0f);
  EXPECT_EQ(request->sampling.top_p, 1.0f);
  EXPECT_EQ(request->sampling.top_k, 0);
  EXPECT_FALSE(request->penalties.any());
  EXPECT_FALSE(request->block_keys.has_value());
  EXPECT_TRUE(request->cache.scope.keyed());
  EXPECT_EQ(request->cache.scope.shared_tokens(), 0u);
}

struct BadCase {
  std::string names;  // what the error must name
  absl::StatusCode code;
  std::function<void(v1::WorkerGenerateRequest&)> spoil;
};

TEST(RequestTranslationTest, BadFieldsAreRefusedByName) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  using Message = v1::WorkerGenerateRequest;
  const auto invalid = absl::StatusCode::kInvalidArgument;
  const auto unbuilt = absl::StatusCode::kUnimplemented;
  const BadCase cases[] = {
      {"temperature", invalid, [](Message& m) { m.mutable_sampling()->set_temperature(2.1f); }},
      {"temperature", invalid, [](Message& m) { m.mutable_sampling()->set_temperature(-1); }},
      {"temperature", invalid, [](Message& m) { m.mutable_sampling()->set_temperature(kNan); }},
      {"top_p", invalid, [](Message& m) { m.mutable_sampling()->set_top_p(0); }},
      {"top_p", invalid, [](Message& m) { m.mutable_sampling()->set_top_p(kNan); }},
      {"top_k", invalid, [](Message& m) { m.mutable_sampling()->set_top_k(1u << 31); }},
      {"seed", invalid, [](Message& m) { m.mutable_sampling()->clear_seed(); }},
      {"max_tokens", invalid, [](Message& m) { m.mutable_stop()->clear_max_tokens(); }},
      {"block_keys", invalid, [](Message& m) { m.set_block_keys("short"); }},
      {"tenant", invalid, [](Message& m) { m.set_tenant(std::string(257, 't')); }},
      {"stop_token_ids", invalid,
       [](Message& m) {
         for (int i = 0; i < 257; ++i) m.mutable_stop()->add_stop_token_ids(i);
       }},
      {"cache_scope.kind", invalid,
       [](Message& m) { m.mutable_cache_scope()->set_kind(static_cast<v1::CacheScope::Kind>(9)); }},
      {"space_required", absl::StatusCode::kFailedPrecondition,
       [](Message& m) { m.set_space_required(std::string(32, 'x')); }},
      {"logit_bias", invalid,
       [](Message& m) {
         for (int i = 0; i < 1025; ++i) (*m.mutable_sampling()->mutable_logit_bias())[i] = 2;
       }},
      {"top_logprobs", unbuilt, [](Message& m) { m.set_top_logprobs(0); }},
      {"retention", unbuilt,
       [](Message& m) { m.mutable_retention()->mutable_h2o()->set_heavy(1); }},
      {"shared_tokens", unbuilt,
       [](Message& m) { m.mutable_cache_scope()->set_shared_tokens(32); }},
  };
  for (const BadCase& bad : cases) {
    Message message = Valid();
    bad.spoil(message);
    Status status = FromProto(message, Model()).status();
    EXPECT_EQ(status.code(), bad.code) << bad.names << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(bad.names));
  }
}

TEST(RequestTranslationTest, TheFinishMessageCarriesUsage) {
  GenerationResult result;
  result.reason = FinishReason::kLength;
  result.usage = {.prompt_tokens = 10,
                  .completion_tokens = 4,
                  .computed = 1,
                  .local = 2,
                  .ram = 3,
                  .disk = 4,
                  .recomputed = 5,
                  .pushed = 6};
  v1::WorkerGenerateResponse message;
  FillFinish(result, message);
  EXPECT_EQ(message.finish_reason(), v1::LENGTH);
  EXPECT_EQ(message.usage().prompt_tokens(), 10u);
  EXPECT_EQ(message.usage().completion_tokens(), 4u);
  EXPECT_EQ(message.usage().computed(), 1u);
  EXPECT_EQ(message.usage().local(), 2u);
  EXPECT_EQ(message.usage().ram(), 3u);
  EXPECT_EQ(message.usage().disk(), 4u);
  EXPECT_EQ(message.usage().recomputed(), 5u);
  EXPECT_EQ(message.usage().pushed(), 6u);
}

}  // namespace
}  // namespace pagoda::worker
