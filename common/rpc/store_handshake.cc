#include "common/rpc/store_handshake.h"

#include <algorithm>
#include <utility>

#include "common/base/logging.h"
#include "common/base/version.h"
#include "common/kv/block_store.h"
#include "common/rpc/channel.h"

namespace pagoda::rpc {
namespace {

// How long a store that was replaced unseen may be taken for the old one. Small beside the blocks
// of a second, and soon enough for a person who watches.
constexpr Duration kQuestionInterval = std::chrono::seconds(1);

constexpr StoreLimits kOwnLimits{kMaxMessageBytes, kMaxBlocksPerCall};

// A store that states no limit (0) has none that we could break.
template <typename T>
T Smaller(T own, uint64_t stated) {
  return stated == 0 ? own : static_cast<T>(std::min<uint64_t>(own, stated));
}

}  // namespace

StoreHandshake::StoreHandshake(std::string address, Metrics* metrics)
    : address_(std::move(address)), limits_(kOwnLimits) {
  if (metrics == nullptr) return;
  mismatches_ = &metrics->Counter("kv_handshake_mismatches_total",
                                  "answers of a KV store without a protocol version of ours");
  restarts_ = &metrics->Counter("kv_store_restarts_total",
                                "how often another instance of the KV store answered");
}

StatusOr<StoreLimits> StoreHandshake::Limits() const {
  MutexLock lock(mutex_);
  if (peer_ == Peer::kForeign) {
    return absl::UnavailableError("the KV store speaks no protocol version of ours");
  }
  return limits_;
}

bool StoreHandshake::TryAsk(TimePoint now) {
  MutexLock lock(mutex_);
  if (asking_ || now < next_question_) return false;
  asking_ = true;
  next_question_ = now + kQuestionInterval;
  return true;
}

void StoreHandshake::Answered(const Status& status, const v1::DescribeResponse& answer) {
  MutexLock lock(mutex_);
  asking_ = false;
  if (!status.ok()) return;  // what it means for a connection, ConnectionLost says
  NoteInstance(answer.instance_id());
  const v1::ProtocolRange& theirs = answer.protocol();
  if (theirs.min() > kProtocolMax || theirs.max() < kProtocolMin) {
    peer_ = Peer::kForeign;
    limits_ = kOwnLimits;
    if (mismatches_ != nullptr) mismatches_->Increment();
    if (std::exchange(refused_instance_, answer.instance_id()) == answer.instance_id()) return;
    Log(LogLevel::kError, "the KV store speaks no protocol version of ours and is not used",
        {{"kvstore", address_},
         {"version", answer.version()},
         {"theirs", std::to_string(theirs.min()) + " to " + std::to_string(theirs.max())},
         {"ours", std::to_string(kProtocolMin) + " to " + std::to_string(kProtocolMax)}});
    return;
  }
  if (peer_ == Peer::kForeign) Log(LogLevel::kInfo, "the KV store speaks our protocol again");
  peer_ = Peer::kOurs;
  refused_instance_.reset();
  limits_ = {Smaller(kOwnLimits.message_bytes, answer.max_message_bytes()),
             Smaller(kOwnLimits.keys_per_call, answer.max_keys_per_call())};
}

void StoreHandshake::ConnectionLost() {
  MutexLock lock(mutex_);
  peer_ = Peer::kUnknown;
  limits_ = kOwnLimits;
  next_question_ = TimePoint::min();
}

void StoreHandshake::NoteInstance(uint64_t instance_id) {
  if (instance_id == 0 || instance_id == instance_id_) return;
  const uint64_t before = std::exchange(instance_id_, instance_id);
  if (before == 0) return;
  if (restarts_ != nullptr) restarts_->Increment();
  Log(LogLevel::kInfo, "another instance of the KV store answers",
      {{"kvstore", address_}, {"before", before}, {"now", instance_id}});
}

}  // namespace pagoda::rpc
