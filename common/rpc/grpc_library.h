// Keeps the gRPC library and its callback queue alive until the process ends.
//
// Without it the library shuts down with the last channel or server and joins a thread that may sit
// in a poll of 10 s: a process then ends that much later, and a test that makes servers one after
// another stalls. And gRPC 1.51 now and then aborts (grpc_cq_internal_unref, "prior > 0") when its
// shared callback queue goes with its last user while a new one comes; a user that stays forever
// keeps that from happening.
//
// Concurrency: any thread, any number of times.
#ifndef PAGODA_COMMON_RPC_GRPC_LIBRARY_H_
#define PAGODA_COMMON_RPC_GRPC_LIBRARY_H_

namespace pagoda::rpc {

void KeepGrpcLibrary();

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_GRPC_LIBRARY_H_
