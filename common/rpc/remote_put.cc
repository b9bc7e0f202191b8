// One Put of a RemoteBlockStore, on a stream of its own. Its life:
//   1. A lone block is sent at once. Several are offered, a batch at a time; a batch is bounded in
//      number and bytes, so that a store which gives out room for all of it need not refuse.
//   2. Blocks that the store wants are sent one message each, lent from where they lie; answers
//      that are final are kept.
//   3. When all of a batch have their final answer, the next is offered; after the last the
//      stream is closed.
//   4. When the stream has ended, for whatever reason, blocks without a final answer have failed.
#include <grpcpp/support/client_callback.h>

#include <deque>
#include <utility>

#include "common/base/mutex.h"
#include "common/rpc/block_wire.h"
#include "common/rpc/bulk_codec.h"
#include "common/rpc/remote_calls.h"

namespace pagoda::rpc {
namespace {

constexpr size_t kMaxOfferBlocks = 64;                   // the protocol's
constexpr uint64_t kMaxOfferBytes = uint64_t{32} << 20;  // half of what a store promises one stream

class RemotePut final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RemotePut(RemoteCalls& calls, const CallContext& context, std::vector<PutBlock> blocks,
            uint64_t bytes, BlockStore::PutCallback done)
      : call_(calls, context),
        bytes_(bytes),
        done_(std::move(done)),
        blocks_(std::move(blocks)),
        results_(blocks_.size()),
        state_(blocks_.size(), State::kUnsent) {}

  void Start() {
    call_.Arm();
    call_.calls().bulk.PrepareBidiStreamingCall(&call_.grpc_context(), "/pagoda.v1.KvStore/Put", {},
                                                this);
    {
      MutexLock lock(mutex_);
      if (blocks_.size() == 1) {
        batch_end_ = unanswered_ = 1;
        state_[0] = State::kWanted;
        wanted_.push_back(0);
      }
      WriteNext();
    }
    StartRead(&incoming_);
    StartCall();
  }

 private:
  enum class State : uint8_t { kUnsent, kOffered, kWanted, kSent, kAnswered };

  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone follows
    {
      MutexLock lock(mutex_);
      if (Status status = TakeAnswers(); !status.ok()) {
        broken_ = std::move(status);
        call_.Cancel();
        return;
      }
      WriteNext();
    }
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(mutex_);
    writing_ = false;
    outgoing_.Clear();
    if (ok) WriteNext();
  }

  void OnDone(const grpc::Status& status) override {
    Status why = call_.Ended(status);
    std::vector<PutResult> results;
    {
      MutexLock lock(mutex_);
      if (!broken_.ok()) why = broken_;
      for (size_t i = 0; i < results_.size(); ++i) {
        if (state_[i] != State::kAnswered) results_[i] = {PutOutcome::kFailed, 0, why};
      }
      results = std::move(results_);
    }
    BlockStore::PutCallback done = std::move(done_);
    RemoteCalls& calls = call_.calls();
    uint64_t bytes = bytes_;
    delete this;
    done(std::move(results));
    done = nullptr;
    calls.Ended(0, bytes);
  }

  Status TakeAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::PutResponse response;
    PAGODA_RETURN_IF_ERROR(FromByteBuffer(incoming_, &response));
    for (const v1::PutResponse::Answer& answer : response.answers()) {
      size_t i = answer.block_id();
      if (i >= batch_end_ || state_[i] == State::kAnswered) {
        return absl::InternalError("the store answered a block that was not asked about");
      }
      if (answer.verdict() == v1::PutResponse::SEND) {
        if (state_[i] != State::kOffered) return absl::InternalError("the store asked twice");
        state_[i] = State::kWanted;
        wanted_.push_back(i);
        continue;
      }
      state_[i] = State::kAnswered;
      blocks_[i].payload = {};
      --unanswered_;
      results_[i] = ResultOf(answer);
    }
    return absl::OkStatus();
  }

  static PutResult ResultOf(const v1::PutResponse::Answer& answer) {
    PutOutcome outcome = FromWire(answer.verdict());
    switch (outcome) {
      case PutOutcome::kStored:
      case PutOutcome::kHave:
        return {outcome, 0, absl::OkStatus()};
      case PutOutcome::kDivergent:
        return {outcome, 0, absl::AlreadyExistsError("the store holds other bytes")};
      case PutOutcome::kNoRoom:
        return {outcome, answer.retry_ms(), absl::ResourceExhaustedError("the store is full")};
      case PutOutcome::kCorrupt:
        return {outcome, 0, absl::DataLossError("header and payload do not fit each other")};
      case PutOutcome::kFailed:
        break;
    }
    return {outcome, 0, absl::InternalError("an answer that this version does not know")};
  }

  // One write at a time: a wanted block, else the next offer, else the end.
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || closed_) return;
    if (!wanted_.empty()) {
      size_t i = wanted_.front();
      wanted_.pop_front();
      state_[i] = State::kSent;
      outgoing_ = BlockMessage(i);
    } else if (unanswered_ > 0) {
      return;  // the next answer goes on
    } else if (batch_end_ < blocks_.size()) {
      outgoing_ = NextOffer();
    } else {
      closed_ = true;
      StartWritesDone();
      return;
    }
    writing_ = true;
    StartWrite(&outgoing_);
  }

  grpc::ByteBuffer BlockMessage(size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::PutRequest head;
    head.set_block_id(i);
    head.set_header(EncodeHeader(blocks_[i].header));
    *head.mutable_meta() = ToWire(blocks_[i].meta, UnixMs());
    return JoinBulkMessage(head, blocks_[i].payload);
  }

  grpc::ByteBuffer NextOffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    v1::PutRequest request;
    uint64_t bytes = 0;
    size_t first = batch_end_;
    while (batch_end_ < blocks_.size() && batch_end_ - first < kMaxOfferBlocks) {
      const PutBlock& block = blocks_[batch_end_];
      bytes += block.payload.size;
      if (batch_end_ > first && bytes > kMaxOfferBytes) break;
      v1::PutOffer::Block* offered = request.mutable_offer()->add_blocks();
      offered->set_block_id(batch_end_);
      offered->set_header(EncodeHeader(block.header));
      *offered->mutable_meta() = ToWire(block.meta, UnixMs());
      state_[batch_end_++] = State::kOffered;
      ++unanswered_;
    }
    return ToByteBuffer(request);
  }

  int64_t UnixMs() {
    return std::chrono::duration_cast<std::chrono::milliseconds>(call_.calls().clock.WallTime())
        .count();
  }

  RemoteCall call_;
  const uint64_t bytes_;
  BlockStore::PutCallback done_;
  grpc::ByteBuffer incoming_;  // of the reading reactions, one at a time

  Mutex mutex_;
  std::vector<PutBlock> blocks_ ABSL_GUARDED_BY(mutex_);
  std::vector<PutResult> results_ ABSL_GUARDED_BY(mutex_);
  std::vector<State> state_ ABSL_GUARDED_BY(mutex_);
  size_t batch_end_ ABSL_GUARDED_BY(mutex_) = 0;   // blocks before it were offered or sent
  size_t unanswered_ ABSL_GUARDED_BY(mutex_) = 0;  // of those, without a final answer
  std::deque<size_t> wanted_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  Status broken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void StartRemotePut(RemoteCalls& calls, const CallContext& context, std::vector<PutBlock> blocks,
                    uint64_t bytes, BlockStore::PutCallback done) {
  (new RemotePut(calls, context, std::move(blocks), bytes, std::move(done)))->Start();
}

}  // namespace pagoda::rpc
