// What a worker is started with.
//
// Concurrency: plain values.
#ifndef PAGODA_SERVICES_WORKER_WORKER_OPTIONS_H_
#define PAGODA_SERVICES_WORKER_WORKER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/flag_set.h"

namespace pagoda::worker {

struct WorkerOptions {
  std::string model;
  std::string name = "worker-0";
  std::vector<std::string> served_model_names;
  std::vector<std::string> routers;
  std::string kvstore;
  std::string grpc_address = "127.0.0.1:7100";
  std::string http_address = "127.0.0.1:7101";

  std::string isa = "auto";
  std::string activation_dtype = "f32";
  int threads = 0;  // 0: one less than the usable CPUs, at least 1

  std::string kv_cache_dtype = "auto";
  std::string block_size = "auto";
  uint64_t kv_cache_bytes = 0;  // 0: a quarter of the memory, at most 4 GiB
  std::string kv_offload = "write_through";
  std::string kv_load = "auto";
  int kv_recheck_one_in = 1000;
  bool poison_freed_blocks = false;

  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  int max_model_len = 0;  // 0: the model's
  bool enable_chunked_prefill = true;

  uint64_t weight_epoch = 0;
  // Both together, and some seconds for the last messages, stay within the 30 s that Kubernetes
  // gives.
  int drain_delay_s = 5;
  int drain_timeout_s = 20;
  std::string log_level = "info";
};

// Adds a flag for each option.
void AddFlags(FlagSet& flags, WorkerOptions& options);

}  // namespace pagoda::worker

#endif  // PAGODA_SERVICES_WORKER_WORKER_OPTIONS_H_
