#include "common/rpc/grpc_status.h"

#include <string>

namespace pagoda::rpc {

grpc::Status ToGrpc(const Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

Status FromGrpc(const grpc::Status& status) {
  return Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace pagoda::rpc
