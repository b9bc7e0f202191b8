#include "services/worker/forward_pass.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/attention/attend_tile.h"
#include "kernels/rope/rope_table.h"

namespace pagoda::worker {
namespace {

// Query rows that walk the KV blocks together: enough to use each block several times, few enough
// that a short prompt still makes work for every thread. It cannot change a bit.
constexpr int32_t kTileRows = 16;

constexpr int64_t kLineFloats = 16;
int64_t Padded(int64_t floats) { return (floats + kLineFloats - 1) / kLineFloats * kLineFloats; }

// Floats of each activation, in the order in which they lie in memory.
constexpr size_t kNumActivations = 12;
std::array<int64_t, kNumActivations> ActivationFloats(const model::ModelConfig& config,
                                                      const StepLimits& limits) {
  const int64_t rows = limits.max_num_batched_tokens;
  const int64_t hidden = rows * config.hidden, ffn = rows * config.ffn;
  const int64_t q = rows * config.q_width(), kv = rows * config.kv_width();
  const int64_t pairs = rows * (config.rope_dim / 2);
  const int64_t sampled = int64_t{limits.max_num_seqs} * config.hidden;
  return {hidden, hidden, hidden, q, kv, kv, q, ffn, ffn, pairs, pairs, sampled};
}

int64_t ScratchFloats(const model::ModelConfig& config) {
  return Padded(kernels::AttendTileScratchFloats(kTileRows, config.num_heads / config.num_kv_heads,
                                                 config.head_dim));
}

kernels::RopeOrder KernelOrder(model::RopeOrder order) {
  return order == model::RopeOrder::kAdjacentPairs ? kernels::RopeOrder::kAdjacent
                                                   : kernels::RopeOrder::kHalfSplit;
}

}  // namespace

MemoryBudget ForwardPass::Budget(const model::ModelConfig& config, const StepLimits& limits,
                                 int threads) {
  int64_t floats = 0;
  for (int64_t part : ActivationFloats(config, limits)) floats += Padded(part);
  constexpr int64_t kFloat = sizeof(float);
  return {.activations = floats * kFloat,
          .logits = int64_t{limits.max_num_seqs} * config.vocabulary * kFloat,
          .scores = threads * ScratchFloats(config) * kFloat};
}

StatusOr<std::unique_ptr<ForwardPass>> ForwardPass::Create(const Options& options) {
  std::unique_ptr<ForwardPass> pass(new ForwardPass(options));
  const model::ModelConfig& config = options.config;
  const MemoryBudget budget = Budget(config, options.limits, options.team->size());
  PAGODA_ASSIGN_OR_RETURN(pass->activations_,
                          AlignedBuffer::Allocate(budget.activations, "activations"));
  PAGODA_ASSIGN_OR_RETURN(pass->logits_memory_, AlignedBuffer::Allocate(budget.logits, "logits"));
  PAGODA_ASSIGN_OR_RETURN(pass->scores_, AlignedBuffer::Allocate(budget.scores, "scores"));

  float** const views[kNumActivations] = {
      &pass->x_,        &pass->delta_, &pass->h_,  &pass->q_,   &pass->k_,   &pass->v_,
      &pass->attended_, &pass->gate_,  &pass->up_, &pass->cos_, &pass->sin_, &pass->sampled_};
  auto* at = reinterpret_cast<float*>(pass->activations_.data());
  const auto floats = ActivationFloats(config, options.limits);
  for (size_t i = 0; i < kNumActivations; ++i) {
    *views[i] = at;
    at += Padded(floats[i]);
  }
  pass->logits_ = reinterpret_cast<float*>(pass->logits_memory_.data());
  pass->scratch_floats_ = ScratchFloats(config);

  pass->inv_freq_.resize(config.rope_dim / 2);
  kernels::RopeInvFreq(config.rope_base, config.rope_dim, pass->inv_freq_.data());
  pass->blocks_.resize(static_cast<size_t>(options.limits.max_num_seqs) *
                       options.limits.max_blocks_per_seq);
  pass->visible_.resize(options.limits.max_num_batched_tokens);
  pass->tiles_.reserve(options.limits.max_num_batched_tokens);
  pass->next_unit_ = std::vector<std::atomic<int32_t>>(config.num_layers);
  return pass;
}

void ForwardPass::Prepare(const StepPlan& plan) {
  plan_ = &plan;
  for (int32_t i = 0; i < plan.num_block_entries; ++i) {
    blocks_[i] = options_.pool.Block(plan.block_tables[i]);
  }
  for (int32_t row = 0; row < plan.num_rows; ++row) visible_[row] = plan.slots[row] + 1;
  tiles_.clear();
  for (int32_t i = 0; i < plan.num_slices; ++i) {
    const PlanSlice& slice = plan.slices[i];
    for (int32_t done = 0; done < slice.num_rows; done += kTileRows) {
      tiles_.push_back(
          {slice.first_row + done, std::min(kTileRows, slice.num_rows - done), slice.first_block});
    }
  }
  for (std::atomic<int32_t>& next : next_unit_) next.store(0, std::memory_order_relaxed);
}

void ForwardPass::Run(const StepPlan& plan) {
  Prepare(plan);
  options_.team->Run([this](int thread) { Work(thread); });
  plan_ = nullptr;
}

void ForwardPass::Work(int thread) {
  Embed(thread);
  for (int32_t layer = 0; layer < options_.config.num_layers; ++layer) Layer(layer, thread);
  if (plan_->num_samples > 0) Head(thread);
}

void ForwardPass::Embed(int thread) {
  const model::ModelConfig& config = options_.config;
  const int32_t pairs = config.rope_dim / 2;
  const Range rows = PartOf(plan_->num_rows, options_.team->size(), thread);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    options_.ops->dequantize_row(options_.weights->embedding(),
                                 static_cast<int32_t>(plan_->tokens[row]),
                                 x_ + row * config.hidden);
    kernels::RopeRow(inv_freq_.data(), pairs, plan_->positions[row], cos_ + row * pairs,
                     sin_ + row * pairs);
  }
}

void ForwardPass::Norm(const float* weight, bool add_delta, int thread) {
  const int64_t hidden = options_.config.hidden;
  const Range rows = PartOf(plan_->num_rows, options_.team->size(), thread);
  options_.ops->rms_norm({.x = x_ + rows.begin * hidden,
                          .x_stride = hidden,
                          .add = add_delta ? delta_ + rows.begin * hidden : nullptr,
                          .add_stride = hidden,
                          .weight = weight,
                          .y = h_ + rows.begin * hidden,
                          .y_stride = hidden,
                          .rows = static_cast<int32_t>(rows.end - rows.begin),
                          .cols = options_.config.hidden,
                          .eps = options_.config.rms_eps});
}

void ForwardPass::Linear(const kernels::PackedMatrix& matrix, const float* x, float* y,
                         int32_t tokens, int thread) {
  const Range groups = PartOf(kernels::RowGroups(matrix.rows), options_.team->size(), thread);
  options_.ops->linear({.weights = matrix,
                        .x = x,
                        .x_stride = matrix.cols,
                        .y = y,
                        .y_stride = matrix.rows,
                        .tokens = tokens,
                        .group_begin = static_cast<int32_t>(groups.begin),
                        .group_end = static_cast<int32_t>(groups.end)});
}

void ForwardPass::Layer(int32_t index, int thread) {
  const LayerWeights& layer = options_.weights->layers()[index];
  ThreadTeam& team = *options_.team;
  const int32_t tokens = plan_->num_rows;
  // Norm reads only rows that this thread wrote or that a barrier has published.
  Norm(layer.attn_norm, index > 0, thread);
  team.Barrier();
  Linear(layer.q, h_, q_, tokens, thread);
  Linear(layer.k, h_, k_, tokens, thread);
  Linear(layer.v, h_, v_, tokens, thread);
  team.Barrier();
  StoreKv(index, thread);
  team.Barrier();
  Attention(index, thread);
  team.Barrier();
  Linear(layer.o, attended_, delta_, tokens, thread);
  team.Barrier();
  Norm(layer.ffn_norm, true, thread);
  team.Barrier();
  FeedForward(layer, thread);
  team.Barrier();
  Linear(layer.down, gate_, delta_, tokens, thread);
  team.Barrier();
}

void ForwardPass::StoreKv(int32_t layer, int thread) {
  const model::ModelConfig& config = options_.config;
  const int64_t q_width = config.q_width(), kv_width = config.kv_width();
  const int64_t pairs = config.rope_dim / 2;
  const Range rows = PartOf(plan_->num_rows, options_.team->size(), thread);
  kernels::RopeParams rope{.x = q_ + rows.begin * q_width,
                           .x_stride = q_width,
                           .cos = cos_ + rows.begin * pairs,
                           .sin = sin_ + rows.begin * pairs,
                           .rows = static_cast<int32_t>(rows.end - rows.begin),
                           .heads = config.num_heads,
                           .head_dim = config.head_dim,
                           .rotary_dim = config.rope_dim,
                           .order = KernelOrder(config.rope_order)};
  options_.ops->rope(rope);
  rope.x = k_ + rows.begin * kv_width;
  rope.x_stride = kv_width;
  rope.heads = config.num_kv_heads;
  options_.ops->rope(rope);

  const int32_t block_tokens = options_.pool.layout->spec.block_tokens;
  for (int32_t i = 0; i < plan_->num_slices; ++i) {
    const PlanSlice& slice = plan_->slices[i];
    const int64_t begin = std::max<int64_t>(rows.begin, slice.first_row);
    const int64_t end = std::min<int64_t>(rows.end, slice.first_row + slice.num_rows);
    for (int64_t row = begin; row < end; ++row) {
      const int32_t entry = slice.first_block + plan_->slots[row] / block_tokens;
      options_.ops->write_kv({.layout = options_.pool.layout,
                              .layer = layer,
                              .block = options_.pool.Block(plan_->block_tables[entry]),
                              .slot = plan_->slots[row] % block_tokens,
                              .k = k_ + row * kv_width,
                              .v = v_ + row * kv_width});
    }
  }
}

void ForwardPass::Attention(int32_t layer, int thread) {
  const model::ModelConfig& config = options_.config;
  const kernels::KvLayout& layout = *options_.pool.layout;
  const int32_t group = config.num_heads / config.num_kv_heads;
  const auto units = static_cast<int32_t>(tiles_.size()) * config.num_kv_heads;
  auto* scratch = reinterpret_cast<float*>(scores_.data()) + thread * scratch_floats_;
  for (int32_t unit = next_unit_[layer].fetch_add(1, std::memory_order_relaxed); unit < units;
       unit = next_unit_[layer].fetch_add(1, std::memory_order_relaxed)) {
    const Tile& tile = tiles_[unit / config.num_kv_heads];
    const int32_t kv_head = unit % config.num_kv_heads;
    const int64_t at =
        int64_t{tile.first_row} * config.q_width() + int64_t{kv_head} * group * config.head_dim;
    kernels::AttendTile(*options_.ops, {.tile = {.k = layout.K(layer, kv_head),
                                                 .v = layout.V(layer, kv_head),
                                                 .block_tokens = layout.spec.block_tokens,
                                                 .head_dim = config.head_dim,
                                                 .blocks = blocks_.data() + tile.first_block,
                                                 .q = q_ + at,
                                                 .q_stride = config.q_width(),
                                                 .rows = tile.num_rows,
                                                 .group = group,
                                                 .visible = visible_.data() + tile.first_row,
                                                 .scale = config.attention_scale},
                                        .scratch = scratch,
                                        .out = attended_ + at,
                                        .out_stride = config.q_width()});
  }
}

void ForwardPass::FeedForward(const LayerWeights& layer, int thread) {
  const int64_t ffn = options_.config.ffn;
  Linear(layer.gate, h_, gate_, plan_->num_rows, thread);
  Linear(layer.up, h_, up_, plan_->num_rows, thread);
  // gate and up have equal shapes, so this thread has just written both of these columns.
  const Range groups = PartOf(kernels::RowGroups(ffn), options_.team->size(), thread);
  const int64_t begin = groups.begin * kernels::kGroupRows;
  const int64_t end = std::min(groups.end * kernels::kGroupRows, ffn);
  options_.ops->silu_mul({.gate = gate_ + begin,
                          .gate_stride = ffn,
                          .up = up_ + begin,
                          .up_stride = ffn,
                          .y = gate_ + begin,
                          .y_stride = ffn,
                          .rows = plan_->num_rows,
                          .cols = static_cast<int32_t>(end - begin)});
}

void ForwardPass::Head(int thread) {
  const int64_t hidden = options_.config.hidden;
  const Range samples = PartOf(plan_->num_samples, options_.team->size(), thread);
  for (int64_t i = samples.begin; i < samples.end; ++i) {
    // On a copy: several samples may name one row.
    float* row = sampled_ + i * hidden;
    std::memcpy(row, x_ + plan_->samples[i].row * hidden, hidden * sizeof(float));
    options_.ops->rms_norm({.x = row,
                            .x_stride = hidden,
                            .add = delta_ + plan_->samples[i].row * hidden,
                            .add_stride = hidden,
                            .weight = options_.weights->output_norm(),
                            .y = row,
                            .y_stride = hidden,
                            .rows = 1,
                            .cols = options_.config.hidden,
                            .eps = options_.config.rms_eps});
  }
  options_.team->Barrier();
  Linear(options_.weights->head(), sampled_, logits_, plan_->num_samples, thread);
}

}  // namespace pagoda::worker
