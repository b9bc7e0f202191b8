#include "common/kv/testing/test_blocks.h"

#include <cstdio>
#include <cstdlib>
#include <future>
#include <utility>

#include "common/base/crc32c.h"
#include "common/kv/block_key_chain.h"
#include "common/kv/identity.h"

namespace pagoda::testing {
namespace {

constexpr uint32_t kTokens = 16;
constexpr auto kLimit = std::chrono::minutes(4);

// An answer that never comes is the worst bug of a store; the test must not hang on it.
template <typename T>
T WaitFor(std::future<T> answer) {
  if (answer.wait_for(kLimit) != std::future_status::ready) {
    std::fputs("fatal: a store did not answer within 4 minutes\n", stderr);
    std::abort();
  }
  return answer.get();
}

std::string PayloadOf(const BlockKey& key, size_t bytes) {
  uint64_t state = LoadLe<uint64_t>(key.bytes.data()) | 1;
  std::string payload(bytes + sizeof(state), '\0');
  for (size_t at = 0; at < bytes; at += sizeof(state)) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    StoreLe(payload.data() + at, state ^ state >> 32);
  }
  payload.resize(bytes);
  return payload;
}

}  // namespace

BlockView OwnedView(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {reinterpret_cast<const std::byte*>(owner->data()), owner->size(), owner};
}

std::vector<PutBlock> MakeChain(uint64_t seed, size_t count, size_t payload_bytes) {
  Space space = MakeSpace({.block_tokens = kTokens, .rope = "", .numerics = "test"});
  Namespace tenant = MakeNamespace("", space, "tenant", 0, 0);
  BlockKeyChain chain(tenant, tenant, CacheScope::Tenant(), kTokens);
  std::vector<TokenId> tokens(count * kTokens, static_cast<TokenId>(seed));
  if (count > 0) tokens[1] = static_cast<TokenId>(seed >> 32);
  chain.Append(tokens);
  std::vector<PutBlock> blocks;
  for (const BlockRef& ref : chain.refs()) {
    PutBlock block;
    block.payload = OwnedView(PayloadOf(ref.key, payload_bytes));
    block.header = {.ref = ref,
                    .space = space,
                    .name_space = tenant,
                    .token_count = kTokens,
                    .payload_bytes = payload_bytes,
                    .payload_crc = Crc32c(block.payload.data, payload_bytes),
                    .producer_instance = 7,
                    .producer_build = "test",
                    .created_unix_ns = 1'700'000'000'000'000'000};
    block.meta.owner_tenant = "tenant";
    blocks.push_back(std::move(block));
  }
  return blocks;
}

std::vector<BlockRef> RefsOf(const std::vector<PutBlock>& blocks) {
  std::vector<BlockRef> refs;
  for (const PutBlock& block : blocks) refs.push_back(block.header.ref);
  return refs;
}

PutBlock Diverge(const PutBlock& block) {
  PutBlock other = block;
  std::string bytes(block.payload.bytes());
  bytes[0] ^= 1;
  other.header.payload_crc = Crc32c(bytes.data(), bytes.size());
  other.payload = OwnedView(std::move(bytes));
  return other;
}

RecordingSink::RecordingSink(size_t blocks, Mode mode,
                             std::function<Status(size_t, const RecordHeader&)> check)
    : mode_(mode), check_(std::move(check)), blocks_(blocks) {}

StatusOr<Destination> RecordingSink::Begin(size_t index, const RecordHeader& header) {
  Block& block = blocks_.at(index);
  ++block.begun;
  block.header = header;
  if (check_) PAGODA_RETURN_IF_ERROR(check_(index, header));
  if (mode_ == Mode::kLend) return Destination::Lend();
  block.memory.assign(header.payload_bytes, '\0');
  return Destination::Memory(reinterpret_cast<std::byte*>(block.memory.data()));
}

void RecordingSink::Done(size_t index, GetResult result) {
  Block& block = blocks_.at(index);
  ++block.done;
  block.result = std::move(result);
}

void RecordingSink::Finished() {
  MutexLock lock(mutex_);
  ++finished_;
  changed_.SignalAll();
}

bool RecordingSink::Wait(Duration limit) {
  TimePoint deadline = SystemClock::Get()->Now() + limit;
  MutexLock lock(mutex_);
  while (finished_ == 0) {
    if (!changed_.WaitUntil(mutex_, deadline) && SystemClock::Get()->Now() >= deadline) break;
  }
  return finished_ > 0;
}

std::string RecordingSink::bytes(size_t index) const {
  const Block& block = blocks_.at(index);
  return mode_ == Mode::kLend ? std::string(block.result.lent.bytes()) : block.memory;
}

bool RecordingSink::EachDoneOnce() const {
  for (const Block& block : blocks_) {
    if (block.done != 1 || block.begun > 1) return false;
  }
  return true;
}

FindResult FindAndWait(BlockStore& store, std::vector<BlockRef> refs, CallContext context) {
  auto promise = std::make_shared<std::promise<FindResult>>();
  store.FindMissing(context, std::move(refs),
                    [promise](FindResult result) { promise->set_value(std::move(result)); });
  return WaitFor(promise->get_future());
}

std::vector<PutResult> PutAndWait(BlockStore& store, std::vector<PutBlock> blocks,
                                  CallContext context) {
  auto promise = std::make_shared<std::promise<std::vector<PutResult>>>();
  store.Put(context, std::move(blocks),
            [promise](std::vector<PutResult> results) { promise->set_value(std::move(results)); });
  return WaitFor(promise->get_future());
}

std::shared_ptr<RecordingSink> GetAndWait(
    BlockStore& store, std::vector<BlockRef> refs, RecordingSink::Mode mode, CallContext context,
    std::function<Status(size_t, const RecordHeader&)> check) {
  auto sink = std::make_shared<RecordingSink>(refs.size(), mode, std::move(check));
  store.Get(context, std::move(refs), sink);
  if (!sink->Wait(kLimit)) {
    std::fputs("fatal: a store did not finish a Get within 4 minutes\n", stderr);
    std::abort();
  }
  return sink;
}

}  // namespace pagoda::testing
