// Which tensors a llama model has: their names, shapes and allowed types.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_MODEL_TENSOR_INVENTORY_H_
#define PAGODA_COMMON_MODEL_TENSOR_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/model/gguf.h"
#include "common/model/model_config.h"

namespace pagoda::model {

enum class TensorRole {
  kMatrix,  // a weight matrix: F32, Q4_1 or Q8_0
  kVector,  // a norm's weights: F32
};

struct TensorSpec {
  std::string name;
  TensorRole role = TensorRole::kMatrix;
  uint64_t columns = 0;  // inputs; the length of a vector
  uint64_t rows = 1;     // outputs
};

// "blk.<layer>.<part>.weight"
std::string LayerTensorName(int32_t layer, std::string_view part);

// Every tensor that the forward pass reads, the head only when it is not tied.
std::vector<TensorSpec> ExpectedTensors(const ModelConfig& config);

// Sets config.vocabulary and config.tied_head from the file, then compares the file with
// ExpectedTensors. REQUIRES: the other fields are set.
// Errors: NOT_FOUND for a missing tensor; INVALID_ARGUMENT for a wrong shape; UNIMPLEMENTED for a
// type that is not computed, and for a tensor that the forward pass would not read (a bias, say).
Status CheckTensors(const GgufFile& gguf, ModelConfig& config);

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_TENSOR_INVENTORY_H_
