#include "services/router/worker_registry.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/field_error.h"
#include "services/router/prompt_keys.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

class WorkerRegistryTest : public ::testing::Test {
 protected:
  static v1::RegisterRequest Registration(std::string name, uint64_t instance_id) {
    v1::RegisterRequest request;
    request.set_name(std::move(name));
    request.set_instance_id(instance_id);
    request.set_grpc_address("127.0.0.1:1");
    request.mutable_protocol()->set_min(1);
    request.mutable_protocol()->set_max(3);
    request.mutable_space()->set_weights(std::string(32, 'w'));
    request.mutable_space()->set_layout(std::string(32, 'l'));
    request.mutable_space()->set_block_tokens(32);
    request.mutable_limits()->set_max_model_len(300);
    return request;
  }
  Status Register(const v1::RegisterRequest& request) {
    return registry_.Register(request).status();
  }
  Status Report(uint64_t stream, uint64_t instance_id) {
    v1::ReportRequest report;
    report.set_instance_id(instance_id);
    return registry_.OnReport(stream, report).status();
  }

  const std::shared_ptr<const ServedModel> model_ = testing::MakeTestModel();
  placement::Placement placement_{*placement::MakePolicy("round_robin", 1), SystemClock::Get()};
  ManualClock clock_;
  KillerTable killers_{&clock_};
  WorkerRegistry registry_{
      {.router_id = 77, .max_workers = 3}, model_, &placement_, &killers_, &clock_};
};

TEST_F(WorkerRegistryTest, AWorkerIsLiveFromItsFirstReportToTheEndOfItsStream) {
  auto response = registry_.Register(Registration("w0", 5));
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->router_id(), 77u);
  EXPECT_EQ(response->space().size(), 32u);
  EXPECT_EQ(placement_.num_workers(), 0u);
  EXPECT_TRUE(Report(1, 5).ok());
  EXPECT_EQ(placement_.num_workers(), 1u);
  EXPECT_EQ(registry_.Live().size(), 1u);
  EXPECT_EQ(registry_.max_model_len(), 300u);
  registry_.OnReportsEnded(1);
  EXPECT_EQ(placement_.num_workers(), 0u);
  EXPECT_EQ(registry_.Find(5), nullptr);
  EXPECT_EQ(registry_.max_model_len(), testing::kTestContext);
  EXPECT_EQ(Report(2, 5).code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerRegistryTest, AnOldStreamsEndDoesNotTouchANewRegistration) {
  ASSERT_TRUE(Register(Registration("w0", 5)).ok());
  ASSERT_TRUE(Report(1, 5).ok());
  ASSERT_TRUE(Register(Registration("w0", 5)).ok());
  ASSERT_TRUE(Report(2, 5).ok());
  registry_.OnReportsEnded(1);
  EXPECT_EQ(placement_.num_workers(), 1u);
}

TEST_F(WorkerRegistryTest, ALiveNameIsTakenAndASilentOneIsNot) {
  ASSERT_TRUE(Register(Registration("w0", 5)).ok());
  EXPECT_TRUE(Register(Registration("w0", 6)).ok());
  ASSERT_TRUE(Report(1, 6).ok());
  EXPECT_EQ(Register(Registration("w0", 7)).code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(WorkerRegistryTest, TheNumberOfWorkersIsBounded) {
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(Register(Registration("w" + std::to_string(id), id)).ok());
  }
  ASSERT_TRUE(Report(1, 1).ok());
  ASSERT_TRUE(Report(2, 2).ok());
  EXPECT_TRUE(Register(Registration("w4", 4)).ok());  // the silent w3 gave way
  ASSERT_TRUE(Report(4, 4).ok());
  EXPECT_EQ(Register(Registration("w5", 5)).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(WorkerRegistryTest, BadRegistrationsAreRefusedByField) {
  auto field = [&](auto change) {
    v1::RegisterRequest request = Registration("w0", 5);
    change(request);
    return ErrorField(Register(request));
  };
  using R = v1::RegisterRequest&;
  EXPECT_EQ(field([](R r) { r.set_name(""); }), "name");
  EXPECT_EQ(field([](R r) { r.set_name("Worker 0"); }), "name");
  EXPECT_EQ(field([](R r) { r.set_instance_id(0); }), "instance_id");
  EXPECT_EQ(field([](R r) { r.set_grpc_address("nowhere"); }), "grpc_address");
  EXPECT_EQ(field([](R r) { r.mutable_space()->set_weights("short"); }), "space");
  EXPECT_EQ(field([](R r) { r.mutable_space()->set_block_tokens(0); }), "space");
}

TEST_F(WorkerRegistryTest, AnotherProtocolOrModelIsAFailedPrecondition) {
  v1::RegisterRequest request = Registration("w0", 5);
  request.mutable_protocol()->set_min(2);
  EXPECT_EQ(Register(request).code(), absl::StatusCode::kFailedPrecondition);
  request = Registration("w0", 5);
  request.set_text_digest(std::string(AsBytes(model_->text().digest())));
  EXPECT_TRUE(Register(request).ok());
  request.set_text_digest(std::string(32, 'x'));
  EXPECT_EQ(Register(request).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerRegistryTest, ADrainedWorkerIsListedAndGetsNothing) {
  ASSERT_TRUE(Register(Registration("w0", 5)).ok());
  ASSERT_TRUE(Report(1, 5).ok());
  EXPECT_EQ(registry_.List().workers(0).state(), "ready");
  EXPECT_TRUE(registry_.Drain("w0").ok());
  EXPECT_EQ(registry_.List().workers(0).state(), "draining");
  EXPECT_EQ(placement_.Place({.prompt_tokens = 1}).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(Report(1, 5).ok());  // a report does not undo it
  EXPECT_FALSE(placement_.Place({.prompt_tokens = 1}).ok());
  EXPECT_EQ(registry_.Drain("zz").code(), absl::StatusCode::kNotFound);
}

TEST_F(WorkerRegistryTest, PromptKeysAreMadeOncePerIdentity) {
  ASSERT_TRUE(Register(Registration("w0", 1)).ok());
  ASSERT_TRUE(Register(Registration("w1", 2)).ok());
  v1::RegisterRequest other = Registration("w2", 3);
  other.mutable_space()->set_numerics("cpu-int8-r1");
  ASSERT_TRUE(Register(other).ok());
  for (uint64_t id = 1; id <= 3; ++id) ASSERT_TRUE(Report(id, id).ok());

  RequestPlan plan;
  plan.prompt_ids.resize(100, 5);
  PromptKeys keys(plan, {}, registry_.Live());
  ASSERT_EQ(keys.prefixes().size(), 2u);
  EXPECT_EQ(keys.prefixes()[0].fingerprints.size(), 3u);  // full blocks of 32
  std::string first = keys.BlockKeysFor(*registry_.Find(1));
  EXPECT_EQ(first.size(), 3 * 32u);
  EXPECT_EQ(first, keys.BlockKeysFor(*registry_.Find(2)));
  EXPECT_NE(first, keys.BlockKeysFor(*registry_.Find(3)));

  plan.scope = CacheScope::None();
  EXPECT_TRUE(PromptKeys(plan, {}, registry_.Live()).prefixes().empty());
}

}  // namespace
}  // namespace pagoda::router
