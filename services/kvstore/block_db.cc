#include "services/kvstore/block_db.h"

#include <rocksdb/db.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/crc32c.h"
#include "common/base/logging.h"
#include "services/kvstore/rocks_options.h"

namespace pagoda::kvstore {
namespace {

// Keys: a letter and the sequence number, big-endian, so that the order of keys is that of age.
constexpr char kIndexKeys = 'i';
constexpr char kPayloadKeys = 'v';
constexpr size_t kKeyBytes = 1 + sizeof(uint64_t);
constexpr uint32_t kRetryMs = 1000;

std::string KeyOf(char kind, uint64_t sequence) {
  std::string key(kKeyBytes, kind);
  for (size_t i = 1; i < kKeyBytes; ++i) key[i] = static_cast<char>(sequence >> (64 - 8 * i));
  return key;
}

uint64_t SequenceOf(std::string_view key) {
  uint64_t sequence = 0;
  for (char c : key.substr(1)) sequence = sequence << 8 | static_cast<uint8_t>(c);
  return sequence;
}

Status FromRocks(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsCorruption()) return absl::DataLossError(status.ToString());
  return absl::UnavailableError(status.ToString());
}

uint64_t CountedBytes(const RecordHeader& header, size_t meta_bytes) {
  return 2 * kKeyBytes + RecordHeader::kBytes + meta_bytes + header.payload_bytes;
}

void AppendDeletes(const std::vector<uint64_t>& sequences, rocksdb::WriteBatch& batch) {
  for (uint64_t sequence : sequences) {
    batch.Delete(KeyOf(kIndexKeys, sequence));
    batch.Delete(KeyOf(kPayloadKeys, sequence));
  }
}

rocksdb::WriteOptions WithoutLog() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

}  // namespace

uint64_t BlockDb::MemoryBytes(uint64_t disk_bytes) { return RocksMemoryBytes(disk_bytes); }

BlockDb::BlockDb(const Options& options)
    : options_(options),
      max_blocks_(std::max<uint64_t>(options.bytes / kMinBytesPerBlock, 1)),
      metrics_(options.metrics == nullptr ? nullptr
                                          : std::make_unique<DiskMetrics>(*options.metrics)) {}

StatusOr<std::unique_ptr<BlockDb>> BlockDb::Open(const Options& options) {
  if (options.bytes == 0) return absl::InvalidArgumentError("0 bytes, must be at least 1");
  std::unique_ptr<BlockDb> db(new BlockDb(options));
  rocksdb::DB* opened = nullptr;
  rocksdb::Status status =
      rocksdb::DB::Open(RocksOptions(options.bytes, options.env), options.folder, &opened);
  // A database without one of its files stays so; as an unavailable disk it would never come back.
  if (status.IsPathNotFound()) return absl::DataLossError(status.ToString());
  PAGODA_RETURN_IF_ERROR(FromRocks(status));
  db->db_.reset(opened);
  PAGODA_RETURN_IF_ERROR(db->ReadIndex());
  PAGODA_RETURN_IF_ERROR(db->DropOverLimit());
  if (db->metrics_ != nullptr) db->metrics_->up.Set(1);
  return db;
}

BlockDb::~BlockDb() {
  if (db_ == nullptr) return;
  if (Status status = Flush(); !status.ok()) {
    Log(LogLevel::kWarning, "the last blocks were not written to disk", {{"status", status}});
  }
}

Status BlockDb::ReadIndex() {
  std::vector<Sequence> stored_again;
  MutexLock lock(mutex_);
  std::string end(1, kIndexKeys + 1);
  rocksdb::Slice bound(end);
  rocksdb::ReadOptions read;
  read.iterate_upper_bound = &bound;
  read.fill_cache = false;
  read.readahead_size = 2 << 20;
  std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(read));
  for (it->Seek(std::string(1, kIndexKeys)); it->Valid(); it->Next()) {
    Sequence sequence = SequenceOf(it->key().ToStringView());
    std::string_view record = it->value().ToStringView();
    next_ = sequence + 1;
    size_t meta_bytes = 0;
    StatusOr<RecordHeader> header = DecodeHeader(record);
    StatusOr<RecordMeta> meta = absl::DataLossError("");
    if (header.ok()) meta = DecodeMeta(record.substr(RecordHeader::kBytes), &meta_bytes);
    if (!meta.ok()) {
      return absl::DataLossError("index record " + std::to_string(sequence) + " is not one");
    }
    // It was forgotten, could not be deleted, and was stored again: the younger is the one to keep.
    if (auto older = index_.find(header->ref.key); older != index_.end()) {
      stored_again.push_back(older->second);
      Drop(older->second);
    }
    Add(sequence, {header->ref.key,
                   CountedBytes(*header, meta_bytes),
                   {header->payload_bytes, header->payload_crc, header->producer_instance,
                    *std::move(meta)}});
  }
  PAGODA_RETURN_IF_ERROR(FromRocks(it->status()));
  return Delete(WithoutLog(), stored_again);
}

Status BlockDb::DropOverLimit() {
  std::vector<Sequence> victims;
  {
    MutexLock lock(mutex_);
    victims = Victims(0, 0);
    for (Sequence victim : victims) {
      Drop(victim);
      ++evicted_;
    }
    ShowGauges();
  }
  return Delete(WithoutLog(), victims);
}

Status BlockDb::Delete(const rocksdb::WriteOptions& how, const std::vector<Sequence>& sequences) {
  rocksdb::WriteBatch batch;
  AppendDeletes(sequences, batch);
  return FromRocks(db_->Write(how, &batch));
}

std::vector<BlockDb::Sequence> BlockDb::Victims(uint64_t bytes, uint64_t blocks) const {
  std::vector<Sequence> victims;
  uint64_t left = used_;
  for (const auto& [sequence, entry] : entries_) {
    if (left + bytes <= options_.bytes &&
        entries_.size() - victims.size() + blocks <= max_blocks_) {
      break;
    }
    victims.push_back(sequence);
    left -= entry.bytes;
  }
  return victims;
}

void BlockDb::Add(Sequence sequence, Entry entry) {
  entry.owner = owners_.Add(entry.block.meta.owner_tenant, entry.bytes);
  used_ += entry.bytes;
  index_.emplace(entry.key, sequence);
  entries_.emplace(sequence, std::move(entry));
}

bool BlockDb::Drop(Sequence sequence) {
  auto it = entries_.find(sequence);
  if (it == entries_.end()) return false;
  const Entry& entry = it->second;
  owners_.Remove(entry.owner, entry.bytes);
  used_ -= entry.bytes;
  index_.erase(entry.key);
  entries_.erase(it);
  return true;
}

void BlockDb::ShowGauges() {
  if (metrics_ == nullptr) return;
  metrics_->bytes.Set(static_cast<double>(used_));
  metrics_->blocks.Set(static_cast<double>(entries_.size()));
}

std::optional<IndexedBlock> BlockDb::Lookup(const BlockKey& key) const {
  MutexLock lock(mutex_);
  auto it = index_.find(key);
  if (it == index_.end()) return std::nullopt;
  return entries_.at(it->second).block;
}

GetResult BlockDb::Read(size_t index, const BlockKey& key, BlockSink& sink) {
  Sequence sequence = 0;
  {
    MutexLock lock(mutex_);
    auto it = index_.find(key);
    if (it == index_.end()) return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
    sequence = it->second;
  }
  rocksdb::ReadOptions read;
  read.fill_cache = true;
  std::string record;
  rocksdb::Status got = db_->Get(read, KeyOf(kIndexKeys, sequence), &record);
  if (!got.ok()) return Unreadable(sequence, FromRocks(got));
  StatusOr<RecordHeader> header = DecodeHeader(record);
  if (header.ok() && header->ref.key != key) header = absl::DataLossError("another block's header");
  if (!header.ok()) return Quarantine(sequence, key, header.status());
  StatusOr<Destination> destination = sink.Begin(index, *header);
  if (!destination.ok()) return {GetOutcome::kRefused, Tier::kDisk, destination.status(), {}};

  // The payload's own checksum is verified in the copy; RocksDB's would be computed in software.
  read.verify_checksums = false;
  rocksdb::PinnableSlice payload;
  got = db_->Get(read, db_->DefaultColumnFamily(), KeyOf(kPayloadKeys, sequence), &payload);
  if (got.IsCorruption()) return Quarantine(sequence, key, FromRocks(got));
  if (!got.ok()) return Unreadable(sequence, FromRocks(got));
  if (payload.size() != header->payload_bytes) {
    return Quarantine(sequence, key, absl::DataLossError("payload: wrong length"));
  }
  std::shared_ptr<std::byte[]> lent;
  std::byte* to = destination->memory;
  if (to == nullptr) {
    lent.reset(new std::byte[payload.size()]);
    to = lent.get();
  }
  if (CopyWithCrc32c(to, payload.data(), payload.size()) != header->payload_crc) {
    return Quarantine(sequence, key, absl::DataLossError("payload: wrong checksum"));
  }
  GetResult found{GetOutcome::kFound, Tier::kDisk, absl::OkStatus(), {}};
  if (lent != nullptr) found.lent = {to, payload.size(), std::move(lent)};
  return found;
}

GetResult BlockDb::Quarantine(Sequence sequence, const BlockKey& key, const Status& why) {
  if (!Forget(sequence, key, why)) {
    return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
  }
  if (metrics_ != nullptr) metrics_->corrupt.Increment();
  return {GetOutcome::kCorrupt, Tier::kDisk, why, {}};
}

bool BlockDb::Forget(Sequence sequence, const BlockKey& key, const Status& why) {
  {
    MutexLock lock(mutex_);
    if (!Drop(sequence)) return false;
    ++corrupt_;
    ShowGauges();
  }
  Log(LogLevel::kError, "a block on disk is wrong and was dropped",
      {{"key", key.ToHex()}, {"why", why}});
  // With the log: a kill must not bring it back.
  if (Status status = Delete({}, {sequence}); !status.ok()) {
    Log(LogLevel::kError, "a wrong block was not deleted from disk", {{"status", status}});
  }
  return true;
}

GetResult BlockDb::Unreadable(Sequence sequence, const Status& why) {
  {
    MutexLock lock(mutex_);
    // It made way for another block while it was read.
    if (!Drop(sequence)) return {GetOutcome::kMissing, Tier::kNone, absl::OkStatus(), {}};
    ShowGauges();
  }
  if (metrics_ != nullptr) metrics_->read_errors.Increment();
  Log(LogLevel::kError, "a block on disk cannot be read and is forgotten", {{"status", why}});
  // Else its bytes would stay, counted by nobody.
  if (Status status = Delete(WithoutLog(), {sequence}); !status.ok()) {
    Log(LogLevel::kError, "a forgotten block was not deleted from disk", {{"status", status}});
  }
  return {GetOutcome::kFailed, Tier::kDisk, absl::UnavailableError(why.message()), {}};
}

void BlockDb::ReportCorrupt(const CorruptReport& report) {
  Sequence sequence = 0;
  {
    MutexLock lock(mutex_);
    auto it = index_.find(report.key);
    if (it == index_.end()) return;
    sequence = it->second;
  }
  Forget(sequence, report.key, absl::DataLossError(report.reason));
}

PutResult BlockDb::Write(const PutBlock& block) {
  const RecordHeader& header = block.header;
  Status fits = CheckHeader(header);
  if (fits.ok()) fits = CheckPayload(header, block.payload.bytes());
  if (fits.ok() && block.meta.owner_tenant.size() > kMaxTenantBytes) {
    fits = absl::InvalidArgumentError("owner_tenant is over its limit");
  }
  if (!fits.ok()) return {PutOutcome::kCorrupt, 0, fits};
  std::string meta = EncodeMeta(block.meta);
  uint64_t bytes = CountedBytes(header, meta.size());
  std::vector<Sequence> victims;
  {
    MutexLock lock(mutex_);
    if (auto it = index_.find(header.ref.key); it != index_.end()) {
      if (entries_.at(it->second).block.SameBytes(header)) {
        return {PutOutcome::kHave, 0, absl::OkStatus()};
      }
      ++divergent_;
      if (metrics_ != nullptr) metrics_->divergent.Increment();
      return {PutOutcome::kDivergent, 0,
              absl::AlreadyExistsError("block " + header.ref.key.ToHex() +
                                       " is held with other bytes")};
    }
    if (bytes > options_.bytes) {
      return {PutOutcome::kNoRoom, kRetryMs, absl::ResourceExhaustedError("larger than the tier")};
    }
    victims = Victims(bytes, 1);
  }
  if (Status status = CheckWritable(bytes); !status.ok()) return {PutOutcome::kFailed, 0, status};
  rocksdb::WriteBatch batch;
  AppendDeletes(victims, batch);
  batch.Put(KeyOf(kIndexKeys, next_), EncodeHeader(header) + meta);
  batch.Put(KeyOf(kPayloadKeys, next_),
            {reinterpret_cast<const char*>(block.payload.data), block.payload.size});
  Status written = FromRocks(db_->Write(WithoutLog(), &batch));
  SetUp(written);
  if (!written.ok()) return {PutOutcome::kFailed, 0, written};
  MutexLock lock(mutex_);
  for (Sequence victim : victims) {
    if (Drop(victim)) ++evicted_;
  }
  Add(next_++, {header.ref.key,
                bytes,
                {header.payload_bytes, header.payload_crc, header.producer_instance, block.meta}});
  ShowGauges();
  return {PutOutcome::kStored, 0, absl::OkStatus()};
}

Status BlockDb::CheckWritable(uint64_t bytes) {
  if (!write_status_.ok()) {
    if (options_.clock->Now() - write_failed_at_ < options_.retry_after) return write_status_;
    if (Status resumed = FromRocks(db_->Resume()); !resumed.ok()) {
      SetUp(resumed);
      return resumed;
    }
  }
  struct statvfs system;
  if (statvfs(options_.folder.c_str(), &system) != 0) return absl::OkStatus();
  uint64_t free = uint64_t{system.f_bavail} * system.f_frsize;
  if (free >= options_.min_free_bytes && free - options_.min_free_bytes >= bytes) {
    return absl::OkStatus();
  }
  Status full =
      absl::ResourceExhaustedError("the file system has " + FormatBytes(free) + " left, " +
                                   FormatBytes(options_.min_free_bytes) + " of it are kept free");
  SetUp(full);
  return full;
}

void BlockDb::SetUp(const Status& status) {
  if (!status.ok()) {
    write_failed_at_ = options_.clock->Now();
    if (metrics_ != nullptr) metrics_->write_errors.Increment();
  }
  if (status.ok() != write_status_.ok()) {
    Log(status.ok() ? LogLevel::kInfo : LogLevel::kError,
        status.ok() ? "the disk takes blocks again" : "the disk takes no blocks, RAM goes on",
        {{"status", status}});
    if (metrics_ != nullptr) metrics_->up.Set(status.ok() ? 1 : 0);
  }
  write_status_ = status;
}

Status BlockDb::Flush() {
  Status status = FromRocks(db_->Flush(rocksdb::FlushOptions()));
  if (!status.ok()) SetUp(status);
  return status;
}

StoreStats BlockDb::Stats() const {
  MutexLock lock(mutex_);
  StoreStats stats;
  stats.tiers.push_back({Tier::kDisk, entries_.size(), used_, options_.bytes, evicted_,
                         entries_.size() * kIndexBytesPerBlock});
  stats.owners = owners_.List();
  stats.divergent_puts = divergent_;
  stats.corrupt_blocks = corrupt_;
  return stats;
}

Status BlockDb::CheckIntegrity() const {
  MutexLock lock(mutex_);
  uint64_t entry_bytes = 0;
  for (const auto& [sequence, entry] : entries_) {
    entry_bytes += entry.bytes;
    auto it = index_.find(entry.key);
    if (it == index_.end() || it->second != sequence) {
      return absl::InternalError("disk tier: the index does not name an entry");
    }
  }
  if (index_.size() != entries_.size()) {
    return absl::InternalError("disk tier: index and entries differ in number");
  }
  if (entry_bytes != used_ || used_ > options_.bytes || !owners_.SumsTo(entries_.size(), used_)) {
    return absl::InternalError("disk tier: entries and owners do not sum to what is used");
  }
  return absl::OkStatus();
}

}  // namespace pagoda::kvstore
