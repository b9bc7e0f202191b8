#include "common/model/gguf_parser.h"

#include <algorithm>
#include <string>

#include "common/base/bytes.h"

namespace pagoda::model {
namespace {

// The specification's limit on keys; the rest bound the directory's memory far above any real
// model.
constexpr uint64_t kMaxKeyBytes = 65535;
constexpr uint64_t kMaxTensorNameBytes = 255;
constexpr uint64_t kMaxTensors = 1 << 17;
constexpr uint64_t kMaxValues = 1 << 16;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kDefaultAlignment = 32;
// The least bytes that an entry can take: bounds a count before anything is reserved for it.
constexpr uint64_t kMinValueBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

Status Bad(const std::string& message) { return absl::InvalidArgumentError("GGUF: " + message); }

// Bytes of a tensor's data, or an error that names what does not fit.
StatusOr<uint64_t> DataBytes(const GgufTensor& tensor) {
  const std::string name = "tensor " + QuoteName(tensor.name);
  const TensorTypeInfo* type = FindTensorType(tensor.type);
  if (type == nullptr) return Bad(name + " has the unknown " + TensorTypeName(tensor.type));
  if (tensor.dims[0] % type->block_elements != 0) {
    return Bad(name + ": a row of " + std::to_string(tensor.dims[0]) +
               " elements is no multiple of " + std::string(type->name) + "'s block of " +
               std::to_string(type->block_elements));
  }
  uint64_t bytes = tensor.dims[0] / type->block_elements;
  bool overflow = __builtin_mul_overflow(bytes, uint64_t{type->block_bytes}, &bytes);
  for (int i = 1; i < 4; ++i) overflow |= __builtin_mul_overflow(bytes, tensor.dims[i], &bytes);
  if (overflow) return Bad(name + ": its size overflows 64 bits");
  return bytes;
}

}  // namespace

size_t FixedSize(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    default:
      return 0;
  }
}

Status GgufParser::Truncated(std::string_view what) const {
  return Bad("the file ends inside " + std::string(what) + " (at byte " + std::to_string(at_) +
             " of " + std::to_string(bytes_.size()) + ")");
}

StatusOr<std::string_view> GgufParser::Take(uint64_t size, std::string_view what) {
  if (size > remaining()) return Truncated(what);
  std::string_view taken = bytes_.substr(at_, size);
  at_ += size;
  return taken;
}

StatusOr<uint32_t> GgufParser::TakeU32(std::string_view what) {
  PAGODA_ASSIGN_OR_RETURN(std::string_view bytes, Take(4, what));
  return LoadLe<uint32_t>(bytes.data());
}

StatusOr<uint64_t> GgufParser::TakeU64(std::string_view what) {
  PAGODA_ASSIGN_OR_RETURN(std::string_view bytes, Take(8, what));
  return LoadLe<uint64_t>(bytes.data());
}

StatusOr<std::string_view> GgufParser::TakeString(uint64_t max, std::string_view what) {
  PAGODA_ASSIGN_OR_RETURN(uint64_t size, TakeU64(what));
  if (size > max) {
    return Bad(std::string(what) + " is " + std::to_string(size) + " bytes long, the limit is " +
               std::to_string(max));
  }
  return Take(size, what);
}

Status GgufParser::Read(GgufFile& out) {
  PAGODA_RETURN_IF_ERROR(ReadHead(out));
  PAGODA_RETURN_IF_ERROR(ReadMetadata(out));
  PAGODA_RETURN_IF_ERROR(ReadTensors(out));
  return PlaceData(out);
}

Status GgufParser::ReadHead(GgufFile& out) {
  if (bytes_.substr(0, 4) != "GGUF") return Bad("the file does not start with the magic \"GGUF\"");
  at_ = 4;
  PAGODA_ASSIGN_OR_RETURN(out.version_, TakeU32("the version"));
  if (out.version_ != 2 && out.version_ != 3) {
    return Bad("version " + std::to_string(out.version_) +
               " is not supported (2 and 3 are, little-endian)");
  }
  PAGODA_ASSIGN_OR_RETURN(num_tensors_, TakeU64("the tensor count"));
  PAGODA_ASSIGN_OR_RETURN(num_values_, TakeU64("the metadata count"));
  const uint64_t max_values = std::min(kMaxValues, remaining() / kMinValueBytes);
  if (num_values_ > max_values) {
    return Bad("the metadata count " + std::to_string(num_values_) + " is over the limit " +
               std::to_string(max_values) + " (of the format, or of what the file can hold)");
  }
  const uint64_t max_tensors = std::min(kMaxTensors, remaining() / kMinTensorBytes);
  if (num_tensors_ > max_tensors) {
    return Bad("the tensor count " + std::to_string(num_tensors_) + " is over the limit " +
               std::to_string(max_tensors) + " (of the format, or of what the file can hold)");
  }
  return absl::OkStatus();
}

Status GgufParser::ReadValue(std::string_view key, GgufValue& value) {
  const std::string what = "metadata " + QuoteName(key);
  PAGODA_ASSIGN_OR_RETURN(uint32_t type, TakeU32(what));
  if (type == static_cast<uint32_t>(GgufType::kArray)) {
    value.is_array = true;
    PAGODA_ASSIGN_OR_RETURN(type, TakeU32(what));
    PAGODA_ASSIGN_OR_RETURN(value.count, TakeU64(what));
    if (type == static_cast<uint32_t>(GgufType::kArray)) {
      return Bad(what + " is an array of arrays, which is not supported");
    }
  }
  value.type = static_cast<GgufType>(type);
  const size_t start = at_;
  if (value.type == GgufType::kString) {
    for (uint64_t i = 0; i < value.count; ++i) {
      PAGODA_RETURN_IF_ERROR(TakeString(remaining(), what).status());
    }
  } else {
    const size_t size = FixedSize(value.type);
    if (size == 0) return Bad(what + " has the unknown value type " + std::to_string(type));
    if (value.count > remaining() / size) return Truncated(what);
    at_ += value.count * size;
  }
  value.bytes = bytes_.substr(start, at_ - start);
  if (value.type == GgufType::kBool &&
      value.bytes.find_first_not_of(std::string_view("\0\1", 2)) != std::string_view::npos) {
    return Bad(what + " holds a boolean that is neither 0 nor 1");
  }
  return absl::OkStatus();
}

Status GgufParser::ReadMetadata(GgufFile& out) {
  out.values_.reserve(num_values_);
  for (uint64_t i = 0; i < num_values_; ++i) {
    const std::string what = "the key of metadata " + std::to_string(i);
    PAGODA_ASSIGN_OR_RETURN(std::string_view key, TakeString(kMaxKeyBytes, what));
    if (key.empty()) return Bad(what + " is empty");
    GgufValue value;
    PAGODA_RETURN_IF_ERROR(ReadValue(key, value));
    if (!out.values_.emplace(key, value).second) {
      return Bad("metadata " + QuoteName(key) + " occurs twice");
    }
  }
  return absl::OkStatus();
}

Status GgufParser::ReadTensor(std::string_view name, GgufTensor& tensor, uint64_t& offset) {
  const std::string what = "tensor " + QuoteName(name);
  tensor.name = name;
  PAGODA_ASSIGN_OR_RETURN(uint32_t num_dims, TakeU32(what));
  if (num_dims < 1 || num_dims > tensor.dims.size()) {
    return Bad(what + " has " + std::to_string(num_dims) + " dimensions (1 to 4 are possible)");
  }
  tensor.num_dims = static_cast<int>(num_dims);
  for (uint32_t i = 0; i < num_dims; ++i) {
    PAGODA_ASSIGN_OR_RETURN(tensor.dims[i], TakeU64(what));
    if (tensor.dims[i] == 0) return Bad(what + ": dimension " + std::to_string(i) + " is 0");
  }
  PAGODA_ASSIGN_OR_RETURN(uint32_t type, TakeU32(what));
  tensor.type = static_cast<TensorType>(type);
  PAGODA_ASSIGN_OR_RETURN(offset, TakeU64(what));
  return absl::OkStatus();
}

Status GgufParser::ReadTensors(GgufFile& out) {
  out.tensors_.resize(num_tensors_);
  out.tensor_index_.reserve(num_tensors_);
  offsets_.resize(num_tensors_);
  for (uint64_t i = 0; i < num_tensors_; ++i) {
    const std::string what = "the name of tensor " + std::to_string(i);
    PAGODA_ASSIGN_OR_RETURN(std::string_view name, TakeString(kMaxTensorNameBytes, what));
    if (name.empty()) return Bad(what + " is empty");
    PAGODA_RETURN_IF_ERROR(ReadTensor(name, out.tensors_[i], offsets_[i]));
    if (!out.tensor_index_.emplace(name, i).second) {
      return Bad("tensor " + QuoteName(name) + " occurs twice");
    }
  }
  return absl::OkStatus();
}

Status GgufParser::PlaceData(GgufFile& out) {
  uint64_t alignment = kDefaultAlignment;
  if (out.Has("general.alignment")) {
    PAGODA_ASSIGN_OR_RETURN(alignment, out.Uint("general.alignment", kMaxAlignment));
    if (alignment < 8 || (alignment & (alignment - 1)) != 0) {
      return Bad("general.alignment is " + std::to_string(alignment) +
                 ", which is no power of two of at least 8");
    }
  }
  const uint64_t start = (at_ + alignment - 1) / alignment * alignment;
  for (size_t i = 0; i < out.tensors_.size(); ++i) {
    GgufTensor& tensor = out.tensors_[i];
    PAGODA_ASSIGN_OR_RETURN(uint64_t size, DataBytes(tensor));
    if (offsets_[i] % alignment != 0) {
      return Bad("tensor " + QuoteName(tensor.name) + " starts at " + std::to_string(offsets_[i]) +
                 ", which is no multiple of the alignment " + std::to_string(alignment));
    }
    const uint64_t held = start < bytes_.size() ? bytes_.size() - start : 0;
    if (offsets_[i] > held || size > held - offsets_[i]) {
      return Bad("tensor " + QuoteName(tensor.name) + " needs " + std::to_string(size) +
                 " bytes at offset " + std::to_string(offsets_[i]) +
                 ", the file's data section has " + std::to_string(held));
    }
    tensor.data = bytes_.substr(start + offsets_[i], size);
  }
  return absl::OkStatus();
}

}  // namespace pagoda::model
