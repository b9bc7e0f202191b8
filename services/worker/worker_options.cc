#include "services/worker/worker_options.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "common/base/address.h"
#include "common/base/logging.h"

namespace pagoda::worker {
namespace {

std::string Listed(std::initializer_list<std::string_view> values) {
  std::string text;
  for (std::string_view value : values) text += (text.empty() ? "" : ", ") + std::string(value);
  return text;
}

// Accepts `built`; refuses `planned` as not built yet, and anything else as unknown.
std::function<Status(const std::string&)> OneOf(std::initializer_list<std::string_view> built,
                                                std::initializer_list<std::string_view> planned) {
  std::vector<std::string> known(built.begin(), built.end());
  std::vector<std::string> later(planned.begin(), planned.end());
  return [known, later, listed = Listed(built)](const std::string& value) -> Status {
    if (std::find(known.begin(), known.end(), value) != known.end()) return absl::OkStatus();
    bool is_planned = std::find(later.begin(), later.end(), value) != later.end();
    return absl::InvalidArgumentError("\"" + value + "\" is " +
                                      (is_planned ? "not built yet" : "unknown") +
                                      "; this version has " + listed);
  };
}

Status CheckName(const std::string& name) {
  if (IsProcessName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError("\"" + name + "\" is not 1 to 63 of a-z, 0-9 and -");
}

}  // namespace

void AddFlags(FlagSet& flags, WorkerOptions& options) {
  auto log_level = [](const std::string& name) { return ParseLogLevel(name).status(); };
  flags.Add("model", "the GGUF file to serve", &options.model);
  flags.AddChecked("name", "this worker's name in the cluster", &options.name, CheckName);
  flags.Add("served-model-name", "name clients ask for (repeatable); default: the file's stem",
            &options.served_model_names);
  flags.Add("router", "router(s) to register at, HOST:PORT[,...]", &options.routers);
  flags.Add("kvstore", "KV store to share blocks through, HOST:PORT", &options.kvstore);
  flags.AddChecked("grpc-address", "gRPC listener; port 0 takes a free one", &options.grpc_address,
                   CheckListenAddress);
  flags.AddChecked("http-address", "health and metrics listener", &options.http_address,
                   CheckListenAddress);
  flags.AddChecked("isa", "instruction set: auto, scalar or avx2", &options.isa,
                   OneOf({"auto", "scalar", "avx2"}, {"avx512"}));
  flags.AddChecked("activation-dtype", "arithmetic of the matrix products: f32",
                   &options.activation_dtype, OneOf({"f32"}, {"int8", "int16", "auto"}));
  flags.Add("threads", "compute threads; 0: usable CPUs - 1, at least 1", &options.threads, 0,
            1024);
  flags.AddChecked(
      "kv-cache-dtype", "format of the KV cache: auto (bf16), bf16, fp16 or f32",
      &options.kv_cache_dtype,
      OneOf({"auto", "bf16", "fp16", "f32"}, {"fp8_e4m3", "fp8_e5m2", "int8", "int4"}));
  flags.AddChecked("block-size", "tokens in a KV block: auto (32), 32 or 64", &options.block_size,
                   OneOf({"auto", "32", "64"}, {}));
  flags.AddBytes("kv-cache-bytes", "KV pool; default: a quarter of the memory, at most 4 GiB",
                 &options.kv_cache_bytes);
  flags.AddChecked("kv-offload", "what goes to the store: write_through (each full block) or off",
                   &options.kv_offload,
                   OneOf({"write_through", "off"}, {"write_through_selective", "write_back"}));
  flags.AddChecked(
      "kv-load", "auto (from the store, where waiting for it can pay), load (insist) or recompute",
      &options.kv_load, OneOf({"auto", "load", "recompute"}, {"both"}));
  flags.Add("kv-recheck-one-in",
            "of so many loaded blocks one is computed again and compared; 0: none",
            &options.kv_recheck_one_in, 0, 1'000'000'000);
  flags.AddSwitch("poison-freed-blocks",
                  "fill freed KV blocks with 0xFF, so that reading one shows (for tests)",
                  &options.poison_freed_blocks);
  flags.Add("max-num-seqs", "sequences in one step", &options.max_num_seqs, 1, 4096);
  flags.Add("max-num-batched-tokens", "tokens computed in one step",
            &options.max_num_batched_tokens, 1, 65536);
  flags.Add("max-model-len", "longest prompt plus answer; 0: the model's", &options.max_model_len,
            0, 1 << 24);
  flags.AddSwitch("enable-chunked-prefill", "cut long prompts into chunks between decodes",
                  &options.enable_chunked_prefill);
  flags.Add("weight-epoch", "raise to retire every block of an older model revision",
            &options.weight_epoch);
  flags.Add(
      "drain-delay",
      "seconds after SIGTERM in which requests are still taken, until all know not to send any",
      &options.drain_delay_s, 0, 24 * 3600);
  flags.Add("drain-timeout",
            "seconds after that for running requests to finish; the rest is left to other workers",
            &options.drain_timeout_s, 0, 24 * 3600);
  flags.AddChecked("log-level", "debug, info, warning or error", &options.log_level, log_level);
}

}  // namespace pagoda::worker
