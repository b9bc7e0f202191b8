// Reads a GGUF file (versions 2 and 3, little-endian): metadata and tensor directory, in place.
//
// Format: ggml's GGUF specification (ggml/docs/gguf.md). Every count, length and offset is checked
// against the file before it is used, so a truncated or hostile file gives an error that names the
// field; what is allocated is a small multiple of the header's bytes. It does not decode tensors
// and does not know which models make sense (model_config.h does).
//
// Concurrency: immutable after Open or Parse; any thread may read.
#ifndef PAGODA_COMMON_MODEL_GGUF_H_
#define PAGODA_COMMON_MODEL_GGUF_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/status.h"
#include "common/model/mapped_file.h"
#include "common/model/tensor_type.h"

namespace pagoda::model {

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// One metadata value, still encoded. A scalar is an array of one with is_array false.
struct GgufValue {
  GgufType type = GgufType::kUint8;  // of the elements; never kArray (nested arrays are refused)
  bool is_array = false;
  uint64_t count = 1;
  std::string_view bytes;  // the elements as they lie in the file
};

struct GgufTensor {
  std::string_view name;
  TensorType type = TensorType::kF32;
  int num_dims = 0;
  // Innermost first, as in the file: a matrix of `rows` outputs is {columns, rows, 1, 1}.
  std::array<uint64_t, 4> dims = {1, 1, 1, 1};
  std::string_view data;
};

class GgufFile {
 public:
  // Maps the file; views stay valid as long as the GgufFile (or one moved from it) lives.
  static StatusOr<GgufFile> Open(const std::string& path);
  // Reads from memory that outlives the result.
  static StatusOr<GgufFile> Parse(std::string_view bytes);

  uint32_t version() const { return version_; }
  std::string_view bytes() const { return bytes_; }
  // Null after Parse.
  const MappedFile* file() const { return file_ ? &*file_ : nullptr; }
  // In the file's order.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  // Null when there is none of that name.
  const GgufTensor* FindTensor(std::string_view name) const;
  const GgufValue* FindValue(std::string_view key) const;
  bool Has(std::string_view key) const { return FindValue(key) != nullptr; }

  // Typed access. Errors name the key: NOT_FOUND when it is missing, INVALID_ARGUMENT for another
  // type or a value out of range. Uint takes any integer type that is not negative and at most
  // `max`; Float takes finite float32 and float64.
  StatusOr<uint64_t> Uint(std::string_view key, uint64_t max = UINT64_MAX) const;
  StatusOr<float> Float(std::string_view key) const;
  StatusOr<bool> Bool(std::string_view key) const;
  StatusOr<std::string_view> String(std::string_view key) const;
  StatusOr<std::vector<std::string_view>> Strings(std::string_view key) const;
  StatusOr<std::vector<int64_t>> Ints(std::string_view key) const;

 private:
  friend class GgufParser;
  GgufFile() = default;

  StatusOr<const GgufValue*> Scalar(std::string_view key) const;
  StatusOr<const GgufValue*> Array(std::string_view key) const;

  std::optional<MappedFile> file_;
  std::string_view bytes_;
  uint32_t version_ = 0;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  std::unordered_map<std::string_view, GgufValue> values_;
};

// `text` in double quotes for an error message: control and non-ASCII bytes as \xHH, cut after 80.
std::string QuoteName(std::string_view text);

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_GGUF_H_
