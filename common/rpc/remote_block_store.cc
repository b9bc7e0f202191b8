#include "common/rpc/remote_block_store.h"

#include <optional>
#include <utility>

#include "common/rpc/block_wire.h"
#include "common/rpc/remote_calls.h"

namespace pagoda::rpc {
namespace {

constexpr char kBusy[] = "too many calls to the KV store are running";

// What a FindMissing call needs until its answer.
struct FindCall {
  FindCall(RemoteCalls& calls, const CallContext& context) { call.emplace(calls, context); }

  std::optional<RemoteCall> call;  // empty once it has ended
  size_t blocks = 0;
  v1::FindMissingRequest request;
  v1::FindMissingResponse response;
};

bool Bit(std::string_view bits, size_t index) { return bits[index / 8] >> index % 8 & 1; }

FindResult ReadAnswer(const v1::FindMissingResponse& response, size_t blocks) {
  size_t bytes = (blocks + 7) / 8;
  bool disk = !response.on_disk().empty();
  if (response.in_ram().size() != bytes || (disk && response.on_disk().size() != bytes)) {
    return FailedFind(absl::InternalError("the store's bitmap has the wrong length"), blocks);
  }
  FindResult result{absl::OkStatus(), std::vector<Held>(blocks)};
  for (size_t i = 0; i < blocks; ++i) {
    result.blocks[i] = {Bit(response.in_ram(), i), disk && Bit(response.on_disk(), i)};
  }
  return result;
}

// What surrounds a payload in its message: header, meta, and the lengths of fields.
constexpr uint64_t kMessageOverhead = 64 << 10;

// The limits of a call that may start now, or why it may not.
StatusOr<StoreLimits> Admit(RemoteCalls& calls, const CallContext& context, size_t blocks) {
  PAGODA_RETURN_IF_ERROR(CheckCall(context, blocks, calls.clock.Now()));
  AskWhoTheStoreIs(calls);
  return calls.handshake.Limits();
}

Status CheckKeys(const StatusOr<StoreLimits>& limits, size_t keys) {
  PAGODA_RETURN_IF_ERROR(limits.status());
  if (keys <= limits->keys_per_call) return absl::OkStatus();
  return absl::InvalidArgumentError("more blocks than a call to this store may name");
}

// What the store would not take is answered here, and only the rest is sent.
bool Acceptable(const PutBlock& block, const StoreLimits& limits, PutResult& refusal) {
  Status status = CheckHeader(block.header);
  if (status.ok() && block.meta.owner_tenant.size() > kMaxTenantBytes) {
    status = absl::InvalidArgumentError("owner_tenant is too long");
  }
  if (status.ok() && block.payload.size != block.header.payload_bytes) {
    status = absl::DataLossError("payload: wrong length");
  }
  if (!status.ok()) {
    refusal = {PutOutcome::kCorrupt, 0, std::move(status)};
    return false;
  }
  if (block.payload.size + kMessageOverhead > limits.message_bytes) {
    status = absl::FailedPreconditionError("payload: larger than this store's messages");
    refusal = {PutOutcome::kFailed, 0, std::move(status)};
    return false;
  }
  return true;
}

}  // namespace

RemoteBlockStore::RemoteBlockStore(const Options& options)
    : calls_(std::make_unique<RemoteCalls>(options)) {
  AskWhoTheStoreIs(*calls_);
}

RemoteBlockStore::~RemoteBlockStore() { calls_->StopAll(); }

void RemoteBlockStore::FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                                   FindCallback done) {
  Status status = CheckKeys(Admit(*calls_, context, refs.size()), refs.size());
  if (status.ok() && !calls_->TryStart(0, 0)) status = absl::ResourceExhaustedError(kBusy);
  if (!status.ok()) return done(FailedFind(status, refs.size()));
  auto find = std::make_shared<FindCall>(*calls_, context);
  find->blocks = refs.size();
  find->request.set_keys(PackKeys(refs));
  find->request.set_tenant(context.tenant);
  auto answer = [calls = calls_.get(), find,
                 done = std::move(done)](const grpc::Status& grpc_status) {
    Status why = find->call->Ended(grpc_status);
    find->call.reset();
    done(grpc_status.ok() ? ReadAnswer(find->response, find->blocks)
                          : FailedFind(why, find->blocks));
    calls->Ended(0, 0);
  };
  find->call->Arm();
  calls_->control->async()->FindMissing(&find->call->grpc_context(), &find->request,
                                        &find->response, std::move(answer));
}

void RemoteBlockStore::Get(const CallContext& context, std::vector<BlockRef> refs,
                           std::shared_ptr<BlockSink> sink) {
  Status status = CheckKeys(Admit(*calls_, context, refs.size()), refs.size());
  if (refs.empty()) return sink->Finished();
  if (status.ok() && !calls_->TryStart(1, 0)) status = absl::ResourceExhaustedError(kBusy);
  if (!status.ok()) return FailGet(status, refs.size(), *sink);
  StartRemoteGet(*calls_, context, std::move(refs), std::move(sink));
}

void RemoteBlockStore::Put(const CallContext& context, std::vector<PutBlock> blocks,
                           PutCallback done) {
  StatusOr<StoreLimits> limits = Admit(*calls_, context, blocks.size());
  if (!limits.ok()) return done(FailedPut(limits.status(), blocks.size()));
  std::vector<PutResult> results(blocks.size());
  std::vector<PutBlock> sent;
  std::vector<size_t> places;
  uint64_t bytes = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (!Acceptable(blocks[i], *limits, results[i])) continue;
    bytes += blocks[i].payload.size;
    places.push_back(i);
    sent.push_back(std::move(blocks[i]));
  }
  if (sent.empty()) return done(std::move(results));
  bool started = calls_->TryStart(0, bytes);
  auto merge = [results = std::move(results), places = std::move(places),
                done = std::move(done)](std::vector<PutResult> answers) mutable {
    for (size_t i = 0; i < places.size(); ++i) results[places[i]] = std::move(answers[i]);
    done(std::move(results));
  };
  if (!started) {
    return merge(std::vector<PutResult>(
        sent.size(), {PutOutcome::kNoRoom, 100, absl::ResourceExhaustedError(kBusy)}));
  }
  StartRemotePut(*calls_, context, std::move(sent), bytes, std::move(merge));
}

void RemoteBlockStore::ReportCorrupt(const CorruptReport& report) {
  StartRemoteReport(*calls_, report);
}

}  // namespace pagoda::rpc
