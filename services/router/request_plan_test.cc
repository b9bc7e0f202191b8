#include "services/router/request_plan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/field_error.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

class RequestPlanTest : public ::testing::Test {
 protected:
  StatusOr<RequestPlan> Plan(const v1::GenerateRequest& request) {
    return PlanRequest(request, model_, {.max_model_len = 100, .allow_placement_override = true});
  }
  Status Error(const v1::GenerateRequest& request) { return Plan(request).status(); }

  static v1::GenerateRequest Text(std::string_view text) {
    v1::GenerateRequest request;
    request.set_text(std::string(text));
    return request;
  }
  static v1::GenerateRequest Tokens(size_t count) {
    v1::GenerateRequest request;
    request.mutable_tokens()->mutable_ids()->Resize(static_cast<int>(count), 5);
    return request;
  }

  const std::shared_ptr<const ServedModel> model_ = testing::MakeTestModel();
};

TEST_F(RequestPlanTest, TextIsTokenisedAndDefaultsAreFilled) {
  auto plan = Plan(Text("q"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->prompt_ids, ElementsAreArray(testing::ByteIds("q")));
  EXPECT_EQ(plan->model_name, "tiny");
  EXPECT_EQ(plan->max_tokens, 16u);
  EXPECT_EQ(plan->sampling.temperature(), 1);
  EXPECT_EQ(plan->sampling.top_p(), 1);
  EXPECT_EQ(plan->request_id.size(), 32u);
}

TEST_F(RequestPlanTest, ASeedIsDrawnOnceIfTheClientSetNone) {
  EXPECT_NE(Plan(Text("q"))->sampling.seed(), Plan(Text("q"))->sampling.seed());
  v1::GenerateRequest request = Text("q");
  request.mutable_sampling()->set_seed(0);
  EXPECT_EQ(Plan(request)->sampling.seed(), 0u);
}

TEST_F(RequestPlanTest, ControlTokensAreParsedInPromptsAndPlainInMessages) {
  EXPECT_EQ(Plan(Text("<|im_end|>"))->prompt_ids.size(), 1u);
  v1::GenerateRequest chat;
  auto* message = chat.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("q");
  size_t plain = Plan(chat)->prompt_ids.size();
  message->set_content("<|im_end|>");
  EXPECT_GT(Plan(chat)->prompt_ids.size(), plain + 1);
}

TEST_F(RequestPlanTest, AChatMayFillTheRestOfTheContextByDefault) {
  v1::GenerateRequest chat;
  auto* message = chat.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("hello");
  auto plan = Plan(chat);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->max_tokens + plan->prompt_ids.size(), 100u);
}

TEST_F(RequestPlanTest, PromptAndOutputShareTheContext) {
  v1::GenerateRequest request = Tokens(90);
  request.mutable_stop()->set_max_tokens(10);
  EXPECT_TRUE(Plan(request).ok());
  request.mutable_stop()->set_max_tokens(11);
  Status status = Error(request);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorField(status), "max_tokens");
  EXPECT_EQ(ErrorCode(status), "context_length_exceeded");
  EXPECT_THAT(std::string(status.message()), HasSubstr("90 prompt tokens and 11 output tokens"));
  EXPECT_EQ(ErrorField(Error(Tokens(100))), "prompt");
  EXPECT_EQ(Plan(Tokens(95))->max_tokens, 5u);  // the default gives way
}

TEST_F(RequestPlanTest, AHopelessPromptIsRefusedBeforeItIsEncoded) {
  Status status = Error(Text(std::string(8 << 20, 'a')));
  EXPECT_EQ(ErrorCode(status), "context_length_exceeded");
  EXPECT_THAT(std::string(status.message()), HasSubstr("at least"));
}

TEST_F(RequestPlanTest, BadFieldsAreNamed) {
  auto field = [&](auto change) {
    v1::GenerateRequest request = Text("q");
    change(request);
    Status status = Error(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return ErrorField(status);
  };
  using R = v1::GenerateRequest&;
  EXPECT_EQ(field([](R r) { r.set_text(""); }), "prompt");
  EXPECT_EQ(field([](R r) { r.clear_prompt(); }), "prompt");
  EXPECT_EQ(field([](R r) { r.mutable_tokens(); }), "prompt");
  EXPECT_EQ(field([](R r) { r.mutable_tokens()->add_ids(512); }), "prompt");
  EXPECT_EQ(field([](R r) { r.mutable_chat(); }), "messages");
  EXPECT_EQ(field([](R r) { r.mutable_chat()->add_messages(); }), "messages[0].role");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_temperature(2.1f); }), "temperature");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_temperature(NAN); }), "temperature");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_top_p(0); }), "top_p");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_top_p(NAN); }), "top_p");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->set_max_tokens(0); }), "max_tokens");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->add_stop_token_ids(512); }), "stop_token_ids");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->mutable_stop_token_ids()->Resize(257, 1); }),
            "stop_token_ids");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->set_min_tokens(17); }), "min_tokens");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->add_stop(""); }), "stop");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->add_stop("\xff"); }), "stop");
  EXPECT_EQ(field([](R r) { r.mutable_stop()->add_stop(std::string(1025, 's')); }), "stop");
  EXPECT_EQ(field([](R r) {
              for (int i = 0; i < 5; ++i) r.mutable_stop()->add_stop("s");
            }),
            "stop");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_min_p(1.1f); }), "min_p");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_presence_penalty(2.1f); }),
            "presence_penalty");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_frequency_penalty(-2.1f); }),
            "frequency_penalty");
  EXPECT_EQ(field([](R r) { r.mutable_sampling()->set_repetition_penalty(0); }),
            "repetition_penalty");
  EXPECT_EQ(field([](R r) { (*r.mutable_sampling()->mutable_logit_bias())[512] = 1; }),
            "logit_bias");
  EXPECT_EQ(field([](R r) { (*r.mutable_sampling()->mutable_logit_bias())[1] = 101; }),
            "logit_bias");
  EXPECT_EQ(field([](R r) { r.set_n(0); }), "n");
  EXPECT_EQ(field([](R r) { r.set_n(17); }), "n");
  EXPECT_EQ(field([](R r) { r.set_priority(101); }), "priority");
  EXPECT_EQ(field([](R r) { r.set_tenant(std::string(257, 't')); }), "tenant");
}

TEST_F(RequestPlanTest, WhatIsNotBuiltIsRefusedByName) {
  auto field = [&](auto change) {
    v1::GenerateRequest request = Text("q");
    change(request);
    Status status = Error(request);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return ErrorField(status);
  };
  using R = v1::GenerateRequest&;
  EXPECT_EQ(field([](R r) { r.set_top_logprobs(0); }), "top_logprobs");
  EXPECT_EQ(field([](R r) { r.mutable_retention(); }), "retention");
  EXPECT_EQ(field([](R r) { r.mutable_cache_scope()->set_shared_tokens(1); }),
            "cache_scope.shared_tokens");
}

TEST_F(RequestPlanTest, ModelsAreKnownByTheirNamesAndDefault) {
  v1::GenerateRequest request = Text("q");
  request.set_model("default");
  EXPECT_EQ(Plan(request)->model_name, "tiny");
  request.set_model("tiny-alias");
  EXPECT_EQ(Plan(request)->model_name, "tiny-alias");
  request.set_model("gpt-4");
  EXPECT_EQ(Error(request).code(), absl::StatusCode::kNotFound);
}

TEST_F(RequestPlanTest, APinNeedsPermission) {
  v1::GenerateRequest request = Text("q");
  request.set_worker("w0");
  EXPECT_EQ(Plan(request)->pinned_worker, "w0");
  EXPECT_EQ(ErrorField(PlanRequest(request, model_, {.max_model_len = 100}).status()), "worker");
}

}  // namespace
}  // namespace pagoda::router
