#include "tests/exactness/test_worker.h"

#include <cstring>
#include <thread>
#include <utility>

#include "common/base/mutex.h"
#include "services/worker/model_identity.h"

namespace pagoda::exactness {
namespace {

using worker::Engine;
using worker::KvTransfer;

// Long enough for every question.
constexpr int32_t kMaxModelLen = 512;
constexpr int32_t kMaxSeqs = 16;
// With the least rate a load is worth an hour's wait, and the clock stands still.
constexpr double kLeastPrefillRate = 1e-3;
// Real: these calls run against a real store on a machine that may be busy. Only ends hangs.
constexpr Duration kPatience = std::chrono::minutes(4);

const kernels::Ops* OpsOf(const std::string& isa) {
  const kernels::Ops* ops = nullptr;
  const kernels::KernelStatus status = kernels::SelectOps(isa, &ops);
  return status.ok() ? ops : nullptr;
}

}  // namespace

// Keeps what a request hears, and sees each row of logits as its mask (and forbids nothing).
class TestWorker::Client final : public worker::TokenSink, public worker::LogitsProcessor {
 public:
  bool HasRoom() override { return true; }
  void OnToken(TokenId token) override { answer_.tokens.push_back(token); }
  void Apply(std::span<float> logits) override {
    answer_.logits.emplace_back(logits.begin(), logits.end());
  }
  void OnFinish(const worker::GenerationResult& result) override {
    answer_.result = result;
    MutexLock lock(mutex_);
    done_ = true;
    finished_.SignalAll();
  }

  Answer Wait() {
    MutexLock lock(mutex_);
    while (!done_) finished_.Wait(mutex_);
    return answer_;
  }

 private:
  Answer answer_;  // the engine thread's until done_
  Mutex mutex_;
  CondVar finished_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

TestWorker::TestWorker(const Subject& subject, kernels::KvDtype kv, Settings settings)
    : settings_(std::move(settings)),
      team_(settings_.threads > 0 ? settings_.threads : subject.threads()),
      ops_(OpsOf(settings_.isa)) {
  clock_.Advance(SystemClock::Get()->Now() - clock_.Now());  // the store's client has a real one
  MakePool(subject.config(), kv);
  MakeRunner(subject);
  MakeEngine(subject.config());
}

TestWorker::~TestWorker() { engine_->Stop(); }

void TestWorker::MakePool(const model::ModelConfig& config, kernels::KvDtype kv) {
  const kernels::KvLayout layout = worker::KvPool::LayoutFor(config, kBlockTokens, kv).value();
  pool_ = worker::KvPool::Create(layout, settings_.num_blocks).value();
  for (int32_t block = 0; block < settings_.num_blocks; ++block) {
    std::memset(pool_->Bytes(worker::BlockId{block}).data(), 0xFF, pool_->block_bytes());
  }
  space_ = MakeSpace(worker::MakeSpaceFields(config, Sha256::Of("the suite's model"), layout.spec,
                                             kernels::kNumericsF32));
  namespace_ = MakeNamespace("", space_, "", 0, 0);
}

void TestWorker::MakeRunner(const Subject& subject) {
  const worker::StepLimits limits{.max_num_batched_tokens = settings_.chunk,
                                  .max_num_seqs = kMaxSeqs,
                                  .max_blocks_per_seq = kMaxModelLen / kBlockTokens};
  runner_ = worker::CpuModelRunner::Create({.config = subject.config(),
                                            .weights = &subject.weights(),
                                            .ops = ops_,
                                            .team = &team_,
                                            .pool = pool_->view(),
                                            .limits = limits})
                .value();
}

void TestWorker::MakeEngine(const model::ModelConfig& config) {
  if (settings_.store != nullptr) {
    transfer_ = KvTransfer::Make({.load = settings_.load,
                                  .space = space_,
                                  .block_tokens = kBlockTokens,
                                  .put_timeout = kPatience},
                                 settings_.store.get(), pool_.get(), &metrics_, &clock_)
                    .value();
  }
  Engine::Options options;
  options.vocabulary_size = static_cast<uint32_t>(config.vocabulary);
  options.max_model_len = kMaxModelLen;
  options.num_blocks = settings_.num_blocks;
  options.scheduler.block_tokens = kBlockTokens;
  options.scheduler.max_num_batched_tokens = settings_.chunk;
  options.scheduler.max_num_seqs = kMaxSeqs;
  options.scheduler.enable_chunked_prefill = settings_.chunked_prefill;
  options.store_patience.max_lookup = kPatience;
  options.prefill_tokens_per_second = kLeastPrefillRate;
  options.poison_freed_blocks = true;
  engine_.emplace(options, runner_.get(), pool_.get(), transfer_.get(), &engine_metrics_, &clock_);
}

worker::GenerationRequest TestWorker::RequestFor(const Ask& ask,
                                                 std::shared_ptr<Client> client) const {
  worker::GenerationRequest request;
  request.prompt_ids = ask.question->prompt;
  request.output_ids = ask.emitted;
  request.sampling = ask.question->sampling;
  request.mask = std::move(client);
  request.max_tokens = ask.question->max_tokens;
  request.cache = {
      .scope = ask.scope, .tenant_namespace = namespace_, .shared_namespace = namespace_};
  return request;
}

std::vector<Answer> TestWorker::AskAll(std::vector<Ask> asks) {
  std::vector<std::shared_ptr<Client>> clients;
  for (const Ask& ask : asks) {
    clients.push_back(std::make_shared<Client>());
    const StatusOr<worker::SequenceId> id =
        engine_->Submit(RequestFor(ask, clients.back()), clients.back());
    if (!id.ok()) clients.back()->OnFinish({.status = id.status()});
  }
  if (!std::exchange(started_, true)) engine_->Start();
  std::vector<Answer> answers;
  for (const auto& client : clients) answers.push_back(client->Wait());
  return answers;
}

void TestWorker::WaitForPushes() {
  const prometheus::Gauge& pending = metrics_.Gauge("kv_push_pending_blocks", "");
  while (pending.Value() != 0) std::this_thread::yield();
}

double TestWorker::preemptions() { return engine_metrics_.num_preemptions.Value(); }

double TestWorker::pushes(const std::string& result) {
  return metrics_.Counter("kv_push_blocks_total", "", {{"result", result}}).Value();
}

}  // namespace pagoda::exactness
