#include "services/worker/model_weights.h"

#include <cstring>
#include <string>

#include "common/model/tensor_inventory.h"

namespace pagoda::worker {
namespace {

using kernels::PackedMatrix;
using kernels::WeightType;
using model::GgufTensor;
using model::TensorType;

constexpr int64_t kLine = 64;  // every tensor starts on a cache line, as the kernels ask

// Where one tensor of the file goes: into a matrix, or as plain floats.
struct Target {
  std::string name;
  PackedMatrix* matrix = nullptr;
  const float** vector = nullptr;
  const GgufTensor* tensor = nullptr;
  int64_t offset = 0;  // in the memory
};

StatusOr<WeightType> PackedType(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return WeightType::kF32;
    case TensorType::kQ4_1:
      return WeightType::kQ4_1;
    case TensorType::kQ8_0:
      return WeightType::kQ8_0;
    default:
      return absl::UnimplementedError("no kernel for " + model::TensorTypeName(type));
  }
}

Status TensorError(const std::string& name, const kernels::KernelStatus& status) {
  return absl::UnimplementedError("model: tensor \"" + name + "\": " + KernelStatusText(status));
}

std::vector<Target> LayerTargets(int32_t index, LayerWeights& layer) {
  auto name = [index](const char* part) { return model::LayerTensorName(index, part); };
  return {{.name = name("attn_norm"), .vector = &layer.attn_norm},
          {.name = name("attn_q"), .matrix = &layer.q},
          {.name = name("attn_k"), .matrix = &layer.k},
          {.name = name("attn_v"), .matrix = &layer.v},
          {.name = name("attn_output"), .matrix = &layer.o},
          {.name = name("ffn_norm"), .vector = &layer.ffn_norm},
          {.name = name("ffn_gate"), .matrix = &layer.gate},
          {.name = name("ffn_up"), .matrix = &layer.up},
          {.name = name("ffn_down"), .matrix = &layer.down}};
}

// Finds the target's tensor and the bytes that it will take.
StatusOr<int64_t> Measure(const model::GgufFile& gguf, Target& target) {
  target.tensor = gguf.FindTensor(target.name);
  if (target.tensor == nullptr) {
    return absl::NotFoundError("model: tensor \"" + target.name + "\" is missing");
  }
  if (target.vector != nullptr) return static_cast<int64_t>(target.tensor->data.size());
  StatusOr<WeightType> type = PackedType(target.tensor->type);
  if (!type.ok()) return Annotate(type.status(), "model: tensor \"" + target.name + "\"");
  const auto rows = static_cast<int64_t>(target.tensor->dims[1]);
  const auto cols = static_cast<int64_t>(target.tensor->dims[0]);
  int64_t bytes = 0;
  const kernels::KernelStatus status = kernels::PackedBytes(*type, rows, cols, &bytes);
  if (!status.ok()) return TensorError(target.name, status);
  target.matrix->type = *type;
  target.matrix->rows = static_cast<int32_t>(rows);
  target.matrix->cols = static_cast<int32_t>(cols);
  return bytes;
}

Status Fill(const Target& target, uint8_t* memory, ThreadTeam& team) {
  const std::string_view data = target.tensor->data;
  uint8_t* to = memory + target.offset;
  if (target.vector != nullptr) {
    std::memcpy(to, data.data(), data.size());
    *target.vector = reinterpret_cast<const float*>(to);
    return absl::OkStatus();
  }
  PackedMatrix& matrix = *target.matrix;
  std::vector<kernels::KernelStatus> statuses(team.size());
  team.Run([&](int thread) {
    const Range groups = PartOf(kernels::RowGroups(matrix.rows), team.size(), thread);
    if (groups.begin == groups.end) return;
    statuses[thread] = kernels::PackRowGroups(
        matrix.type, matrix.rows, matrix.cols, reinterpret_cast<const uint8_t*>(data.data()),
        static_cast<int64_t>(data.size()), static_cast<int32_t>(groups.begin),
        static_cast<int32_t>(groups.end), to);
  });
  for (const kernels::KernelStatus& status : statuses) {
    if (!status.ok()) return TensorError(target.name, status);
  }
  matrix.data = to;
  return absl::OkStatus();
}

}  // namespace

StatusOr<ModelWeights> ModelWeights::Load(const model::GgufFile& gguf,
                                          const model::ModelConfig& config, ThreadTeam& team) {
  ModelWeights weights;
  weights.layers_.resize(config.num_layers);
  std::vector<Target> targets = {
      {.name = "token_embd.weight", .matrix = &weights.embedding_},
      {.name = "output_norm.weight", .vector = &weights.output_norm_},
  };
  if (!config.tied_head) targets.push_back({.name = "output.weight", .matrix = &weights.head_});
  for (int32_t i = 0; i < config.num_layers; ++i) {
    for (Target& target : LayerTargets(i, weights.layers_[i])) targets.push_back(target);
  }
  int64_t total = 0;
  for (Target& target : targets) {
    target.offset = total;
    PAGODA_ASSIGN_OR_RETURN(int64_t bytes, Measure(gguf, target));
    total += (bytes + kLine - 1) / kLine * kLine;
  }
  PAGODA_ASSIGN_OR_RETURN(weights.memory_, AlignedBuffer::Allocate(total, "weights"));
  for (const Target& target : targets) {
    PAGODA_RETURN_IF_ERROR(Fill(target, weights.memory_.data(), team));
  }
  if (config.tied_head) weights.head_ = weights.embedding_;
  return weights;
}

}  // namespace pagoda::worker
