// What the running calls of one RemoteBlockStore share, and their common start: deadline, cancel,
// limits.
//
// gRPC must not see the last use of a channel end on one of its own threads: it would join that
// thread. So a call lets go of its context before it counts itself out, and the channels go with
// the store.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_COMMON_RPC_REMOTE_CALLS_H_
#define PAGODA_COMMON_RPC_REMOTE_CALLS_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "common/base/mutex.h"
#include "common/rpc/remote_block_store.h"
#include "common/rpc/store_handshake.h"
#include "pagoda/v1/kvstore.grpc.pb.h"

namespace pagoda::rpc {

// Reports on their way at once. A store that sends more wrong blocks than this is told of the next
// ones later.
inline constexpr int kMaxReports = 16;

struct RemoteCalls {
  explicit RemoteCalls(const RemoteBlockStore::Options& options);

  // Counts a call in; false when the limit is reached or the store is being destroyed.
  bool TryStart(int gets, uint64_t put_bytes, int reports = 0);
  // The last that a call does; nothing of it may be used after.
  void Ended(int gets, uint64_t put_bytes, int reports = 0);
  // Calls off what runs and waits until it has answered.
  void StopAll();

  const RemoteBlockStore::Options options;
  Clock& clock = *SystemClock::Get();
  prometheus::Counter* corrupt = nullptr;  // null: not measured
  const std::shared_ptr<grpc::Channel> bulk_channel;
  const std::unique_ptr<v1::KvStore::Stub> control;
  grpc::GenericStub bulk;
  StoreHandshake handshake;
  std::stop_source stop;

 private:
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  int gets_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t put_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int reports_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A gRPC call with the deadline of its CallContext, which the caller's cancel token and the store's
// end call off.
class RemoteCall {
 public:
  // `calls` outlives this.
  RemoteCall(RemoteCalls& calls, const CallContext& context);

  grpc::ClientContext& grpc_context() { return grpc_context_; }
  RemoteCalls& calls() { return calls_; }
  bool cancelled() const;
  void Cancel() { grpc_context_.TryCancel(); }

  // From now on a cancel reaches gRPC. REQUIRES: before the call is started.
  void Arm();
  // The call has ended. What became of blocks that were not answered: `status`, or why there is
  // none.
  Status Ended(const grpc::Status& status);

 private:
  RemoteCalls& calls_;
  const std::stop_token cancel_;
  grpc::ClientContext grpc_context_;
  using OnStop = std::stop_callback<std::function<void()>>;
  std::optional<OnStop> on_cancel_;
  std::optional<OnStop> on_stop_;
};

void StartRemoteGet(RemoteCalls& calls, const CallContext& context, std::vector<BlockRef> refs,
                    std::shared_ptr<BlockSink> sink);
void StartRemotePut(RemoteCalls& calls, const CallContext& context, std::vector<PutBlock> blocks,
                    uint64_t bytes, BlockStore::PutCallback done);
// Sends a Describe when the handshake has one due.
void AskWhoTheStoreIs(RemoteCalls& calls);
// Drops the report when the store is not one of ours, or when too many are on their way.
void StartRemoteReport(RemoteCalls& calls, const CorruptReport& report);

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_REMOTE_CALLS_H_
