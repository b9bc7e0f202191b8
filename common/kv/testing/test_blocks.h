// Blocks and sinks for tests of block stores.
//
// Concurrency: RecordingSink may be used from any thread; the rest are plain functions.
#ifndef PAGODA_COMMON_KV_TESTING_TEST_BLOCKS_H_
#define PAGODA_COMMON_KV_TESTING_TEST_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/kv/block_store.h"

namespace pagoda::testing {

// The first `count` blocks of the prefix named by `seed`, each with `payload_bytes` bytes made from
// its key. Equal arguments give equal blocks.
std::vector<PutBlock> MakeChain(uint64_t seed, size_t count, size_t payload_bytes);

std::vector<BlockRef> RefsOf(const std::vector<PutBlock>& blocks);

// The same block with other, valid bytes.
PutBlock Diverge(const PutBlock& block);

BlockView OwnedView(std::string bytes);

// Remembers what a Get answered. kLend asks for views, kMemory gives memory of its own; an error of
// `check` refuses the block.
class RecordingSink : public BlockSink {
 public:
  enum class Mode { kMemory, kLend };

  RecordingSink(size_t blocks, Mode mode,
                std::function<Status(size_t, const RecordHeader&)> check = nullptr);

  StatusOr<Destination> Begin(size_t index, const RecordHeader& header) override;
  void Done(size_t index, GetResult result) override;
  void Finished() override;

  // Waits until Finished was called. False after `limit`.
  bool Wait(Duration limit = std::chrono::minutes(4));

  // REQUIRES: Wait returned true. The counts of callbacks show that each came exactly once.
  const GetResult& result(size_t index) const { return blocks_[index].result; }
  const RecordHeader& header(size_t index) const { return blocks_[index].header; }
  std::string bytes(size_t index) const;
  bool EachDoneOnce() const;

 private:
  struct Block {
    RecordHeader header;
    std::string memory;
    GetResult result;
    int begun = 0;
    int done = 0;
  };

  const Mode mode_;
  const std::function<Status(size_t, const RecordHeader&)> check_;
  std::vector<Block> blocks_;  // handed over by finished_
  Mutex mutex_;
  CondVar changed_;
  int finished_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The calls of a BlockStore, waiting for their answers. They end the test's process after 30 s.
FindResult FindAndWait(BlockStore& store, std::vector<BlockRef> refs, CallContext context = {});
std::vector<PutResult> PutAndWait(BlockStore& store, std::vector<PutBlock> blocks,
                                  CallContext context = {});
std::shared_ptr<RecordingSink> GetAndWait(
    BlockStore& store, std::vector<BlockRef> refs,
    RecordingSink::Mode mode = RecordingSink::Mode::kMemory, CallContext context = {},
    std::function<Status(size_t, const RecordHeader&)> check = nullptr);

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_KV_TESTING_TEST_BLOCKS_H_
