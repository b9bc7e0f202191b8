#include "services/worker/sequence.h"

#include <algorithm>
#include <utility>

namespace pagoda::worker {

Sequence::Sequence(SequenceId id, GenerationRequest request, BlockKeyChain keys, TimePoint arrival)
    : table(static_cast<int32_t>(keys.block_tokens())),
      id_(id),
      request_(std::move(request)),
      arrival_(arrival - request_.age),
      tokens_(request_.prompt_ids),
      keys_(std::move(keys)) {
  tokens_.insert(tokens_.end(), request_.output_ids.begin(), request_.output_ids.end());
  tokens_.reserve(request_.prompt_ids.size() + request_.max_tokens);
  keys_.Append(tokens_);
  if (!request_.penalties.any()) return;
  penalties_.emplace(request_.penalties, request_.stop_token_ids, request_.prompt_ids);
  for (TokenId token : request_.output_ids) penalties_->Append(token);
}

std::span<const BlockRef> Sequence::matchable() const {
  size_t cap = (num_tokens() - 1) / table.block_tokens();
  return refs().first(std::min(cap, refs().size()));
}

std::optional<FinishReason> Sequence::Append(TokenId token) {
  tokens_.push_back(token);
  keys_.Append(std::span(&token, 1));
  if (penalties_) penalties_->Append(token);
  const auto& stops = request_.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return FinishReason::kStop;
  if (num_output() >= static_cast<int32_t>(request_.max_tokens)) return FinishReason::kLength;
  return std::nullopt;
}

bool Sequence::Account(int32_t from, int32_t to) {
  const int32_t delivered = prompt_length() + static_cast<int32_t>(request_.output_ids.size());
  for (int32_t begin = from; begin < to;) {
    int32_t block = begin / table.block_tokens();
    int32_t end = std::min(to, (block + 1) * table.block_tokens());
    BlockSource source = table.at(block).source;
    int32_t seen = std::clamp(high_water_, begin, end);  // [begin, seen) was valid before
    int32_t prompt =
        std::clamp(prompt_length(), seen, end);          // [seen, prompt) is prompt, first time
    int32_t given = std::clamp(delivered, prompt, end);  // [prompt, given): `output_ids`, likewise
    if (source == BlockSource::kComputed) {
      tokens_by_source_[static_cast<int>(source)] += prompt - seen;
      recomputed_ += (seen - begin) + (given - prompt);
    } else {
      tokens_by_source_[static_cast<int>(source)] += given - seen;
    }
    begin = end;
  }
  bool completes = high_water_ < prompt_length() && to >= prompt_length();
  high_water_ = std::max(high_water_, to);
  return completes;
}

GenerationUsage Sequence::usage() const {
  auto by = [this](BlockSource source) { return tokens_by_source_[static_cast<int>(source)]; };
  GenerationUsage usage;
  usage.prompt_tokens = prompt_length();
  usage.completion_tokens = num_output();
  usage.computed = by(BlockSource::kComputed);
  usage.local = by(BlockSource::kLocal);
  usage.ram = by(BlockSource::kRam);
  usage.disk = by(BlockSource::kDisk);
  usage.recomputed = recomputed_;
  return usage;
}

}  // namespace pagoda::worker
