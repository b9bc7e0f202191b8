// One Get of a RemoteBlockStore. Its life:
//   1. The keys go out; the store answers with one message a block, in the order asked.
//   2. Each message is read whole, checked, copied into the sink's memory, and answered; then the
//      next is read, so one call holds one received message at a time.
//   3. When the stream has ended, for whatever reason, blocks without an answer have failed.
#include <grpcpp/support/client_callback.h>

#include <utility>

#include "common/rpc/block_wire.h"
#include "common/rpc/bulk_codec.h"
#include "common/rpc/remote_calls.h"

namespace pagoda::rpc {
namespace {

class RemoteGet final : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  RemoteGet(RemoteCalls& calls, const CallContext& context, std::vector<BlockRef> refs,
            std::shared_ptr<BlockSink> sink)
      : call_(calls, context), refs_(std::move(refs)), sink_(std::move(sink)) {
    v1::GetRequest request;
    request.set_keys(PackKeys(refs_));
    request.set_tenant(context.tenant);
    request.set_priority(context.priority);
    request_ = ToByteBuffer(request);
  }

  void Start() {
    call_.Arm();
    call_.calls().bulk.PrepareBidiStreamingCall(&call_.grpc_context(), "/pagoda.v1.KvStore/Get", {},
                                                this);
    StartWriteLast(&request_, grpc::WriteOptions());
    StartRead(&message_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;  // OnDone follows
    if (Status status = TakeMessage(); !status.ok()) {
      broken_ = std::move(status);
      call_.Cancel();
      return;
    }
    message_.Clear();
    StartRead(&message_);
  }

  void OnDone(const grpc::Status& status) override {
    Status why = call_.Ended(status);
    if (!broken_.ok()) why = broken_;
    for (; next_ < refs_.size(); ++next_) {
      sink_->Done(next_, {GetOutcome::kFailed, Tier::kNone, why, {}});
    }
    sink_->Finished();
    sink_ = nullptr;
    RemoteCalls& calls = call_.calls();
    delete this;
    calls.Ended(1, 0);
  }

  // An error means that the stream cannot be understood any more.
  Status TakeMessage() {
    if (call_.cancelled()) return absl::CancelledError("cancelled by the caller");
    v1::GetResponse head;
    PAGODA_ASSIGN_OR_RETURN(BulkParts parts, SplitBulkMessage(message_, &head));
    if (next_ >= refs_.size() || head.index() != next_) {
      return absl::InternalError("the store answered block " + std::to_string(head.index()) +
                                 " out of order");
    }
    GetResult result = ResultOf(head, parts);
    result.tier = FromWire(head.tier());
    if (result.outcome == GetOutcome::kCorrupt && call_.calls().corrupt != nullptr) {
      call_.calls().corrupt->Increment();
    }
    sink_->Done(next_++, std::move(result));
    return absl::OkStatus();
  }

  GetResult ResultOf(const v1::GetResponse& head, const BulkParts& parts) {
    if (head.outcome() == v1::GetResponse::MISSING) {
      return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
    }
    if (head.outcome() != v1::GetResponse::FOUND) {
      Status why = absl::DataLossError("the store found the block corrupt");
      return {GetOutcome::kCorrupt, Tier::kNone, std::move(why), {}};
    }
    StatusOr<RecordHeader> header = DecodeHeader(head.header());
    if (!header.ok()) {
      // A version that we do not know is a miss, not damage.
      if (absl::IsUnimplemented(header.status())) {
        return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
      }
      return Corrupt(0, std::string(header.status().message()));
    }
    const uint64_t producer = header->producer_instance;
    if (header->ref != refs_[next_]) return Corrupt(producer, "the header is another block's");
    if (header->payload_bytes != parts.payload_bytes) {
      return Corrupt(producer, "payload: wrong length");
    }
    StatusOr<Destination> destination = sink_->Begin(next_, *header);
    if (!destination.ok()) {
      return {GetOutcome::kRefused, Tier::kNone, destination.status(), {}};
    }
    BlockView lent;
    std::byte* memory = destination->memory;
    if (memory == nullptr) {
      std::shared_ptr<std::byte[]> own(new std::byte[parts.payload_bytes]);
      memory = own.get();
      lent = {memory, parts.payload_bytes, std::move(own)};
    }
    if (CopyPayload(message_, parts, memory) != header->payload_crc) {
      return Corrupt(producer, "payload: wrong checksum");
    }
    return {GetOutcome::kFound, Tier::kNone, absl::OkStatus(), std::move(lent)};
  }

  // What arrived fails its checks; the store is told.
  GetResult Corrupt(uint64_t producer, const std::string& why) {
    StartRemoteReport(call_.calls(), {refs_[next_].key, producer, why});
    return {GetOutcome::kCorrupt, Tier::kNone, absl::DataLossError(why), {}};
  }

  RemoteCall call_;
  const std::vector<BlockRef> refs_;
  std::shared_ptr<BlockSink> sink_;
  grpc::ByteBuffer request_;
  // Only reactions touch these, one at a time: OnReadDone, and at the end OnDone.
  grpc::ByteBuffer message_;
  size_t next_ = 0;
  Status broken_;
};

}  // namespace

void StartRemoteGet(RemoteCalls& calls, const CallContext& context, std::vector<BlockRef> refs,
                    std::shared_ptr<BlockSink> sink) {
  (new RemoteGet(calls, context, std::move(refs), std::move(sink)))->Start();
}

}  // namespace pagoda::rpc
