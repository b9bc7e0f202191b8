// A RAM tier that goes wrong as told, for a KV store whose faults can be changed while it serves.
//
//   none           nothing is wrong
//   slow MS        lookups, and each block read, are answered after MS milliseconds
//   slow_reads MS  only the reads
//   refuse         every call fails with UNAVAILABLE
//   full           no put finds room
//   corrupt        a bit of every payload flips; its header is as it was
//   truncated      every payload lacks its last byte
//   cut            a read breaks off at some block
//   foreign        every header names another space
//   tenant         every header names another namespace
//   other          every header names another key
//   divergent      other bytes under a valid checksum: no reader can see it
//   overtaken      whatever is put, another worker was faster, with other bytes
//   foreign_protocol  only what the store says of itself: no protocol version of ours
//   lying          lookups promise what reads then miss, about half of the blocks
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_TESTS_FAULTS_FAULTY_TIER_H_
#define PAGODA_TESTS_FAULTS_FAULTY_TIER_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "common/kv/testing/delayed_store.h"
#include "common/kv/testing/faulty_store.h"
#include "services/kvstore/reserving_store.h"

namespace pagoda::testing {

class FaultyTier final : public kvstore::ReservingStore {
 public:
  explicit FaultyTier(std::shared_ptr<kvstore::ReservingStore> tier);

  // A line of the table above. Error: INVALID_ARGUMENT.
  Status SetFault(std::string_view text);

  // Whether puts are to be refused: a tier can refuse blocks, but not the call.
  bool refuses_puts() const { return refuses_puts_; }

  // Whether the store is to say that it speaks a foreign protocol.
  bool foreign_protocol() const { return foreign_protocol_; }

  void FindMissing(const CallContext& context, std::vector<BlockRef> refs,
                   FindCallback done) override;
  kvstore::CallNumber StartCall() override { return tier_->StartCall(); }
  void GetPart(kvstore::CallNumber call, const CallContext& context, std::vector<BlockRef> refs,
               std::shared_ptr<BlockSink> sink) override;
  void Put(const CallContext& context, std::vector<PutBlock> blocks, PutCallback done) override;
  void ReportCorrupt(const CorruptReport& report) override { tier_->ReportCorrupt(report); }
  kvstore::ReserveResult Reserve(kvstore::CallNumber call, const RecordHeader& header,
                                 const RecordMeta& meta) override;

 private:
  const std::shared_ptr<kvstore::ReservingStore> tier_;
  const std::shared_ptr<FaultyStore> faulty_;
  DelayedStore delayed_;
  std::atomic<bool> quick_lookups_{false};
  std::atomic<bool> refuses_puts_{false};
  std::atomic<bool> foreign_protocol_{false};
  std::atomic<bool> full_{false};
  std::atomic<bool> overtaken_{false};
};

}  // namespace pagoda::testing

#endif  // PAGODA_TESTS_FAULTS_FAULTY_TIER_H_
