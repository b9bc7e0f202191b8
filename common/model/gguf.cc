#include "common/model/gguf.h"

#include <cmath>

#include "common/base/bytes.h"
#include "common/model/gguf_parser.h"

namespace pagoda::model {
namespace {

Status WrongType(std::string_view key, std::string_view wanted) {
  return absl::InvalidArgumentError("GGUF: metadata " + QuoteName(key) + " is not " +
                                    std::string(wanted));
}

// An integer of any width as int64; false for other types and for what int64 cannot hold.
bool LoadInteger(GgufType type, const char* from, int64_t& value) {
  switch (type) {
    case GgufType::kUint8:
      value = LoadLe<uint8_t>(from);
      return true;
    case GgufType::kInt8:
      value = LoadLe<int8_t>(from);
      return true;
    case GgufType::kUint16:
      value = LoadLe<uint16_t>(from);
      return true;
    case GgufType::kInt16:
      value = LoadLe<int16_t>(from);
      return true;
    case GgufType::kUint32:
      value = LoadLe<uint32_t>(from);
      return true;
    case GgufType::kInt32:
      value = LoadLe<int32_t>(from);
      return true;
    case GgufType::kUint64:
      value = static_cast<int64_t>(LoadLe<uint64_t>(from));
      return value >= 0;
    case GgufType::kInt64:
      value = LoadLe<int64_t>(from);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string QuoteName(std::string_view text) {
  constexpr size_t kMaxShown = 80;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\') {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + (text.size() > kMaxShown ? "...\"" : "\"");
}

StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  StatusOr<GgufFile> parsed = Parse(file.bytes());
  if (!parsed.ok()) return Annotate(parsed.status(), path);
  parsed->file_.emplace(std::move(file));
  return parsed;
}

StatusOr<GgufFile> GgufFile::Parse(std::string_view bytes) {
  GgufFile out;
  out.bytes_ = bytes;
  PAGODA_RETURN_IF_ERROR(GgufParser(bytes).Read(out));
  return out;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

const GgufValue* GgufFile::FindValue(std::string_view key) const {
  auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

StatusOr<const GgufValue*> GgufFile::Scalar(std::string_view key) const {
  const GgufValue* value = FindValue(key);
  if (value == nullptr) {
    return absl::NotFoundError("GGUF: metadata " + QuoteName(key) + " is missing");
  }
  if (value->is_array) return WrongType(key, "a single value");
  return value;
}

StatusOr<const GgufValue*> GgufFile::Array(std::string_view key) const {
  const GgufValue* value = FindValue(key);
  if (value == nullptr) {
    return absl::NotFoundError("GGUF: metadata " + QuoteName(key) + " is missing");
  }
  if (!value->is_array) return WrongType(key, "an array");
  return value;
}

StatusOr<uint64_t> GgufFile::Uint(std::string_view key, uint64_t max) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  int64_t integer = 0;
  if (!LoadInteger(value->type, value->bytes.data(), integer) || integer < 0) {
    return WrongType(key, "an integer of at least 0");
  }
  if (static_cast<uint64_t>(integer) > max) {
    return absl::InvalidArgumentError("GGUF: metadata " + QuoteName(key) + " is " +
                                      std::to_string(integer) + ", the limit is " +
                                      std::to_string(max));
  }
  return static_cast<uint64_t>(integer);
}

StatusOr<float> GgufFile::Float(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  float number = 0;
  if (value->type == GgufType::kFloat32) {
    number = LoadLe<float>(value->bytes.data());
  } else if (value->type == GgufType::kFloat64) {
    number = static_cast<float>(LoadLe<double>(value->bytes.data()));
  } else {
    return WrongType(key, "a floating-point number");
  }
  if (!std::isfinite(number)) return WrongType(key, "a finite number");
  return number;
}

StatusOr<bool> GgufFile::Bool(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  if (value->type != GgufType::kBool) return WrongType(key, "a boolean");
  return value->bytes[0] != 0;
}

StatusOr<std::string_view> GgufFile::String(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Scalar(key));
  if (value->type != GgufType::kString) return WrongType(key, "a string");
  return value->bytes.substr(8);
}

StatusOr<std::vector<std::string_view>> GgufFile::Strings(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  if (value->type != GgufType::kString) return WrongType(key, "an array of strings");
  std::vector<std::string_view> strings;
  strings.reserve(value->count);
  std::string_view rest = value->bytes;
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto size = LoadLe<uint64_t>(rest.data());
    strings.push_back(rest.substr(8, size));
    rest.remove_prefix(8 + size);
  }
  return strings;
}

StatusOr<std::vector<int64_t>> GgufFile::Ints(std::string_view key) const {
  PAGODA_ASSIGN_OR_RETURN(const GgufValue* value, Array(key));
  const size_t size = FixedSize(value->type);
  std::vector<int64_t> integers(size == 0 ? 0 : value->count);
  for (size_t i = 0; i < integers.size(); ++i) {
    if (!LoadInteger(value->type, value->bytes.data() + i * size, integers[i])) {
      return WrongType(key, "an array of integers");
    }
  }
  if (integers.size() != value->count) return WrongType(key, "an array of integers");
  return integers;
}

}  // namespace pagoda::model
