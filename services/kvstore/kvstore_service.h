// The gRPC face of the store: it translates and decides nothing. Bulk calls are raw (ByteBuffers);
// their streams are get_stream.h and put_stream.h.
//
// Concurrency: gRPC calls it from several threads.
#ifndef PAGODA_SERVICES_KVSTORE_KVSTORE_SERVICE_H_
#define PAGODA_SERVICES_KVSTORE_KVSTORE_SERVICE_H_

#include <string>

#include "common/kv/block_store_admin.h"
#include "pagoda/v1/kvstore.grpc.pb.h"
#include "services/kvstore/stream_context.h"

namespace pagoda::kvstore {

using KvStoreMethods =
    v1::KvStore::WithCallbackMethod_Describe<v1::KvStore::WithCallbackMethod_FindMissing<
        v1::KvStore::WithRawCallbackMethod_Get<v1::KvStore::WithRawCallbackMethod_Put<
            v1::KvStore::WithCallbackMethod_ReportCorrupt<v1::KvStore::Service>>>>>;

class KvStoreService final : public KvStoreMethods {
 public:
  struct Identity {
    std::string shard_id;
    uint64_t instance_id = 0;
  };

  // `context` outlives the service.
  KvStoreService(StreamContext& context, Identity identity)
      : context_(context), identity_(std::move(identity)) {}

  grpc::ServerUnaryReactor* Describe(grpc::CallbackServerContext* call,
                                     const v1::DescribeRequest* request,
                                     v1::DescribeResponse* response) override;
  grpc::ServerUnaryReactor* FindMissing(grpc::CallbackServerContext* call,
                                        const v1::FindMissingRequest* request,
                                        v1::FindMissingResponse* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Get(grpc::CallbackServerContext* call,
                                                  const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Put(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* ReportCorrupt(grpc::CallbackServerContext* call,
                                          const v1::ReportCorruptRequest* request,
                                          v1::ReportCorruptResponse* response) override;

 private:
  StreamContext& context_;
  const Identity identity_;
};

// Statistics; what is not built answers UNIMPLEMENTED.
class KvAdminService final : public v1::KvAdmin::CallbackService {
 public:
  // Both outlive the service.
  KvAdminService(BlockStoreAdmin& store, const Clock& clock)
      : store_(store), clock_(clock), started_(clock.Now()) {}

  grpc::ServerUnaryReactor* Stats(grpc::CallbackServerContext* call,
                                  const v1::StatsRequest* request,
                                  v1::StatsResponse* response) override;

 private:
  BlockStoreAdmin& store_;
  const Clock& clock_;
  const TimePoint started_;
};

}  // namespace pagoda::kvstore

#endif  // PAGODA_SERVICES_KVSTORE_KVSTORE_SERVICE_H_
