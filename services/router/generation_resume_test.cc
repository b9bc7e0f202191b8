// Generations whose workers die, hang and drain in mid-stream, with time in the test's hand.
#include <array>
#include <atomic>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "services/router/generation.h"
#include "services/router/health_monitor.h"
#include "services/router/testing/fake_worker.h"
#include "services/router/testing/recording_sink.h"
#include "services/router/testing/test_model.h"

namespace pagoda::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ByteIds;
using ::testing::ElementsAre;
using testing::FakeAnswer;
using testing::FakeWorker;
using ::testing::HasSubstr;
using testing::RecordingSink;

constexpr char kText[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 z";  // characters of 1 to 4 bytes

// Sends what is missing of `text`, at most `tokens` of it, and then ends with `status`, or, when
// that was all and `status` is OK, as a finished answer.
FakeAnswer Continue(const v1::WorkerGenerateRequest& request, std::string_view text,
                    size_t tokens = 1000, Status status = absl::OkStatus()) {
  std::vector<uint32_t> ids = ByteIds(text);
  FakeAnswer answer;
  const auto begin = static_cast<size_t>(request.output_ids_size());
  EXPECT_LE(begin, ids.size());
  for (size_t i = 0; i < begin; ++i) EXPECT_EQ(request.output_ids(static_cast<int>(i)), ids[i]);
  for (size_t i = begin; i < ids.size() && i < begin + tokens; ++i) {
    answer.messages.push_back({ids[i]});
  }
  answer.status = std::move(status);
  answer.usage.set_prompt_tokens(static_cast<uint32_t>(request.prompt_ids_size()));
  answer.usage.set_computed(static_cast<uint32_t>(request.prompt_ids_size()));
  answer.usage.set_recomputed(static_cast<uint32_t>(begin));
  answer.usage.set_completion_tokens(static_cast<uint32_t>(ids.size()));
  return answer;
}

FakeAnswer HangAfter(const v1::WorkerGenerateRequest& request, size_t tokens) {
  FakeAnswer answer = Continue(request, kText, tokens);
  answer.hang = true;
  return answer;
}

const Status kGone = absl::UnavailableError("connection to 127.0.0.1:1234 lost");

class ResumeTest : public ::testing::Test {
 protected:
  ResumeTest() {
    core_.model = model_;
    core_.placement = &placement_;
    core_.workers = &registry_;
    core_.metrics = &router_metrics_;
    core_.active = &active_;
    core_.killers = &killers_;
  }
  ~ResumeTest() override {
    // A sink hears the end before the generation has let go of what it uses.
    active_.CancelAll();
    const TimePoint deadline = SystemClock::Get()->Now() + seconds(60);
    while (!active_.WaitUntilEmpty(SystemClock::Get()->Now() + milliseconds(2))) {
      if (SystemClock::Get()->Now() > deadline) break;
      monitor_.Tick();
    }
    EXPECT_EQ(active_.size(), 0u);
    EXPECT_EQ(placement_.CheckIntegrity(), absl::OkStatus());
  }

  FakeWorker& Add(std::string name, FakeWorker::Script script,
                  std::string numerics = "cpu-f32-r1") {
    workers_.push_back(std::make_unique<FakeWorker>(std::move(name), std::move(script)));
    workers_.back()->set_space_numerics(std::move(numerics));
    v1::RegisterRequest registration = workers_.back()->Registration();
    EXPECT_TRUE(registry_.Register(registration).ok());
    instances_.push_back(registration.instance_id());
    Report(workers_.size() - 1);
    return *workers_.back();
  }
  void Report(size_t worker, uint64_t steps = 0, uint32_t running = 0, bool draining = false) {
    v1::ReportRequest report;
    report.set_instance_id(instances_[worker]);
    report.set_step_counter(steps);
    report.set_running(running);
    report.set_draining(draining);
    EXPECT_TRUE(registry_.OnReport(worker + 1, report).ok());
  }
  void Die(size_t worker) { registry_.OnReportsEnded(worker + 1); }

  // In steps that are no stall of the process; `reports` are what workers say meanwhile.
  void Pass(Duration time, const std::function<void()>& reports) {
    for (Duration passed{}; passed < time; passed += milliseconds(200)) {
      clock_.Advance(milliseconds(200));
      reports();
      monitor_.Tick();
    }
  }

  RequestPlan Plan(std::string text = "q", uint32_t max_tokens = 100, float temperature = 0) {
    v1::GenerateRequest request;
    request.set_text(std::move(text));
    request.mutable_stop()->set_max_tokens(max_tokens);
    request.mutable_sampling()->set_temperature(temperature);
    RequestPlan plan = *PlanRequest(request, model_, {.max_model_len = 512});
    plan.arrived = clock_.Now();
    plan.deadline = SystemClock::Get()->Now() + std::chrono::hours(1);  // gRPC's own time
    return plan;
  }
  std::shared_ptr<RecordingSink> Start(RequestPlan plan) {
    auto sink = std::make_shared<RecordingSink>();
    Generation::Start(&core_, std::move(plan), sink);
    return sink;
  }
  // Ticks without letting time pass.
  RecordingSink::Result End(RecordingSink& sink) {
    const TimePoint deadline = SystemClock::Get()->Now() + seconds(60);
    while (SystemClock::Get()->Now() < deadline) {
      monitor_.Tick();
      if (auto result = sink.EndUntil(SystemClock::Get()->Now() + milliseconds(2))) return *result;
    }
    return sink.End();
  }
  void WaitForTokens(const RecordingSink& sink, size_t tokens) {
    const TimePoint deadline = SystemClock::Get()->Now() + seconds(60);
    while (sink.tokens() < tokens && SystemClock::Get()->Now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_GE(sink.tokens(), tokens);
  }
  void WaitForRequest(const FakeWorker& worker) {
    const TimePoint deadline = SystemClock::Get()->Now() + seconds(60);
    while (worker.requests().empty() && SystemClock::Get()->Now() < deadline) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    ASSERT_FALSE(worker.requests().empty());
  }
  std::string StateOf(int worker) { return registry_.List().workers(worker).state(); }

  const std::shared_ptr<const ServedModel> model_ = testing::MakeTestModel();
  ManualClock clock_;
  placement::Placement placement_{*placement::MakePolicy("round_robin", 1), &clock_};
  KillerTable killers_{&clock_};
  WorkerRegistry registry_{{.router_id = 7}, model_, &placement_, &killers_, &clock_};
  Metrics metrics_;
  RouterMetrics router_metrics_{&metrics_};
  ActiveGenerations active_;
  RouterCore core_{.clock = &clock_};
  HealthMonitor monitor_{&core_};
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::vector<uint64_t> instances_;
};

TEST_F(ResumeTest, R70R6AStreamCutAfterEveryTokenContinuesWithoutASeam) {
  std::atomic<size_t> cut = 0;
  auto script = [&](const auto& request) {
    return request.output_ids_size() == 0 && cut < 100
               ? Continue(request, kText, cut.exchange(100), kGone)
               : Continue(request, kText);
  };
  FakeWorker& a = Add("a", script);
  FakeWorker& b = Add("b", script);
  const size_t tokens = ByteIds(kText).size();
  for (float temperature : {0.f, 1.f}) {
    for (size_t index = 0; index <= tokens; ++index) {
      SCOPED_TRACE("cut after " + std::to_string(index));
      cut = index;
      const size_t from_a = a.requests().size(), from_b = b.requests().size();
      auto sink = Start(Plan(std::string(60, 'q'), 100, temperature));
      RecordingSink::Result result = End(*sink);
      ASSERT_TRUE(result.status.ok()) << result.status;
      EXPECT_EQ(sink->text(), kText);
      EXPECT_EQ(sink->ids(), ByteIds(kText));
      EXPECT_EQ(result.usage.retries(), 1u);
      EXPECT_EQ(result.usage.resumed(), index);
      EXPECT_EQ(result.usage.computed() + result.usage.recomputed(), 60 + index);
      EXPECT_EQ(result.usage.workers_size(), index == 0 || index == tokens ? 1 : 2);

      ASSERT_EQ(a.requests().size(), from_a + 1);
      ASSERT_EQ(b.requests().size(), from_b + 1);
      v1::WorkerGenerateRequest first = a.requests().back(), second = b.requests().back();
      if (first.output_ids_size() > second.output_ids_size()) std::swap(first, second);
      EXPECT_TRUE(first.sampling().has_seed());
      EXPECT_EQ(first.sampling().SerializeAsString(), second.sampling().SerializeAsString());
      EXPECT_EQ(first.stop().SerializeAsString(), second.stop().SerializeAsString());
      EXPECT_EQ(first.space_required(), second.space_required());
      EXPECT_EQ(second.output_ids_size(), static_cast<int>(index));
      EXPECT_EQ(second.block_keys().size(), 32 * ((60 + index) / 32));
    }
  }
}

TEST_F(ResumeTest, AStopStringEndsTheAnswerAndTheWorkersStreamAndNothingOfItComesOut) {
  FakeWorker& a = Add("a", [](const auto& request) {
    FakeAnswer answer = Continue(request, "one END two");
    answer.hang = true;
    return answer;
  });
  RequestPlan plan = Plan();
  plan.stop_strings = {"two", "END"};
  auto sink = Start(std::move(plan));
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.finish, v1::STOP);
  EXPECT_EQ(sink->text(), "one ");
  EXPECT_EQ(sink->ids(), ByteIds("one END"));
  EXPECT_EQ(result.usage.completion_tokens(), 7u);
  EXPECT_EQ(result.usage.prompt_tokens(), 1u);
  EXPECT_TRUE(a.WaitForCancel());
}

TEST_F(ResumeTest, R70AStopStringIsFoundWhereverTheStreamIsCut) {
  std::atomic<size_t> cut = 0;
  constexpr char kLong[] = "E EN one END two";
  auto script = [&](const auto& request) {
    return request.output_ids_size() == 0 && cut < 100
               ? Continue(request, kLong, cut.exchange(100), kGone)
               : Continue(request, kLong);
  };
  Add("a", script);
  Add("b", script);
  for (size_t index = 0; index < 12; ++index) {
    SCOPED_TRACE("cut after " + std::to_string(index));
    cut = index;
    RequestPlan plan = Plan("q" + std::to_string(index));
    plan.stop_strings = {"END"};
    auto sink = Start(std::move(plan));
    RecordingSink::Result result = End(*sink);
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.finish, v1::STOP);
    EXPECT_EQ(result.usage.resumed(), index);
    EXPECT_EQ(sink->text(), "E EN one ");
    EXPECT_EQ(sink->ids(), ByteIds("E EN one END"));
  }
}

TEST_F(ResumeTest, NoStopStringIsLookedForBeforeMinTokens) {
  Add("a", [](const auto& request) { return Continue(request, "END ENDEND"); });
  RequestPlan plan = Plan();
  plan.stop_strings = {"END"};
  plan.min_tokens = 5;  // "END E": what begins before its end is not found
  auto sink = Start(std::move(plan));
  EXPECT_EQ(End(*sink).finish, v1::STOP);
  EXPECT_EQ(sink->text(), "END END");
}

TEST_F(ResumeTest, WhatOnlyBeganLikeAStopStringComesAtTheEnd) {
  Add("a", [](const auto& request) { return Continue(request, "one EN"); });
  RequestPlan plan = Plan();
  plan.stop_strings = {"END"};
  auto sink = Start(std::move(plan));
  EXPECT_EQ(End(*sink).finish, v1::STOP);  // the model's own stop
  EXPECT_EQ(sink->text(), "one EN");
}

TEST_F(ResumeTest, AnAnswerWhoseWorkerDiedIsNotTheClientsFaultWhenTheNextPoolIsTooSmall) {
  core_.limits.resume_wait = Duration::zero();
  auto script = [](const auto& request) {
    return request.output_ids_size() == 0
               ? Continue(request, kText, 2, kGone)
               : FakeAnswer{.status = absl::OutOfRangeError("the pool has 20 blocks")};
  };
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, script);
  auto sink = Start(Plan());
  EXPECT_EQ(End(*sink).status.code(), absl::StatusCode::kUnavailable);
  size_t asked = 0;
  for (auto& worker : workers_) asked += worker->requests().size();
  EXPECT_EQ(asked, 5u);  // more than kMaxResumes
}

TEST_F(ResumeTest, AnAnswerThatIsCompleteNeedsNoOtherWorker) {
  Add("a", [](const auto& request) { return Continue(request, "abc", 3, kGone); });
  auto sink = Start(Plan("q", 3));
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.finish, v1::LENGTH);
  EXPECT_EQ(result.usage.completion_tokens(), 3u);
  EXPECT_EQ(result.usage.computed(), 0u);  // nobody said

  RequestPlan plan = Plan("r");
  plan.stop_token_ids = {ByteIds("c")[0]};
  sink = Start(std::move(plan));
  result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.finish, v1::STOP);
  EXPECT_EQ(sink->text(), "ab");
}

TEST_F(ResumeTest, TokensThatMayBeWrongAreNotContinuedNorTakenForAnAnswer) {
  const auto all = static_cast<uint32_t>(ByteIds(kText).size());
  uint32_t delivered = 0;
  auto script = [&](const auto& request) {
    return Continue(request, kText, delivered, absl::DataLossError("a KV block was found wrong"));
  };
  FakeWorker& a = Add("a", script);
  FakeWorker& b = Add("b", script);
  size_t attempts = 0;
  for (uint32_t tokens : {1u, all}) {
    delivered = tokens;
    auto sink = Start(Plan("q", all));
    RecordingSink::Result result = End(*sink);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(result.status.message(), HasSubstr("tokens so far may be wrong"));
    EXPECT_EQ(sink->ids().size(), tokens);
    EXPECT_EQ(a.requests().size() + b.requests().size(), ++attempts);
  }
}

TEST_F(ResumeTest, DataLossBeforeTheFirstTokenIsTriedElsewhere) {
  const Status lost = absl::DataLossError("a KV block was found wrong");
  Add("a", [&](const auto& r) { return Continue(r, kText, 0, lost); });
  Add("b", [](const auto& r) { return Continue(r, kText); });
  auto sink = Start(Plan());
  EXPECT_TRUE(End(*sink).status.ok());
  EXPECT_EQ(sink->text(), kText);
}

TEST_F(ResumeTest, AnAnswerIsContinuedTwiceAtMost) {
  for (const char* name : {"a", "b", "c", "d"}) {
    Add(name, [](const auto& request) {
      return Continue(request, kText, 1, absl::InternalError("127.0.0.1:5 broke"));
    });
  }
  auto sink = Start(Plan());
  RecordingSink::Result result = End(*sink);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(result.status.message(), "the worker failed");
  EXPECT_EQ(sink->ids().size(), 3u);
  EXPECT_EQ(result.usage.retries(), 2u);
  EXPECT_EQ(result.usage.workers_size(), 3);
  EXPECT_THAT(metrics_.Render(), HasSubstr("pagoda:router_resumes_total 2"));
}

TEST_F(ResumeTest, AWorkerOfAnotherSpaceNeverContinuesAndTheWaitEndsWithAnError) {
  Add("a", [](const auto& request) { return Continue(request, kText, 2, kGone); });
  auto sink = Start(Plan());
  WaitForTokens(*sink, 2);
  FakeWorker& b = Add(
      "b", [](const auto& request) { return Continue(request, kText); }, "cpu-int8-r1");
  auto alive = [&] { Report(1); };
  while (placement_.num_in_flight() > 0) std::this_thread::yield();
  Pass(milliseconds(9000), alive);
  EXPECT_EQ(sink->ends(), 0);
  Pass(milliseconds(2000), alive);
  RecordingSink::Result result = End(*sink);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(result.status.message(), "the worker went away or takes no requests");
  EXPECT_TRUE(b.requests().empty());
}

TEST_F(ResumeTest, AWorkerThatComesWhileTheAnswerWaitsContinuesIt) {
  Add("a", [](const auto& request) { return Continue(request, kText, 4, kGone); });
  auto sink = Start(Plan());
  WaitForTokens(*sink, 4);
  Die(0);
  Pass(milliseconds(3000), [] {});
  Add("b", [](const auto& request) { return Continue(request, kText); });
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), kText);
  EXPECT_THAT(result.usage.workers(), ElementsAre("a", "b"));
}

TEST_F(ResumeTest, ACancelEndsTheWait) {
  Add("a", [](const auto& request) { return Continue(request, kText, 4, kGone); });
  auto sink = std::make_shared<RecordingSink>();
  auto generation = Generation::Start(&core_, Plan(), sink);
  WaitForTokens(*sink, 4);
  generation->Cancel();
  EXPECT_EQ(End(*sink).status.code(), absl::StatusCode::kCancelled);
}

TEST_F(ResumeTest, BeforeTheFirstTokenNobodyWaits) {
  Add("a", [](const auto& request) { return Continue(request, kText, 0, kGone); });
  auto sink = Start(Plan());
  EXPECT_EQ(sink->End().status.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ResumeTest, AFrozenWorkerLosesItsStreamsAndGetsNoneUntilItReports) {
  Add("a", [](const auto& request) { return HangAfter(request, 3); });
  auto sink = Start(Plan());
  WaitForTokens(*sink, 3);
  Add("b", [](const auto& request) { return Continue(request, kText); });
  Pass(milliseconds(1800), [&] { Report(1); });
  EXPECT_EQ(StateOf(0), "ready");
  Pass(milliseconds(400), [&] { Report(1); });
  EXPECT_EQ(StateOf(0), "frozen");
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), kText);
  EXPECT_TRUE(workers_[0]->WaitForCancel());
  for (const char* prompt : {"r", "s"}) EXPECT_TRUE(End(*Start(Plan(prompt))).status.ok());
  EXPECT_EQ(workers_[0]->requests().size(), 1u);
  EXPECT_THAT(metrics_.Render(), HasSubstr("pagoda:router_worker_hangs_total{state=\"frozen\"} 1"));
  Report(0);
  EXPECT_EQ(StateOf(0), "ready");
}

TEST_F(ResumeTest, AWorkerWithWorkAndNoStepIsStuck) {
  Add("a", [](const auto& request) { return HangAfter(request, 3); });
  auto sink = Start(Plan());
  WaitForTokens(*sink, 3);
  Add("b", [](const auto& request) { return Continue(request, kText); });
  auto reports = [&] {
    Report(0, /*steps=*/5, /*running=*/1);
    Report(1);  // idle: may stand still for ever
  };
  Pass(milliseconds(9800), reports);
  EXPECT_EQ(StateOf(0), "ready");
  Pass(milliseconds(800), reports);
  EXPECT_EQ(StateOf(0), "stuck");
  EXPECT_EQ(StateOf(1), "ready");
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), kText);
  EXPECT_THAT(metrics_.Render(), HasSubstr("pagoda:router_worker_hangs_total{state=\"stuck\"} 1"));
  Report(0, /*steps=*/6, /*running=*/1);
  EXPECT_EQ(StateOf(0), "ready");
}

TEST_F(ResumeTest, AStallOfThisProcessIsNotHeldAgainstTheWorkers) {
  Add("a", [](const auto& request) { return Continue(request, kText); });
  monitor_.Tick();
  clock_.Advance(seconds(30));
  monitor_.Tick();
  EXPECT_EQ(StateOf(0), "ready");
}

TEST_F(ResumeTest, NoTokenWithinTheLimitIsAHangOfTheAttempt) {
  for (size_t tokens : {0u, 3u}) {
    const size_t first = workers_.size();
    FakeWorker& a = Add("a" + std::to_string(tokens),
                        [tokens](const auto& request) { return HangAfter(request, tokens); });
    auto sink = Start(Plan("q" + std::to_string(tokens)));
    WaitForRequest(a);
    WaitForTokens(*sink, tokens);
    Add("b" + std::to_string(tokens), [](const auto& request) { return Continue(request, kText); });
    uint64_t steps = 0;
    auto reports = [&] {
      Report(first, ++steps, 1);
      Report(first + 1);
    };
    // Until the first token, ten times the predicted time is added; round robin predicts none.
    Pass(milliseconds(59000), reports);
    EXPECT_EQ(sink->ends(), 0);
    Pass(milliseconds(2000), reports);
    EXPECT_TRUE(End(*sink).status.ok());
    EXPECT_EQ(sink->text(), kText);
    EXPECT_TRUE(a.WaitForCancel());
    Die(first);
    Die(first + 1);
  }
}

TEST_F(ResumeTest, R68DrainingWorkersHandOverWithoutBlame) {
  auto drains = [this](std::string name) {
    return [this, name](const v1::WorkerGenerateRequest& request) {
      EXPECT_TRUE(registry_.Drain(name).ok());
      return Continue(request, kText, 1, absl::UnavailableError("draining"));
    };
  };
  // More than the attempts and resumes of lost workers.
  for (const char* name : {"a", "b", "c", "d", "e"}) Add(name, drains(name));
  auto sink = Start(Plan());
  WaitForTokens(*sink, 5);
  Add("f", [](const auto& request) { return Continue(request, kText); });
  RecordingSink::Result result = End(*sink);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(sink->text(), kText);
  EXPECT_EQ(result.usage.workers_size(), 6);
  EXPECT_FALSE(killers_.Refused(FingerprintOf(Plan())));
}

TEST_F(ResumeTest, R67AWorkerThatReportsDrainingGetsNothingNew) {
  FakeWorker& a = Add("a", [](const auto& request) { return Continue(request, kText); });
  Add("b", [](const auto& request) { return Continue(request, kText); });
  Report(0, 0, 0, /*draining=*/true);
  EXPECT_EQ(StateOf(0), "draining");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(End(*Start(Plan())).status.ok());
  EXPECT_TRUE(a.requests().empty());
}

TEST_F(ResumeTest, ARequestThatTwoWorkersDiedOfIsRefusedAndTheThirdLives) {
  auto dies = [](const auto& request) { return Continue(request, kText, 1, kGone); };
  for (const char* name : {"a", "b", "c"}) Add(name, dies);
  RecordingSink::Result result = End(*Start(Plan("poison")));
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("workers died"));
  EXPECT_TRUE(workers_[2]->requests().empty());
  result = End(*Start(Plan("poison", 100)));  // the client tries again
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(workers_[2]->requests().empty());
  EXPECT_THAT(metrics_.Render(), HasSubstr("pagoda:router_killers_refused_total 2"));
}

}  // namespace
}  // namespace pagoda::router
