#include "tests/exactness/paths.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/kv/testing/faulty_store.h"

namespace pagoda::exactness {
namespace {

using kvstore::KvStoreServer;
using pagoda::testing::Fault;
using pagoda::testing::FaultyCall;
using pagoda::testing::FaultyStore;
using worker::GenerationUsage;

uint32_t Sum(const std::vector<GenerationUsage>& usages, uint32_t GenerationUsage::*field) {
  uint32_t sum = 0;
  for (const GenerationUsage& usage : usages) sum += usage.*field;
  return sum;
}

// Each prompt token came from the pool or the store if it may, and was computed if it must.
void ExpectReused(Trial& trial, const std::vector<GenerationUsage>& usages) {
  for (const GenerationUsage& usage : usages) {
    trial.ExpectTaken(Reusable(usage.prompt_tokens), usage.local + usage.ram + usage.disk,
                      "reused prompt tokens");
    trial.ExpectTaken(usage.prompt_tokens - Reusable(usage.prompt_tokens), usage.computed,
                      "computed prompt tokens");
  }
}

void Uncached(Trial& trial) {
  auto worker = trial.NewWorker();
  for (const GenerationUsage& usage :
       trial.AskEach(*worker, trial.subject().all(), CacheScope::None())) {
    trial.ExpectTaken(usage.prompt_tokens, usage.computed, "computed prompt tokens");
  }
}

void LocalReuse(Trial& trial) {
  auto worker = trial.NewWorker();
  trial.AskEach(*worker, trial.subject().all(), CacheScope::Tenant());
  const auto usages = trial.AskEach(*worker, trial.subject().all(), CacheScope::Tenant());
  ExpectReused(trial, usages);
  trial.ExpectTaken(Sum(usages, &GenerationUsage::local) > 0, "local > 0");
}

// A worker that answers everything and leaves its blocks in the store.
void ComputeAndPush(Trial& trial, const KvStoreServer& store) {
  auto worker = trial.NewWorker({.store = Trial::Connect(store)});
  trial.AskEach(*worker, trial.subject().all(), CacheScope::Tenant());
  worker->WaitForPushes();
}

// One worker computes and pushes, another one loads. Returns what the second one says.
std::vector<GenerationUsage> ComputedThereAskedHere(Trial& trial, const KvStoreServer& store) {
  ComputeAndPush(trial, store);
  auto worker = trial.NewWorker({.store = Trial::Connect(store)});
  return trial.AskEach(*worker, trial.subject().all(), CacheScope::Tenant());
}

void FromRam(Trial& trial) {
  auto store = trial.NewStore();
  const auto usages = ComputedThereAskedHere(trial, *store);
  ExpectReused(trial, usages);
  trial.ExpectTaken(Sum(usages, &GenerationUsage::ram) > 0, "ram > 0");
}

void FromDisk(Trial& trial) {
  auto store = trial.NewDiskStore();
  const auto usages = ComputedThereAskedHere(trial, *store);
  trial.ExpectTaken(Sum(usages, &GenerationUsage::disk) > 0, "disk > 0");
}

// The store that computed blocks were pushed to is gone; another one reads its folder.
void FromRestartedStore(Trial& trial) {
  ComputeAndPush(trial, *trial.NewDiskStore());
  auto store = trial.NewDiskStore();
  auto worker = trial.NewWorker({.store = Trial::Connect(*store)});
  const auto usages = trial.AskEach(*worker, trial.subject().all(), CacheScope::Tenant());
  trial.ExpectTaken(Sum(usages, &GenerationUsage::disk) > 0, "disk > 0");
}

// A client through which every other block is promised and then is not there.
std::shared_ptr<FaultyStore> ConnectWithHoles(const KvStoreServer& store) {
  return std::make_shared<FaultyStore>(
      Trial::Connect(store), [](FaultyCall call, const BlockRef& ref) {
        return call == FaultyCall::kGet && ref.depth % 2 == 0 ? Fault::kMissing : Fault::kNone;
      });
}

// Holes are computed, and what lies behind them is used.
void FromRamWithHoles(Trial& trial) {
  auto store = trial.NewStore();
  ComputeAndPush(trial, *store);
  auto holes = ConnectWithHoles(*store);
  auto here = trial.NewWorker({.store = holes});
  const auto usages = trial.AskEach(*here, trial.subject().all(), CacheScope::Tenant());
  trial.ExpectTaken(Sum(usages, &GenerationUsage::ram) > 0, "ram > 0");
  trial.ExpectTaken(holes->count(Fault::kMissing) > 0, "blocks were missing");
}

// A worker that computes everything itself, otherwise, must make the same KV bytes: the store
// compares checksums.
void SameKvBytes(Trial& trial) {
  auto store = trial.NewStore();
  const auto& which = trial.subject().some();
  auto first = trial.NewWorker({.store = Trial::Connect(*store)});
  trial.AskEach(*first, which, CacheScope::Tenant());
  first->WaitForPushes();
  auto second =
      trial.NewWorker({.threads = 2, .chunk = 7, .store = Trial::Connect(*store), .load = false});
  trial.AskEach(*second, which, CacheScope::Tenant());
  second->WaitForPushes();
  trial.ExpectTaken(first->pushes("stored") > 0, "blocks were stored");
  trial.ExpectTaken(first->pushes("stored"), second->pushes("have"), "blocks held, equal");
  trial.ExpectTaken(0, second->pushes("divergent"), "divergent blocks");
}

void Together(Trial& trial) {
  auto worker = trial.NewWorker();
  trial.AskTogether(*worker, CacheScope::None());
  trial.ExpectTaken(worker->stats().max_step_seqs >= 8, "8 sequences in a step");
}

// Equal prompts at once: one computes, the other takes its blocks as they come.
void TogetherSharing(Trial& trial) {
  auto worker = trial.NewWorker();
  const auto usages = trial.AskTogether(*worker, CacheScope::Tenant());
  trial.ExpectTaken(worker->stats().max_step_seqs >= 8, "8 sequences in a step");
  trial.ExpectTaken(Sum(usages, &GenerationUsage::local) > 0, "local > 0");
}

// Whole prompts only, between the decodes of others.
void TogetherUnchunked(Trial& trial) {
  auto worker = trial.NewWorker({.chunked_prefill = false});
  trial.AskTogether(*worker, CacheScope::None());
  trial.ExpectTaken(worker->stats().max_step_seqs >= 8, "8 sequences in a step");
}

// A tight pool, uneven chunks, two threads, holes in what is loaded, and all of it at once. Whether
// it comes to a preemption depends on when loads arrive: a few attempts.
void AllAtOnce(Trial& trial) {
  constexpr int kAttempts = 20;
  auto store = trial.NewStore();
  ComputeAndPush(trial, *store);
  double preemptions = 0;
  for (int i = 0; i < kAttempts && preemptions == 0; ++i) {
    auto worker = trial.NewWorker({.threads = 2,
                                   .chunk = 23,
                                   .num_blocks = trial.subject().tight_pool_blocks(),
                                   .store = ConnectWithHoles(*store)});
    const auto usages = trial.AskTogether(*worker, CacheScope::Tenant());
    trial.ExpectTaken(Sum(usages, &GenerationUsage::ram) > 0, "ram > 0");
    preemptions = worker->preemptions();
  }
  trial.ExpectTaken(preemptions >= 1, "preemptions >= 1");
}

template <int kChunk>
void InChunks(Trial& trial) {
  auto worker = trial.NewWorker({.chunk = kChunk});
  const auto& which = kChunk == 64 ? trial.subject().all() : trial.subject().some();
  trial.AskEach(*worker, which, CacheScope::None());
  size_t steps = 0;
  for (size_t index : which) {
    const Question& question = trial.question(index);
    steps += (question.prompt.size() + kChunk - 1) / kChunk + question.max_tokens - 1;
  }
  trial.ExpectTaken(static_cast<double>(steps), static_cast<double>(worker->stats().steps),
                    "steps");
}

template <int kThreads>
void OnThreads(Trial& trial) {
  auto worker = trial.NewWorker({.threads = kThreads});
  trial.ExpectTaken(kThreads, worker->threads(), "threads");
  trial.AskEach(*worker, trial.subject().some(), CacheScope::None());
}

void OnIsa(Trial& trial, const char* isa) {
  auto worker = trial.NewWorker({.isa = isa});
  trial.ExpectTaken(std::strcmp(worker->isa(), isa) == 0, std::string("isa ") + isa);
  trial.AskEach(*worker, trial.subject().fewest(), CacheScope::None());
}
void Scalar(Trial& trial) { OnIsa(trial, "scalar"); }
void Avx2(Trial& trial) { OnIsa(trial, "avx2"); }

// What is lost is computed again or, under a
// scope with keys, partly found again.
void Preempted(Trial& trial) {
  for (const CacheScope& scope : {CacheScope::None(), CacheScope::Tenant()}) {
    auto worker = trial.NewWorker({.num_blocks = trial.subject().tight_pool_blocks()});
    const auto usages = trial.AskTogether(*worker, scope);
    trial.ExpectTaken(worker->preemptions() >= 1, "preemptions >= 1");
    trial.ExpectTaken(scope.keyed() || Sum(usages, &GenerationUsage::recomputed) > 0,
                      "recomputed > 0");
  }
}

// After the first token, around the border of a block, half-way and before the last one.
std::vector<size_t> Cuts(const Question& question) {
  const size_t to_border =
      TestWorker::kBlockTokens - question.prompt.size() % TestWorker::kBlockTokens;
  std::vector<size_t> cuts = {1, to_border, to_border + 1, question.max_tokens / 2,
                              question.max_tokens - 1};
  std::erase_if(cuts, [&](size_t cut) { return cut >= question.max_tokens; });
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

void ExpectResumed(Trial& trial, const GenerationUsage& usage, size_t cut, uint32_t reused) {
  trial.ExpectTaken(usage.prompt_tokens + static_cast<double>(cut) - reused,
                    usage.computed + usage.recomputed, "computed + recomputed");
}

void ResumedElsewhere(Trial& trial) {
  auto worker = trial.NewWorker();
  for (size_t index : trial.subject().some()) {
    for (size_t cut : Cuts(trial.question(index))) {
      ExpectResumed(trial, trial.Resume(*worker, index, cut, CacheScope::None()), cut, 0);
    }
  }
}

// The store holds what the lost worker had computed, generated blocks included.
void ResumedFromStore(Trial& trial) {
  auto store = trial.NewStore();
  auto lost = trial.NewWorker({.store = Trial::Connect(*store)});
  trial.AskEach(*lost, trial.subject().some(), CacheScope::Tenant());
  lost->WaitForPushes();
  uint32_t ram = 0;
  for (size_t index : trial.subject().some()) {
    for (size_t cut : Cuts(trial.question(index))) {
      auto worker = trial.NewWorker({.num_blocks = 32, .store = Trial::Connect(*store)});
      const GenerationUsage usage = trial.Resume(*worker, index, cut, CacheScope::Tenant());
      ExpectResumed(trial, usage, cut, Reusable(usage.prompt_tokens + cut));
      ram += usage.ram;
    }
  }
  trial.ExpectTaken(ram > 0, "ram > 0");
}

}  // namespace

const std::vector<Path>& Paths() {
  static const std::vector<Path> paths = {
      {"uncached", Uncached},
      {"local_reuse", LocalReuse},
      {"from_ram", FromRam},
      {"from_disk", FromDisk},
      {"from_restarted_store", FromRestartedStore, true},
      {"from_ram_with_holes", FromRamWithHoles, true},
      {"same_kv_bytes", SameKvBytes},
      {"together_8", Together},
      {"together_8_sharing", TogetherSharing, true},
      {"together_unchunked", TogetherUnchunked, true},
      {"chunks_of_1", InChunks<1>},
      {"chunks_of_7", InChunks<7>},
      {"chunks_of_64", InChunks<64>},
      {"whole_prompts", InChunks<512>},
      {"threads_1", OnThreads<1>},
      {"threads_2", OnThreads<2>},
      {"preempted", Preempted},
      {"resumed_elsewhere", ResumedElsewhere},
      {"resumed_from_store", ResumedFromStore},
      {"all_at_once", AllAtOnce, true},
      {"scalar", Scalar},
      {"avx2", Avx2},
  };
  return paths;
}

}  // namespace pagoda::exactness
