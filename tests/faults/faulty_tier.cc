#include "tests/faults/faulty_tier.h"

#include <charconv>
#include <map>
#include <utility>

#include "common/base/crc32c.h"
#include "common/kv/testing/test_blocks.h"

namespace pagoda::testing {
namespace {

// What happens to lookups, and to reads of all blocks or of about half of them.
struct Faults {
  Fault find = Fault::kNone;
  Fault get = Fault::kNone;
  bool half = false;
};

const std::map<std::string, Faults, std::less<>>& KnownFaults() {
  static const std::map<std::string, Faults, std::less<>> known = {
      {"none", {}},
      {"slow", {}},
      {"slow_reads", {}},
      {"full", {}},
      {"foreign_protocol", {}},
      {"overtaken", {}},
      {"refuse", {Fault::kFail, Fault::kFail}},
      {"corrupt", {Fault::kNone, Fault::kCorrupt}},
      {"truncated", {Fault::kNone, Fault::kTruncate}},
      {"cut", {Fault::kNone, Fault::kFail, true}},
      {"foreign", {Fault::kNone, Fault::kForeign}},
      {"tenant", {Fault::kNone, Fault::kOtherTenant}},
      {"other", {Fault::kNone, Fault::kOtherBlock}},
      {"divergent", {Fault::kNone, Fault::kDivergent}},
      {"lying", {Fault::kNone, Fault::kMissing, true}},
  };
  return known;
}

}  // namespace

FaultyTier::FaultyTier(std::shared_ptr<kvstore::ReservingStore> tier)
    : tier_(std::move(tier)),
      faulty_(std::make_shared<FaultyStore>(tier_, RandomFaults(0, {}))),
      delayed_(faulty_, SystemClock::Get(), [] { return Duration(0); }) {}

Status FaultyTier::SetFault(std::string_view text) {
  std::string_view name = text.substr(0, text.find(' '));
  auto known = KnownFaults().find(name);
  int delay_ms = 0;
  std::string_view number = text.substr(std::min(text.size(), name.size() + 1));
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), delay_ms);
  bool has_number = error == std::errc() && end == number.data() + number.size();
  bool slow = name == "slow" || name == "slow_reads";
  if (known == KnownFaults().end() || has_number != slow || number.empty() == slow) {
    return absl::InvalidArgumentError("\"" + std::string(text) + "\" is no fault");
  }
  Faults faults = known->second;
  faulty_->SetChooser([faults](FaultyCall call, const BlockRef& ref) {
    if (call == FaultyCall::kFind) return faults.find;
    bool spared = faults.half && ref.key.bytes[0] % 2 == 0;
    return spared ? Fault::kNone : faults.get;
  });
  delayed_.SetDelay([delay_ms] { return std::chrono::milliseconds(delay_ms); });
  quick_lookups_ = name == "slow_reads";
  refuses_puts_ = name == "refuse";
  foreign_protocol_ = name == "foreign_protocol";
  full_ = name == "full";
  overtaken_ = name == "overtaken";
  return absl::OkStatus();
}

void FaultyTier::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                             FindCallback done) {
  BlockStore& store = quick_lookups_ ? static_cast<BlockStore&>(*faulty_) : delayed_;
  store.FindMissing(context, std::move(refs), std::move(done));
}

// The faults know no parts of calls: each is a call of its own.
void FaultyTier::GetPart(kvstore::CallNumber, const CallContext& context,
                         std::vector<BlockRef> refs, std::shared_ptr<BlockSink> sink) {
  delayed_.Get(context, std::move(refs), std::move(sink));
}

void FaultyTier::Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) {
  delayed_.Put(context, std::move(blocks), std::move(done));
}

kvstore::ReserveResult FaultyTier::Reserve(kvstore::CallNumber call, const RecordHeader& header,
                                           const RecordMeta& meta) {
  if (full_) {
    return {nullptr, {PutOutcome::kNoRoom, 100, absl::ResourceExhaustedError("injected fault")}};
  }
  if (overtaken_) {
    std::string bytes(header.payload_bytes, '\x55');
    PutBlock other{header, meta, {}};
    other.header.payload_crc = Crc32c(bytes.data(), bytes.size());
    other.payload = OwnedView(std::move(bytes));
    tier_->Put({}, {std::move(other)}, [](const std::vector<PutResult>&) {});
  }
  return tier_->Reserve(call, header, meta);
}

}  // namespace pagoda::testing
