// The one place where absl::Status becomes grpc::Status and back. The codes are the same numbers.
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_RPC_GRPC_STATUS_H_
#define PAGODA_COMMON_RPC_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "common/base/status.h"

namespace pagoda::rpc {

grpc::Status ToGrpc(const Status& status);
Status FromGrpc(const grpc::Status& status);

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_GRPC_STATUS_H_
