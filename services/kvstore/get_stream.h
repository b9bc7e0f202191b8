// One KvStore.Get call. Its life:
//   1. Start reads the keys; a bad request ends at once.
//   2. The next block is fetched from the store with "lend me yours", when the connection's bytes
//      in flight allow; else the stream waits until the watch says that there is room.
//   3. It is written as one message that refers to the slab; MISSING and CORRUPT are messages too.
//   4. When gRPC has taken the message, 2. The slot is let go when gRPC releases the slice.
//   5. After the last block, or a cancel, or when the reader takes nothing for
//      StreamLimits::get_stall, the call ends; OnDone lets the stream go.
//
// Concurrency: gRPC's reactions, the store's answers and the watch meet under one mutex.
#ifndef PAGODA_SERVICES_KVSTORE_GET_STREAM_H_
#define PAGODA_SERVICES_KVSTORE_GET_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "services/kvstore/stream_context.h"

namespace pagoda::kvstore {

class GetStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>, public WatchedStream {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* Start(StreamContext& context,
                                                           grpc::CallbackServerContext* call,
                                                           const grpc::ByteBuffer& request);
  // Only for Start.
  GetStream(StreamContext& context, grpc::CallbackServerContext* call);

  void Tick(TimePoint now) override;

 private:
  class Fetch;
  enum class State { kFetching, kWaitingForRoom, kWriting, kEnded };

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  Status ReadRequest(const grpc::ByteBuffer& request);
  // Fetches the next block, or ends the call. REQUIRES: kFetching.
  void Advance();
  void Fetched(GetResult result, std::string header);
  void Write(GetResult result, std::string header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(const Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  StreamContext& context_;
  grpc::CallbackServerContext* const call_;
  const std::shared_ptr<InflightBytes> budget_;
  std::shared_ptr<GetStream> self_;  // until OnDone
  std::stop_source cancel_;
  CallContext call_context_;
  const CallNumber number_;  // of all its fetches
  std::vector<BlockRef> refs_;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kFetching;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;       // call_ is gone
  bool room_came_ ABSL_GUARDED_BY(mutex_) = false;  // while fetching
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  TimePoint progress_ ABSL_GUARDED_BY(mutex_);
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_GET_STREAM_H_
