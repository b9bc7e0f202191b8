#include "tests/exactness/trial.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>

#include "common/rpc/remote_block_store.h"

namespace pagoda::exactness {

namespace {

using kvstore::KvStoreServer;

KvStoreServer::Options OnAnyPort() {
  KvStoreServer::Options options;
  options.grpc_address = options.http_address = "127.0.0.1:0";
  options.ram_bytes = uint64_t{96} << 20;  // holds every block of a trial
  return options;
}

}  // namespace

Trial::~Trial() {
  if (!data_dir_.empty()) std::filesystem::remove_all(data_dir_);
}

std::unique_ptr<KvStoreServer> Trial::NewStore() {
  return KvStoreServer::Start(OnAnyPort()).value();
}

std::unique_ptr<KvStoreServer> Trial::NewDiskStore() {
  if (data_dir_.empty()) {
    data_dir_ = ::testing::TempDir() + "/exactness-XXXXXX";
    if (mkdtemp(data_dir_.data()) == nullptr) std::abort();
  }
  const kernels::KvLayout layout =
      worker::KvPool::LayoutFor(subject_.config(), TestWorker::kBlockTokens, kv_).value();
  KvStoreServer::Options options = OnAnyPort();
  // Four records and half a block: less than five.
  options.ram_bytes = static_cast<uint64_t>(layout.block_bytes) * 9 / 2;
  options.data_dir = data_dir_;
  options.disk_bytes = uint64_t{256} << 20;
  return KvStoreServer::Start(options).value();
}

std::shared_ptr<BlockStore> Trial::Connect(const kvstore::KvStoreServer& store) {
  return std::make_shared<rpc::RemoteBlockStore>(rpc::RemoteBlockStore::Options{
      .address = store.grpc_address(), .max_call = std::chrono::minutes(4)});
}

std::vector<worker::GenerationUsage> Trial::AskEach(TestWorker& worker,
                                                    const std::vector<size_t>& which,
                                                    CacheScope scope) {
  std::vector<worker::GenerationUsage> usages;
  for (size_t index : which) {
    const Answer answer = worker.AskOne({.question = &question(index), .scope = scope});
    Compare(index, answer, 0);
    usages.push_back(answer.result.usage);
  }
  return usages;
}

std::vector<worker::GenerationUsage> Trial::AskTogether(TestWorker& worker, CacheScope scope) {
  std::vector<TestWorker::Ask> asks;
  for (size_t index : subject_.all()) {
    asks.push_back({.question = &question(index), .scope = scope});
  }
  const std::vector<Answer> answers = worker.AskAll(std::move(asks));
  std::vector<worker::GenerationUsage> usages;
  for (size_t index : subject_.all()) {
    Compare(index, answers[index], 0);
    usages.push_back(answers[index].result.usage);
  }
  return usages;
}

worker::GenerationUsage Trial::Resume(TestWorker& worker, size_t index, size_t cut,
                                      CacheScope scope) {
  const std::vector<TokenId>& tokens = right(index).tokens;
  const Answer answer =
      worker.AskOne({.question = &question(index),
                     .scope = scope,
                     .emitted = {tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(cut)}});
  Compare(index, answer, cut);
  return answer.result.usage;
}

void Trial::Compare(size_t index, const Answer& answer, size_t from) {
  rows_ += answer.logits.size();
  const std::string difference = Difference(right(index), answer, from);
  if (difference.empty()) return;
  problems_.push_back("DIFFERS: question " + std::to_string(index) + " from token " +
                      std::to_string(from) + ": " + difference);
}

void Trial::ExpectTaken(bool taken, const std::string& what) {
  if (!taken) problems_.push_back("NOT TAKEN: " + what);
}

void Trial::ExpectTaken(double expected, double actual, const std::string& what) {
  if (expected == actual) return;
  problems_.push_back("NOT TAKEN: " + what + " is " + std::to_string(actual) + ", expected " +
                      std::to_string(expected));
}

std::string Trial::Verdict() const {
  if (problems_.empty()) return "ok " + std::to_string(rows_);
  const bool differs = std::any_of(problems_.begin(), problems_.end(),
                                   [](const std::string& p) { return p.starts_with("DIFFERS"); });
  return differs ? "DIFFERS" : "NOT TAKEN";
}

}  // namespace pagoda::exactness
