// Generations without a server in front of them: limits, ends, cancels, and books that add up.
#include "services/router/generation.h"

#include <atomic>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/health_monitor.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/recording_sink.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

using testing::AnswerText;
using testing::ByteIds;
using testing::FakeAnswer;
using testing::FakeWorker;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingSink;

class GenerationTest : public ::testing::Test {
 protected:
  explicit GenerationTest(size_t limit = ActiveGenerations::kDefaultLimit) : active_(limit) {
    core_.model = model_;
    core_.placement = &placement_;
    core_.workers = &registry_;
    core_.metrics = &router_metrics_;
    core_.active = &active_;
    core_.killers = &killers_;
    core_.limits.resume_wait = std::chrono::milliseconds(50);
    monitor_.Start();
  }
  // A sink hears the end before the generation has let go of what it uses.
  ~GenerationTest() override {
    active_.CancelAll();
    EXPECT_TRUE(active_.WaitUntilEmpty(SystemClock::Get()->Now() + std::chrono::seconds(60)));
  }

  FakeWorker& Add(std::string name, FakeWorker::Script script) {
    workers_.push_back(std::make_unique<FakeWorker>(std::move(name), std::move(script)));
    v1::RegisterRequest registration = workers_.back()->Registration();
    EXPECT_TRUE(registry_.Register(registration).ok());
    v1::ReportRequest report;
    report.set_instance_id(registration.instance_id());
    EXPECT_TRUE(registry_.OnReport(workers_.size(), report).ok());
    return *workers_.back();
  }

  RequestPlan Plan() {
    v1::GenerateRequest request;
    request.set_text("q");
    RequestPlan plan = *PlanRequest(request, model_, {.max_model_len = 512});
    plan.arrived = core_.clock->Now();
    plan.deadline = plan.arrived + std::chrono::seconds(60);
    return plan;
  }

  const std::shared_ptr<const ServedModel> model_ = testing::MakeTestModel();
  placement::Placement placement_{*placement::MakePolicy("round_robin", 1), SystemClock::Get()};
  KillerTable killers_{SystemClock::Get()};
  // Its workers report once.
  WorkerRegistry registry_{{.router_id = 7, .health = {.frozen_after = std::chrono::hours(1)}},
                           model_,
                           &placement_,
                           &killers_,
                           SystemClock::Get()};
  Metrics metrics_;
  RouterMetrics router_metrics_{&metrics_};
  ActiveGenerations active_;
  RouterCore core_{.clock = SystemClock::Get()};
  HealthMonitor monitor_{&core_};
  std::vector<std::unique_ptr<FakeWorker>> workers_;
};

TEST_F(GenerationTest, AStreamWithoutAFinishReasonIsTriedElsewhere) {
  Add("a", [](const auto&) { return FakeAnswer{.finish = v1::FINISH_REASON_UNSPECIFIED}; });
  Add("b", [](const auto& request) { return AnswerText(request, "fine"); });
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  RecordingSink::Result result = sink->End();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), "fine");
  EXPECT_EQ(result.usage.retries(), 1u);
  // Its books are closed after its client has heard of the end.
  EXPECT_TRUE(active_.WaitUntilEmpty(core_.clock->Now() + std::chrono::seconds(20)));
}

TEST_F(GenerationTest, APoolThatIsTooSmallDoesNotHideThatALargerOneWasFull) {
  std::atomic<int> asked = 0;
  auto script = [&](const auto&) {
    return FakeAnswer{.status = ++asked == 2 ? absl::ResourceExhaustedError("the queue is full")
                                             : absl::OutOfRangeError("the pool has 20 blocks")};
  };
  for (const char* name : {"a", "b", "c"}) Add(name, script);
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(asked, 3);
}

TEST_F(GenerationTest, WorkersWithTooSmallAPoolDoNotKeepTheRequestFromALargerOne) {
  std::atomic<int> asked = 0;
  auto script = [&](const auto& request) {
    return ++asked == kMaxAttempts + 2
               ? AnswerText(request, "fine")
               : FakeAnswer{.status = absl::OutOfRangeError("the pool has 20 blocks")};
  };
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, script);
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  RecordingSink::Result result = sink->End();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), "fine");
}

TEST_F(GenerationTest, EachWorkerIsAskedOnceWhenEveryPoolIsTooSmall) {
  auto script = [](const auto&) {
    return FakeAnswer{.status = absl::OutOfRangeError("20 blocks")};
  };
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, script);
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kOutOfRange);
  for (auto& worker : workers_) EXPECT_EQ(worker->requests().size(), 1u);
}

TEST_F(GenerationTest, AnotherWorkerAtAnOldAddressIsNotTheClientsFault) {
  Add("a", [](const auto&) {
    return FakeAnswer{.status = absl::FailedPreconditionError("not this worker's space")};
  });
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(GenerationTest, AWorkerThatSendsMoreThanWasAskedForIsCancelled) {
  Add("a", [](const auto&) {
    return FakeAnswer{.messages = {ByteIds("ab"), ByteIds("c"), ByteIds("de")}, .hang = true};
  });
  auto sink = std::make_shared<RecordingSink>();
  RequestPlan plan = Plan();
  plan.max_tokens = 4;
  Generation::Start(&core_, std::move(plan), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(sink->text(), "abc");
  EXPECT_TRUE(workers_[0]->WaitForCancel());
  EXPECT_EQ(placement_.num_in_flight(), 0u);
}

TEST_F(GenerationTest, TooLongAFirstMessageIsNotDeliveredAndTheRequestIsTriedElsewhere) {
  Add("a", [](const auto&) { return FakeAnswer{.messages = {ByteIds("abcde")}, .hang = true}; });
  Add("b", [](const auto& request) { return AnswerText(request, "fine"); });
  auto sink = std::make_shared<RecordingSink>();
  RequestPlan plan = Plan();
  plan.max_tokens = 4;
  Generation::Start(&core_, std::move(plan), sink);
  RecordingSink::Result result = sink->End();
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), "fine");
  EXPECT_EQ(result.usage.retries(), 1u);
}

TEST_F(GenerationTest, AWorkerThatGivesUpByItselfIsADeadline) {
  Add("a", [](const auto&) { return FakeAnswer{.finish = v1::CANCELLED}; });
  auto sink = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(GenerationTest, TheDeadlineEndsAWorkerThatHangs) {
  Add("a", [](const auto&) { return FakeAnswer{.hang = true}; });
  auto sink = std::make_shared<RecordingSink>();
  RequestPlan plan = Plan();
  plan.deadline = core_.clock->Now() + std::chrono::milliseconds(30);
  Generation::Start(&core_, std::move(plan), sink);
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(placement_.num_in_flight(), 0u);
}

TEST_F(GenerationTest, ACancelledOneEndsOnceAndIsNotTriedElsewhere) {
  Add("a", [](const auto&) { return FakeAnswer{.hang = true}; });
  Add("b", [](const auto& request) { return AnswerText(request, "never"); });
  auto sink = std::make_shared<RecordingSink>();
  auto generation = Generation::Start(&core_, Plan(), sink);
  generation->Cancel();
  generation->Cancel();
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(workers_[1]->requests().size(), 0u);
  EXPECT_EQ(sink->ends(), 1);
}

class LimitedGenerationTest : public GenerationTest {
 protected:
  LimitedGenerationTest() : GenerationTest(1) {}
};

TEST_F(LimitedGenerationTest, TheNumberOfRunningOnesIsBounded) {
  Add("a", [](const auto&) { return FakeAnswer{.hang = true}; });
  auto first_sink = std::make_shared<RecordingSink>();
  auto second_sink = std::make_shared<RecordingSink>();
  auto first = Generation::Start(&core_, Plan(), first_sink);
  Generation::Start(&core_, Plan(), second_sink);
  EXPECT_EQ(second_sink->End().status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(active_.size(), 1u);
  active_.CancelAll();
  EXPECT_EQ(first_sink->End().status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(active_.WaitUntilEmpty(core_.clock->Now() + std::chrono::seconds(20)));
  auto late = std::make_shared<RecordingSink>();
  Generation::Start(&core_, Plan(), late);
  EXPECT_EQ(late->End().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(GenerationTest, RandomFailuresAndCancelsEndEachOnceAndLeaveNothingBehind) {  // R50
  uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::atomic<uint64_t> requests = seed;
  auto script = [&](const v1::WorkerGenerateRequest& request) {
    switch (std::hash<uint64_t>()(requests++) % 5) {
      case 0:
        return FakeAnswer{.status = absl::UnavailableError("ipv4:10.0.0.1:7100 is down")};
      case 1:
        return FakeAnswer{.messages = {{100}}, .status = absl::InternalError("at 10.0.0.1")};
      case 2:
        return FakeAnswer{.messages = {{100}}, .hang = true};
      default:
        return AnswerText(request, "ok");
    }
  };
  for (const char* name : {"a", "b", "c"}) Add(name, script);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  std::vector<std::thread> cancels;
  for (int i = 0; i < 200; ++i) {
    auto sink = std::make_shared<RecordingSink>();
    auto generation = Generation::Start(&core_, Plan(), sink);
    sinks.push_back(sink);
    if (random() % 2 == 1) continue;
    cancels.emplace_back([generation, delay = std::chrono::microseconds(random() % 1000)] {
      std::this_thread::sleep_for(delay);
      generation->Cancel();
    });
  }
  for (std::thread& thread : cancels) thread.join();
  active_.CancelAll();  // those that hang
  for (auto& sink : sinks) {
    EXPECT_THAT(std::string(sink->End().status.message()), Not(HasSubstr("10.0.0.1")));
  }
  EXPECT_TRUE(active_.WaitUntilEmpty(core_.clock->Now() + std::chrono::seconds(20)));
  for (auto& sink : sinks) EXPECT_EQ(sink->ends(), 1);
  EXPECT_EQ(placement_.CheckIntegrity(), absl::OkStatus());
  EXPECT_EQ(placement_.num_in_flight(), 0u);
}

}  // namespace
}  // namespace pagoda::router
