// One KvStore.Put stream. Its life:
//   1. A message is read: an offer of headers, or one block.
//   2. Offer: room is reserved for each block that is wanted (SEND); the others get their
//      final answer.
//   3. Block: its bytes are copied from the message into their reserved place, with the checksum in
//      that pass, and committed; a block that was not offered reserves first. Either way one final
//      answer.
//   4. The next message is read only then, and only while few answers wait to be written: what a
//      client may have in flight is bounded by flow control and by the promised room.
//   5. The client's end of writing, an error, a cancel or StreamLimits::put_stall without progress
//      on promised room ends the call; room that was not filled is given back in OnDone.
//
// Concurrency: the reading side is one reaction at a time; it meets the writing side and the watch
// under a mutex.
#ifndef PAGODA_SERVICES_KVSTORE_PUT_STREAM_H_
#define PAGODA_SERVICES_KVSTORE_PUT_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <map>
#include <memory>
#include <optional>

#include "common/base/mutex.h"
#include "common/rpc/bulk_codec.h"
#include "pagoda/v1/kvstore.pb.h"
#include "services/kvstore/stream_context.h"

namespace pagoda::kvstore {

class PutStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                        public WatchedStream {
 public:
  static constexpr int kMaxOfferBlocks = 64;
  // Reading pauses over this many unwritten answers: a client that reads none does not grow a
  // queue.
  static constexpr int kMaxWaitingAnswers = 256;

  static grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Start(
      StreamContext& context, grpc::CallbackServerContext* call);
  // Only for Start.
  PutStream(StreamContext& context, grpc::CallbackServerContext* call);

  void Tick(TimePoint now) override;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override {}  // the pending read or write fails, and that ends the call
  void OnDone() override;

  // On the reading side.
  Status HandleMessage();
  Status HandleOffer(const v1::PutOffer& offer, v1::PutResponse& answers);
  Status HandleBlock(const v1::PutRequest& head, const rpc::BulkParts& parts,
                     v1::PutResponse& answers);
  PutResult Offered(uint64_t block_id, const RecordHeader& header, const v1::RecordMeta& meta);
  CallNumber NumberFor(const BlockRef& ref);
  PutResult Fill(std::unique_ptr<Reservation> room, const rpc::BulkParts& parts);
  void AddAnswer(v1::PutResponse& answers, uint64_t block_id, const PutResult& result);

  void WriteAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the call when nothing is being written, else after that.
  void End(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamContext& context_;
  grpc::CallbackServerContext* const call_;
  std::shared_ptr<PutStream> self_;  // until OnDone

  // The reading side's own.
  grpc::ByteBuffer incoming_;
  std::map<uint64_t, std::unique_ptr<Reservation>> promised_;  // by the client's block id
  uint64_t promised_bytes_ = 0;
  CallNumber number_ = 0;  // of the chain that comes; 0: none has
  uint32_t last_depth_ = 0;

  Mutex mutex_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // call_ is gone
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool holds_promises_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Status> end_ ABSL_GUARDED_BY(mutex_);
  TimePoint progress_ ABSL_GUARDED_BY(mutex_);
  v1::PutResponse waiting_ ABSL_GUARDED_BY(mutex_);
  // Unasked bytes whose answers are not written: the client's credit that is used.
  uint64_t used_credit_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t credit_in_waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t credit_in_outgoing_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_PUT_STREAM_H_
