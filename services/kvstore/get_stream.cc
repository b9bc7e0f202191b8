#include "services/kvstore/get_stream.h"

#include <utility>

#include "common/rpc/block_wire.h"
#include "common/rpc/bulk_codec.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"

namespace pagoda::kvstore {

// Takes one block from the store. Holds the stream, which cannot end before its answer.
class GetStream::Fetch final : public BlockSink {
 public:
  explicit Fetch(std::shared_ptr<GetStream> stream) : stream_(std::move(stream)) {}

  StatusOr<Destination> Begin(size_t, const RecordHeader& header) override {
    if (!stream_->budget_->TryTake(header.payload_bytes)) {
      return absl::ResourceExhaustedError("too many bytes in flight");
    }
    taken_ = header.payload_bytes;
    header_ = EncodeHeader(header);
    return Destination::Lend();
  }
  void Done(size_t, GetResult result) override {
    if (result.outcome == GetOutcome::kFound) {
      result.lent = ReturnWhenReleased(std::move(result.lent), stream_->budget_);
    } else if (taken_ > 0) {
      stream_->budget_->Return(taken_);
    }
    result_ = std::move(result);
  }
  void Finished() override { stream_->Fetched(std::move(result_), std::move(header_)); }

 private:
  const std::shared_ptr<GetStream> stream_;
  uint64_t taken_ = 0;
  std::string header_;
  GetResult result_;
};

grpc::ServerWriteReactor<grpc::ByteBuffer>* GetStream::Start(StreamContext& context,
                                                             grpc::CallbackServerContext* call,
                                                             const grpc::ByteBuffer& request) {
  auto stream = std::make_shared<GetStream>(context, call);
  stream->self_ = stream;
  if (Status status = stream->ReadRequest(request); !status.ok()) {
    MutexLock lock(stream->mutex_);
    stream->End(status);
  } else {
    context.watch.Add(stream);
    stream->Advance();
  }
  return stream.get();
}

GetStream::GetStream(StreamContext& context, grpc::CallbackServerContext* call)
    : context_(context),
      call_(call),
      budget_(context.budgets.For(call->peer())),
      number_(context.store.StartCall()),
      progress_(context.clock.Now()) {}

Status GetStream::ReadRequest(const grpc::ByteBuffer& request) {
  v1::GetRequest message;
  PAGODA_RETURN_IF_ERROR(rpc::FromByteBuffer(request, &message));
  PAGODA_ASSIGN_OR_RETURN(refs_, rpc::UnpackKeys(message.keys()));
  call_context_ = {.deadline = rpc::FromGrpcDeadline(call_->deadline(), context_.clock.Now()),
                   .tenant = message.tenant(),
                   .priority = message.priority(),
                   .cancel = cancel_.get_token(),
                   .trace_id = ""};
  return absl::OkStatus();
}

void GetStream::Advance() {
  BlockRef ref;
  {
    MutexLock lock(mutex_);
    if (cancel_.stop_requested()) return End(absl::CancelledError("cancelled"));
    room_came_ = false;
    if (next_ == refs_.size()) return End(absl::OkStatus());
    ref = refs_[next_];
  }
  context_.store.GetPart(number_, call_context_, {ref}, std::make_shared<Fetch>(self_));
}

void GetStream::Fetched(GetResult result, std::string header) {
  bool refused = result.outcome == GetOutcome::kRefused;
  {
    MutexLock lock(mutex_);
    if (cancel_.stop_requested()) return End(absl::CancelledError("cancelled"));
    // The wake-up may have come between the refusal and here.
    bool again = std::exchange(room_came_, false);
    if (refused && !again) state_ = State::kWaitingForRoom;
    if (!refused) return Write(std::move(result), std::move(header));
    if (!again) return;
  }
  Advance();
}

void GetStream::Write(GetResult result, std::string header) {
  if (result.outcome == GetOutcome::kFailed) return End(result.status);
  context_.metrics.CountGet(result.outcome);
  v1::GetResponse head;
  head.set_index(static_cast<uint32_t>(next_++));
  head.set_tier(rpc::ToWire(result.tier));
  if (result.outcome == GetOutcome::kFound) {
    head.set_outcome(v1::GetResponse::FOUND);
    head.set_header(std::move(header));
  } else if (result.outcome == GetOutcome::kCorrupt) {
    head.set_outcome(v1::GetResponse::CORRUPT);
  }
  message_ = rpc::JoinBulkMessage(head, std::move(result.lent));
  state_ = State::kWriting;
  StartWrite(&message_);
}

void GetStream::OnWriteDone(bool ok) {
  {
    MutexLock lock(mutex_);
    message_.Clear();
    progress_ = context_.clock.Now();
    if (!ok) return End(absl::CancelledError("the reader is gone"));
    state_ = State::kFetching;
  }
  Advance();
}

void GetStream::Tick(TimePoint now) {
  {
    MutexLock lock(mutex_);
    if (done_ || state_ == State::kEnded) return;
    if (now - progress_ >= context_.limits.get_stall) {
      if (!cancel_.stop_requested()) context_.metrics.CountStalledGet();
      cancel_.request_stop();
      return call_->TryCancel();
    }
    if (state_ == State::kFetching) room_came_ = true;
    if (state_ != State::kWaitingForRoom) return;
    state_ = State::kFetching;
  }
  Advance();
}

void GetStream::OnCancel() {
  cancel_.request_stop();
  MutexLock lock(mutex_);
  // While fetching or writing, the answer to that ends the call.
  if (state_ == State::kWaitingForRoom) End(absl::CancelledError("cancelled"));
}

void GetStream::End(const Status& status) {
  state_ = State::kEnded;
  Finish(rpc::ToGrpc(status));
}

void GetStream::OnDone() {
  std::shared_ptr<GetStream> self;
  MutexLock lock(mutex_);
  done_ = true;
  self = std::move(self_);
}

}  // namespace pagoda::kvstore
