#include "common/kv/testing/faulty_store.h"

#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "common/base/crc32c.h"
#include "common/kv/testing/test_blocks.h"

namespace pagoda::testing {
namespace {

Status Injected() { return absl::UnavailableError("injected fault"); }

// Stands between the inner store and the caller's sink. Of a block that is to be damaged it borrows
// the bytes, damages them, and hands them on as a store would that had held them so.
class FaultySink final : public BlockSink {
 public:
  FaultySink(std::shared_ptr<BlockSink> sink, std::vector<Fault> faults)
      : sink_(std::move(sink)), faults_(std::move(faults)), headers_(faults_.size()) {}

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override {
    if (faults_[index] == Fault::kNone) return sink_->Begin(index, header);
    headers_[index] = header;
    return Destination::Lend();
  }

  void Done(size_t index, GetResult result) override {
    bool damage = faults_[index] != Fault::kNone && result.outcome == GetOutcome::kFound;
    sink_->Done(index, damage ? Damaged(index, result) : std::move(result));
  }

  void Finished() override { sink_->Finished(); }

 private:
  GetResult Damaged(size_t index, const GetResult& held) {
    RecordHeader header = headers_[index];
    std::string bytes(held.lent.bytes());
    switch (faults_[index]) {
      case Fault::kMissing:
        return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
      case Fault::kTruncate:
        bytes.pop_back();
        break;
      case Fault::kCorrupt:
        bytes[bytes.size() / 2] ^= 0x10;
        break;
      case Fault::kForeign:
        header.space.bytes[0] ^= 1;
        break;
      case Fault::kOtherTenant:
        header.name_space.bytes[0] ^= 1;
        break;
      case Fault::kOtherBlock:
        header.ref.key.bytes[0] ^= 1;
        if (header.ref.depth % kRunBlocks == 0) header.ref.anchor = header.ref.key;
        break;
      case Fault::kDivergent:
        bytes[0] ^= 1;
        header.payload_crc = Crc32c(bytes.data(), bytes.size());
        break;
      default:
        break;
    }
    return Deliver(index, header, std::move(bytes), held.tier);
  }

  GetResult Deliver(size_t index, const RecordHeader& header, std::string bytes, Tier tier) {
    StatusOr<Destination> destination = sink_->Begin(index, header);
    if (!destination.ok()) return {GetOutcome::kRefused, tier, destination.status(), {}};
    bool breaks = faults_[index] == Fault::kFail;
    if (destination->memory == nullptr) {
      if (breaks) return {GetOutcome::kFailed, Tier::kNone, Injected(), {}};
      return {GetOutcome::kFound, tier, absl::OkStatus(), OwnedView(std::move(bytes))};
    }
    std::memcpy(destination->memory, bytes.data(), breaks ? bytes.size() / 2 : bytes.size());
    if (breaks) return {GetOutcome::kFailed, Tier::kNone, Injected(), {}};
    if (Status status = CheckPayload(header, bytes); !status.ok()) {
      return {GetOutcome::kCorrupt, tier, status, {}};
    }
    return {GetOutcome::kFound, tier, absl::OkStatus(), {}};
  }

  const std::shared_ptr<BlockSink> sink_;
  const std::vector<Fault> faults_;
  std::vector<RecordHeader> headers_;
};

// The answer for a block that does not reach the inner store; kFailed with OK: it does.
PutResult Refusal(Fault fault) {
  switch (fault) {
    case Fault::kFail:
      return {PutOutcome::kFailed, 0, Injected()};
    case Fault::kMissing:
      return {PutOutcome::kStored, 0, absl::OkStatus()};
    case Fault::kNoRoom:
      return {PutOutcome::kNoRoom, 100, absl::ResourceExhaustedError("injected fault")};
    case Fault::kDivergent:
      return {PutOutcome::kDivergent, 0, absl::AlreadyExistsError("injected fault")};
    default:
      return {PutOutcome::kFailed, 0, absl::OkStatus()};
  }
}

bool IsRefusal(const PutResult& result) {
  return result.outcome != PutOutcome::kFailed || !result.status.ok();
}

}  // namespace

void FaultyStore::SetChooser(Choose choose) {
  MutexLock lock(mutex_);
  choose_ = std::move(choose);
}

uint64_t FaultyStore::count(Fault fault) const {
  MutexLock lock(mutex_);
  return counts_[static_cast<size_t>(fault)];
}

std::vector<Fault> FaultyStore::ChooseFor(FaultyCall call, const std::vector<BlockRef>& refs) {
  MutexLock lock(mutex_);
  std::vector<Fault> faults;
  faults.reserve(refs.size());
  for (const BlockRef& ref : refs) {
    faults.push_back(choose_(call, ref));
    ++counts_[static_cast<size_t>(faults.back())];
  }
  return faults;
}

void FaultyStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                              FindCallback done) {
  std::vector<Fault> faults = ChooseFor(FaultyCall::kFind, refs);
  inner_->FindMissing(context, std::move(refs),
                      [faults = std::move(faults), done = std::move(done)](FindResult result) {
                        for (size_t i = 0; result.status.ok() && i < faults.size(); ++i) {
                          if (faults[i] == Fault::kMissing) result.blocks[i] = {};
                          if (faults[i] == Fault::kPromise) result.blocks[i] = {true, false};
                        }
                        for (size_t i = 0; i < faults.size(); ++i) {
                          if (faults[i] != Fault::kFail) continue;
                          result.blocks[i] = {};
                          if (result.status.ok()) result.status = Injected();
                        }
                        done(std::move(result));
                      });
}

void FaultyStore::Get(const CallContext& context, std::vector<BlockRef> refs,
                      std::shared_ptr<BlockSink> sink) {
  std::vector<Fault> faults = ChooseFor(FaultyCall::kGet, refs);
  // Those that have no meaning here damage nothing.
  for (Fault& fault : faults) {
    if (fault == Fault::kPromise || fault == Fault::kNoRoom) fault = Fault::kNone;
  }
  inner_->Get(context, std::move(refs),
              std::make_shared<FaultySink>(std::move(sink), std::move(faults)));
}

void FaultyStore::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  std::vector<BlockRef> refs = RefsOf(blocks);
  std::vector<Fault> faults = ChooseFor(FaultyCall::kPut, refs);
  std::vector<PutResult> results(blocks.size());
  std::vector<PutBlock> passed;
  std::vector<size_t> places;
  for (size_t i = 0; i < blocks.size(); ++i) {
    results[i] = Refusal(faults[i]);
    if (IsRefusal(results[i])) continue;
    places.push_back(i);
    passed.push_back(std::move(blocks[i]));
  }
  inner_->Put(context, std::move(passed),
              [results = std::move(results), places = std::move(places),
               done = std::move(done)](std::vector<PutResult> answers) mutable {
                for (size_t i = 0; i < places.size(); ++i) {
                  results[places[i]] = std::move(answers[i]);
                }
                done(std::move(results));
              });
}

FaultyStore::Choose RandomFaults(uint64_t seed, std::map<Fault, double> rates) {
  auto random = std::make_shared<std::mt19937_64>(seed);
  return [random, rates = std::move(rates)](FaultyCall, const BlockRef&) {
    double chance = static_cast<double>((*random)() >> 11) * 0x1p-53;  // [0, 1)
    for (const auto& [fault, rate] : rates) {
      if (chance < rate) return fault;
      chance -= rate;
    }
    return Fault::kNone;
  };
}

}  // namespace pagoda::testing
