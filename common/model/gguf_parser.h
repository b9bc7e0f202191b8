// The header of a GGUF file, read front to back. Used by gguf.cc only.
//
// Concurrency: one thread, one use.
#ifndef PAGODA_COMMON_MODEL_GGUF_PARSER_H_
#define PAGODA_COMMON_MODEL_GGUF_PARSER_H_

#include "common/model/gguf.h"

namespace pagoda::model {

// Bytes of one value of a fixed size; 0 for strings and arrays.
size_t FixedSize(GgufType type);

class GgufParser {
 public:
  explicit GgufParser(std::string_view bytes) : bytes_(bytes) {}

  Status Read(GgufFile& out);

 private:
  size_t remaining() const { return bytes_.size() - at_; }
  Status Truncated(std::string_view what) const;
  StatusOr<std::string_view> Take(uint64_t size, std::string_view what);
  StatusOr<uint32_t> TakeU32(std::string_view what);
  StatusOr<uint64_t> TakeU64(std::string_view what);
  StatusOr<std::string_view> TakeString(uint64_t max, std::string_view what);

  Status ReadHead(GgufFile& out);
  Status ReadValue(std::string_view key, GgufValue& value);
  Status ReadMetadata(GgufFile& out);
  Status ReadTensor(std::string_view name, GgufTensor& tensor, uint64_t& offset);
  Status ReadTensors(GgufFile& out);
  Status PlaceData(GgufFile& out);

  std::string_view bytes_;
  size_t at_ = 0;
  uint64_t num_tensors_ = 0;
  uint64_t num_values_ = 0;
  std::vector<uint64_t> offsets_;  // of the tensors, into the data section
};

}  // namespace pagoda::model

#endif  // PAGODA_COMMON_MODEL_GGUF_PARSER_H_
