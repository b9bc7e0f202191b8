// A KV store in another process, as a BlockStore: one connection for lookups, one for blocks.
//
// Every call has a deadline; any failure is an answer for the blocks it hit, never a hang: a store
// that is gone, frozen, slow or broken costs its callers misses and dropped pushes. It does not
// retry, and it does not decide when to stop asking.
//
// - It asks the store who it is (store_handshake.h). One without a protocol version of ours fails
//   every call at once, as if it were gone; limits that are smaller than ours are kept: a lookup or
//   Get of more blocks than it allows fails as a whole.
// - Get checks each header (its checksum, key and place in the prefix) before the sink sees it,
//   copies once with the checksum in that pass, and lends memory of its own. What fails is reported
//   back to the store.
// - Put sends a lone block at once and offers several first, so that only what is wanted travels.
//   Payloads are sent from where they lie; their owners say when gRPC has let go.
//
// Concurrency: every method may be called from any thread. Answers come on gRPC's threads, or on
// the calling thread when nothing was sent. The destructor calls off what runs and waits for its
// answers: never from a callback.
#ifndef PAGODA_COMMON_RPC_REMOTE_BLOCK_STORE_H_
#define PAGODA_COMMON_RPC_REMOTE_BLOCK_STORE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/metrics.h"
#include "common/kv/block_store.h"
#include "common/rpc/connection_limits.h"

namespace pagoda::rpc {

class RemoteBlockStore final : public BlockStore {
 public:
  struct Options {
    std::string address;                           // HOST:PORT or unix:PATH
    Duration max_call = std::chrono::seconds(30);  // caps every deadline
    int max_gets = 64;  // running at once; more fail: each may hold a block being copied
    uint64_t max_put_bytes = uint64_t{256} << 20;  // of running puts; more get NO_ROOM
    // A store that does not answer a report by then will not forget the block sooner for being
    // asked longer.
    Duration report_timeout = std::chrono::seconds(1);
    ConnectionLimits connection;  // of both connections
    Metrics* metrics = nullptr;  // of corrupt blocks and the handshake; outlives the store
  };

  explicit RemoteBlockStore(const Options& options);
  ~RemoteBlockStore() override;

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  void Get(const CallContext& context, std::vector<BlockRef> refs,
           std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  // Sent with a deadline of its own; dropped when kMaxReports are on their way.
  void ReportCorrupt(const CorruptReport& report) override;

 private:
  const std::unique_ptr<struct RemoteCalls> calls_;
};

}  // namespace pagoda::rpc

#endif  // PAGODA_COMMON_RPC_REMOTE_BLOCK_STORE_H_
