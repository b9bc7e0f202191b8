#include "common/rpc/grpc_library.h"

#include <grpc/grpc.h>

namespace pagoda::rpc {

void KeepGrpcLibrary() {
  static const bool kept = (grpc_init(), true);
  static_cast<void>(kept);
}

}  // namespace pagoda::rpc
