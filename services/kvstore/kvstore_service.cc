#include "services/kvstore/kvstore_service.h"

#include <utility>

#include "common/base/version.h"
#include "common/rpc/block_wire.h"
#include "common/rpc/channel.h"
#include "common/rpc/deadline.h"
#include "common/rpc/grpc_status.h"
#include "services/kvstore/get_stream.h"
#include "services/kvstore/put_stream.h"

namespace pagoda::kvstore {
namespace {

// Of a report's reason, which goes into the log.
constexpr size_t kMaxReasonBytes = 256;

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* call, const Status& status) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  reactor->Finish(rpc::ToGrpc(status));
  return reactor;
}

void SetBit(std::string* bits, size_t index) {
  (*bits)[index / 8] = static_cast<char>((*bits)[index / 8] | 1 << index % 8);
}

// on_disk stays empty when no block is on disk: the common case costs no bytes.
void FillHeld(const std::vector<Held>& blocks, v1::FindMissingResponse* response) {
  size_t bytes = (blocks.size() + 7) / 8;
  response->mutable_in_ram()->resize(bytes);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].in_ram) SetBit(response->mutable_in_ram(), i);
    if (!blocks[i].on_disk) continue;
    response->mutable_on_disk()->resize(bytes);
    SetBit(response->mutable_on_disk(), i);
  }
}

}  // namespace

grpc::ServerUnaryReactor* KvStoreService::Describe(grpc::CallbackServerContext* call,
                                                   const v1::DescribeRequest*,
                                                   v1::DescribeResponse* response) {
  response->mutable_protocol()->set_min(kProtocolMin);
  response->mutable_protocol()->set_max(kProtocolMax);
  response->set_shard_id(identity_.shard_id);
  response->set_instance_id(identity_.instance_id);
  response->set_max_message_bytes(rpc::kMaxMessageBytes);
  response->set_put_credit_bytes(context_.limits.put_credit_bytes);
  response->set_max_keys_per_call(kMaxBlocksPerCall);
  response->set_version(kVersion);
  return Answer(call, absl::OkStatus());
}

grpc::ServerUnaryReactor* KvStoreService::FindMissing(grpc::CallbackServerContext* call,
                                                      const v1::FindMissingRequest* request,
                                                      v1::FindMissingResponse* response) {
  StatusOr<std::vector<BlockRef>> refs = rpc::UnpackKeys(request->keys());
  if (!refs.ok()) {
    context_.metrics.CountFind(false);
    return Answer(call, refs.status());
  }
  CallContext context;
  context.deadline = rpc::FromGrpcDeadline(call->deadline(), context_.clock.Now());
  context.tenant = request->tenant();
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  StoreMetrics& metrics = context_.metrics;
  context_.store.FindMissing(context, *std::move(refs),
                             [reactor, response, &metrics](FindResult result) {
                               metrics.CountFind(result.status.ok());
                               FillHeld(result.blocks, response);
                               reactor->Finish(rpc::ToGrpc(result.status));
                             });
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* KvStoreService::Get(grpc::CallbackServerContext* call,
                                                                const grpc::ByteBuffer* request) {
  return GetStream::Start(context_, call, *request);
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* KvStoreService::Put(
    grpc::CallbackServerContext* call) {
  return PutStream::Start(context_, call);
}

grpc::ServerUnaryReactor* KvStoreService::ReportCorrupt(grpc::CallbackServerContext* call,
                                                        const v1::ReportCorruptRequest* request,
                                                        v1::ReportCorruptResponse*) {
  StatusOr<std::vector<BlockRef>> refs = rpc::UnpackKeys(request->key());
  if (!refs.ok() || refs->size() != 1) {
    return Answer(call, absl::InvalidArgumentError("key: " + std::to_string(request->key().size()) +
                                                   " bytes, not 32"));
  }
  context_.metrics.CountReport();
  context_.store.ReportCorrupt({(*refs)[0].key, request->producer_instance_id(),
                                request->reason().substr(0, kMaxReasonBytes)});
  return Answer(call, absl::OkStatus());
}

grpc::ServerUnaryReactor* KvAdminService::Stats(grpc::CallbackServerContext* call,
                                                const v1::StatsRequest*,
                                                v1::StatsResponse* response) {
  StatusOr<StoreStats> stats = store_.Stats();
  if (!stats.ok()) return Answer(call, stats.status());
  for (const TierStats& tier : stats->tiers) {
    v1::StatsResponse::TierStats* wire = response->add_tiers();
    wire->set_tier(rpc::ToWire(tier.tier));
    wire->set_blocks(tier.blocks);
    wire->set_bytes_used(tier.bytes_used);
    wire->set_bytes_limit(tier.bytes_limit);
    wire->set_evicted_blocks(tier.evicted_blocks);
    wire->set_index_bytes(tier.index_bytes);
  }
  for (const OwnerStats& owner : stats->owners) {
    v1::StatsResponse::Owner* wire = response->add_owners();
    wire->set_tenant(owner.tenant);
    wire->set_blocks(owner.blocks);
    wire->set_bytes(owner.bytes);
  }
  response->set_divergent_puts(stats->divergent_puts);
  response->set_corrupt_blocks(stats->corrupt_blocks);
  response->set_uptime_ms(static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.Now() - started_).count()));
  return Answer(call, absl::OkStatus());
}

}  // namespace pagoda::kvstore
