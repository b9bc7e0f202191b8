#include "services/kvstore/put_stream.h"

#include <utility>

#include "common/rpc/block_wire.h"
#include "common/rpc/grpc_status.h"

namespace pagoda::kvstore {
namespace {

constexpr uint32_t kRetryMs = 100;

Status BadHeader(uint64_t block_id, const Status& why) {
  return absl::InvalidArgumentError("block " + std::to_string(block_id) + ": " +
                                    std::string(why.message()));
}

}  // namespace

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PutStream::Start(
    StreamContext& context, grpc::CallbackServerContext* call) {
  auto stream = std::make_shared<PutStream>(context, call);
  stream->self_ = stream;
  context.watch.Add(stream);
  stream->StartRead(&stream->incoming_);
  return stream.get();
}

PutStream::PutStream(StreamContext& context, grpc::CallbackServerContext* call)
    : context_(context), call_(call), progress_(context.clock.Now()) {}

void PutStream::OnReadDone(bool ok) {
  if (!ok) {  // the client has sent all, or is gone
    MutexLock lock(mutex_);
    return End(absl::OkStatus());
  }
  Status status = HandleMessage();
  incoming_.Clear();
  {
    MutexLock lock(mutex_);
    progress_ = context_.clock.Now();
    holds_promises_ = !promised_.empty();
    if (!status.ok()) return End(status);
    if (end_) return;  // the client stopped reading
    WriteAnswers();
    read_paused_ = waiting_.answers_size() > kMaxWaitingAnswers;
    if (read_paused_) return;
  }
  StartRead(&incoming_);
}

Status PutStream::HandleMessage() {
  v1::PutRequest head;
  PAGODA_ASSIGN_OR_RETURN(rpc::BulkParts parts, rpc::SplitBulkMessage(incoming_, &head));
  v1::PutResponse answers;
  if (head.has_offer()) {
    if (parts.payload_bytes > 0) {
      return absl::InvalidArgumentError("a message holds an offer and a block");
    }
    PAGODA_RETURN_IF_ERROR(HandleOffer(head.offer(), answers));
  } else {
    PAGODA_RETURN_IF_ERROR(HandleBlock(head, parts, answers));
  }
  MutexLock lock(mutex_);
  waiting_.MergeFrom(answers);
  return absl::OkStatus();
}

Status PutStream::HandleOffer(const v1::PutOffer& offer, v1::PutResponse& answers) {
  if (offer.blocks_size() == 0 || offer.blocks_size() > kMaxOfferBlocks) {
    return absl::InvalidArgumentError("offer.blocks has " + std::to_string(offer.blocks_size()) +
                                      " entries, must be 1 to " + std::to_string(kMaxOfferBlocks));
  }
  for (const v1::PutOffer::Block& block : offer.blocks()) {
    StatusOr<RecordHeader> header = DecodeHeader(block.header());
    if (!header.ok()) return BadHeader(block.block_id(), header.status());
    if (promised_.contains(block.block_id())) {
      return absl::InvalidArgumentError("block_id " + std::to_string(block.block_id()) +
                                        " is offered twice");
    }
    AddAnswer(answers, block.block_id(), Offered(block.block_id(), *header, block.meta()));
  }
  return absl::OkStatus();
}

PutResult PutStream::Offered(uint64_t block_id, const RecordHeader& header,
                             const v1::RecordMeta& meta) {
  if (promised_bytes_ > 0 &&
      header.payload_bytes + promised_bytes_ > context_.limits.reserved_bytes) {
    return {PutOutcome::kNoRoom, kRetryMs, absl::OkStatus()};
  }
  int64_t now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(context_.clock.WallTime()).count();
  ReserveResult reserved =
      context_.store.Reserve(NumberFor(header.ref), header, rpc::FromWire(meta, now_ms));
  if (reserved.room == nullptr) return reserved.refusal;
  promised_bytes_ += header.payload_bytes;
  promised_.emplace(block_id, std::move(reserved.room));
  return {PutOutcome::kFailed, 0, absl::OkStatus()};  // no final answer yet: SEND
}

Status PutStream::HandleBlock(const v1::PutRequest& head, const rpc::BulkParts& parts,
                              v1::PutResponse& answers) {
  StatusOr<RecordHeader> header = DecodeHeader(head.header());
  if (!header.ok()) return BadHeader(head.block_id(), header.status());
  auto promise = promised_.find(head.block_id());
  if (promise != promised_.end()) {
    std::unique_ptr<Reservation> room = std::move(promise->second);
    promised_.erase(promise);
    promised_bytes_ -= room->header().payload_bytes;
    if (*header != room->header()) {
      return absl::InvalidArgumentError("block " + std::to_string(head.block_id()) +
                                        ": the header is not the one that was offered");
    }
    AddAnswer(answers, head.block_id(), Fill(std::move(room), parts));
    return absl::OkStatus();
  }
  {
    MutexLock lock(mutex_);
    uint64_t limit = context_.limits.put_credit_bytes;
    if (used_credit_ > 0 && used_credit_ + parts.payload_bytes > limit) {
      return absl::ResourceExhaustedError("more than put_credit_bytes (" + std::to_string(limit) +
                                          ") sent unasked");
    }
    used_credit_ += parts.payload_bytes;
    credit_in_waiting_ += parts.payload_bytes;
  }
  int64_t now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(context_.clock.WallTime()).count();
  ReserveResult reserved =
      context_.store.Reserve(NumberFor(header->ref), *header, rpc::FromWire(head.meta(), now_ms));
  AddAnswer(answers, head.block_id(),
            reserved.room == nullptr ? reserved.refusal : Fill(std::move(reserved.room), parts));
  return absl::OkStatus();
}

// A chain comes root first: a block that is no deeper than the last begins another.
CallNumber PutStream::NumberFor(const BlockRef& ref) {
  if (number_ == 0 || ref.depth <= last_depth_) number_ = context_.store.StartCall();
  last_depth_ = ref.depth;
  return number_;
}

PutResult PutStream::Fill(std::unique_ptr<Reservation> room, const rpc::BulkParts& parts) {
  if (parts.payload_bytes != room->header().payload_bytes) {
    return {PutOutcome::kCorrupt, 0, absl::DataLossError("payload: wrong length")};
  }
  return room->Commit(rpc::CopyPayload(incoming_, parts, room->payload()));
}

void PutStream::AddAnswer(v1::PutResponse& answers, uint64_t block_id, const PutResult& result) {
  v1::PutResponse::Answer* answer = answers.add_answers();
  answer->set_block_id(block_id);
  answer->set_retry_ms(result.retry_ms);
  if (result.outcome == PutOutcome::kFailed) {
    answer->set_verdict(v1::PutResponse::SEND);
    return;
  }
  answer->set_verdict(rpc::ToWire(result.outcome));
  context_.metrics.CountPut(result.outcome);
}

void PutStream::WriteAnswers() {
  if (writing_ || waiting_.answers_size() == 0) return;
  outgoing_ = rpc::ToByteBuffer(waiting_);
  waiting_.Clear();
  credit_in_outgoing_ = std::exchange(credit_in_waiting_, 0);
  writing_ = true;
  StartWrite(&outgoing_);
}

void PutStream::OnWriteDone(bool ok) {
  bool resume = false;
  {
    MutexLock lock(mutex_);
    writing_ = false;
    used_credit_ -= std::exchange(credit_in_outgoing_, 0);
    if (!ok && !end_) end_ = absl::CancelledError("the client is gone");
    if (end_ && (!ok || waiting_.answers_size() == 0)) return End(*end_);
    WriteAnswers();
    resume = read_paused_ && !end_;
    if (resume) read_paused_ = false;
  }
  if (resume) StartRead(&incoming_);
}

void PutStream::End(const Status& status) {
  if (!end_) end_ = status;
  if (writing_ || finished_) return;  // OnWriteDone comes back here
  // After the client's regular end the last answers still go out.
  if (end_->ok() && waiting_.answers_size() > 0) return WriteAnswers();
  finished_ = true;
  Finish(rpc::ToGrpc(*end_));
}

void PutStream::Tick(TimePoint now) {
  MutexLock lock(mutex_);
  if (done_ || finished_ || !holds_promises_) return;
  if (now - progress_ < context_.limits.put_stall) return;
  holds_promises_ = false;  // once is enough
  context_.metrics.CountStalledPut();
  call_->TryCancel();
}

void PutStream::OnDone() {
  promised_.clear();
  std::shared_ptr<PutStream> self;
  MutexLock lock(mutex_);
  done_ = true;
  self = std::move(self_);
}

}  // namespace pagoda::kvstore
