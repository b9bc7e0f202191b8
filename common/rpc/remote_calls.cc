#include "common/rpc/remote_calls.h"

#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"

namespace pagoda::rpc {

RemoteCalls::RemoteCalls(const RemoteBlockStore::Options& given)
    : options(given),
      bulk_channel(MakeChannel(given.address, ChannelKind::kBulk, given.connection)),
      control(v1::KvStore::NewStub(
          MakeChannel(given.address, ChannelKind::kControl, given.connection))),
      bulk(bulk_channel),
      handshake(given.address, given.metrics) {
  if (options.metrics == nullptr) return;
  corrupt = &options.metrics->Counter("kv_corrupt_blocks_total",
                                      "Blocks whose bytes failed a check, by where it was seen",
                                      {{"hop", "get"}});
}

bool RemoteCalls::TryStart(int gets, uint64_t put_bytes, int reports) {
  MutexLock lock(mutex_);
  if (stopping_ || gets_ + gets > options.max_gets || reports_ + reports > kMaxReports) {
    return false;
  }
  // One put may always run, however large.
  if (put_bytes_ > 0 && put_bytes > 0 && put_bytes_ + put_bytes > options.max_put_bytes) {
    return false;
  }
  ++running_;
  gets_ += gets;
  put_bytes_ += put_bytes;
  reports_ += reports;
  return true;
}

void RemoteCalls::Ended(int gets, uint64_t put_bytes, int reports) {
  MutexLock lock(mutex_);
  gets_ -= gets;
  put_bytes_ -= put_bytes;
  reports_ -= reports;
  if (--running_ == 0) changed_.SignalAll();
}

void RemoteCalls::StopAll() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop.request_stop();
  MutexLock lock(mutex_);
  while (running_ > 0) changed_.Wait(mutex_);
}

RemoteCall::RemoteCall(RemoteCalls& calls, const CallContext& context)
    : calls_(calls), cancel_(context.cancel) {
  grpc_context_.set_deadline(
      ToGrpcDeadline(context.deadline, calls_.options.max_call, calls_.clock.Now()));
  if (!context.trace_id.empty()) grpc_context_.AddMetadata("x-pagoda-trace-id", context.trace_id);
}

bool RemoteCall::cancelled() const {
  return cancel_.stop_requested() || calls_.stop.stop_requested();
}

void RemoteCall::Arm() {
  on_cancel_.emplace(cancel_, [this] { grpc_context_.TryCancel(); });
  on_stop_.emplace(calls_.stop.get_token(), [this] { grpc_context_.TryCancel(); });
}

Status RemoteCall::Ended(const grpc::Status& status) {
  on_cancel_.reset();
  on_stop_.reset();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) calls_.handshake.ConnectionLost();
  if (cancel_.stop_requested()) return absl::CancelledError("cancelled by the caller");
  if (status.ok()) return absl::InternalError("the store ended the call too early");
  return Annotate(FromGrpc(status), "KV store " + calls_.options.address);
}

}  // namespace pagoda::rpc
