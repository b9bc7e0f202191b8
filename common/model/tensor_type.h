// The element types of GGUF tensors: their names and sizes. It does not decode them.
//
// Numbers and sizes: the table of types in ggml's GGUF specification (ggml/docs/gguf.md).
//
// Concurrency: plain functions, no state.
#ifndef PAGODA_COMMON_MODEL_TENSOR_TYPE_H_
#define PAGODA_COMMON_MODEL_TENSOR_TYPE_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::model {

// The numbers are the file's. Types that are known by size only have no name here.
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kBF16 = 30,
};

struct TensorTypeInfo {
  std::string_view name;    // as ggml spells it: "Q4_1"
  uint32_t block_elements;  // elements that are stored together
  uint32_t block_bytes;
};

// Null for a number that stands for no type (or for one that ggml has removed).
const TensorTypeInfo* FindTensorType(TensorType type);

// The name, or "type 77".
std::string TensorTypeName(TensorType type);

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_TENSOR_TYPE_H_
