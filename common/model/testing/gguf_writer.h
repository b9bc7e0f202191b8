// Writes GGUF version 3 files for tests: metadata and tensors in the order in which they are added.
//
// Concurrency: one thread.
#ifndef PAGODA_COMMON_MODEL_TESTING_GGUF_WRITER_H_
#define PAGODA_COMMON_MODEL_TESTING_GGUF_WRITER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/model/gguf.h"

namespace pagoda::model::testing {

class GgufWriter {
 public:
  void AddUint(std::string_view key, uint32_t value);
  void AddFloat(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, const std::vector<std::string>& values);
  void AddInts(std::string_view key, const std::vector<int32_t>& values);
  // `bytes` as they stand after the key: value type and value. For values that are wrong on
  // purpose.
  void AddRaw(std::string_view key, std::string_view bytes);

  // `dims` innermost first; `data` in the type's encoding.
  void AddTensor(std::string_view name, const std::vector<uint64_t>& dims, TensorType type,
                 std::string data);

  // The file's bytes.
  std::string Finish() const;
  // Bytes before the data section's padding.
  size_t HeaderBytes() const;

 private:
  std::string Header() const;

  uint64_t num_values_ = 0;
  std::string values_;
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;
    TensorType type;
    std::string data;
  };
  std::vector<Tensor> tensors_;
};

}  // namespace pagoda::model::testing

#endif  // PAGODA_COMMON_MODEL_TESTING_GGUF_WRITER_H_
