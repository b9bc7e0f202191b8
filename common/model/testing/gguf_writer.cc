#include "common/model/testing/gguf_writer.h"

#include <bit>

#include "common/base/bytes.h"

namespace pagoda::model::testing {
namespace {

constexpr size_t kAlignment = 32;  // the format's default

void AppendString(std::string& out, std::string_view text) {
  AppendLe<uint64_t>(out, text.size());
  out += text;
}

std::string TypeBytes(GgufType type) {
  std::string out;
  AppendLe<uint32_t>(out, static_cast<uint32_t>(type));
  return out;
}

std::string ArrayHead(GgufType type, size_t count) {
  std::string out = TypeBytes(GgufType::kArray) + TypeBytes(type);
  AppendLe<uint64_t>(out, count);
  return out;
}

size_t Padded(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void GgufWriter::AddRaw(std::string_view key, std::string_view bytes) {
  ++num_values_;
  AppendString(values_, key);
  values_ += bytes;
}

void GgufWriter::AddUint(std::string_view key, uint32_t value) {
  std::string bytes = TypeBytes(GgufType::kUint32);
  AppendLe(bytes, value);
  AddRaw(key, bytes);
}

void GgufWriter::AddFloat(std::string_view key, float value) {
  std::string bytes = TypeBytes(GgufType::kFloat32);
  AppendLe(bytes, std::bit_cast<uint32_t>(value));
  AddRaw(key, bytes);
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  AddRaw(key, TypeBytes(GgufType::kBool) + (value ? '\1' : '\0'));
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  std::string bytes = TypeBytes(GgufType::kString);
  AppendString(bytes, value);
  AddRaw(key, bytes);
}

void GgufWriter::AddStrings(std::string_view key, const std::vector<std::string>& values) {
  std::string bytes = ArrayHead(GgufType::kString, values.size());
  for (const std::string& value : values) AppendString(bytes, value);
  AddRaw(key, bytes);
}

void GgufWriter::AddInts(std::string_view key, const std::vector<int32_t>& values) {
  std::string bytes = ArrayHead(GgufType::kInt32, values.size());
  for (int32_t value : values) AppendLe(bytes, value);
  AddRaw(key, bytes);
}

void GgufWriter::AddTensor(std::string_view name, const std::vector<uint64_t>& dims,
                           TensorType type, std::string data) {
  tensors_.push_back({std::string(name), dims, type, std::move(data)});
}

std::string GgufWriter::Header() const {
  std::string out = "GGUF";
  AppendLe<uint32_t>(out, 3);
  AppendLe<uint64_t>(out, tensors_.size());
  AppendLe<uint64_t>(out, num_values_);
  out += values_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendString(out, tensor.name);
    AppendLe<uint32_t>(out, static_cast<uint32_t>(tensor.dims.size()));
    for (uint64_t dim : tensor.dims) AppendLe(out, dim);
    AppendLe<uint32_t>(out, static_cast<uint32_t>(tensor.type));
    AppendLe(out, offset);
    offset += Padded(tensor.data.size());
  }
  return out;
}

size_t GgufWriter::HeaderBytes() const { return Header().size(); }

std::string GgufWriter::Finish() const {
  std::string out = Header();
  out.resize(Padded(out.size()));
  for (const Tensor& tensor : tensors_) {
    out += tensor.data;
    out.resize(Padded(out.size()));
  }
  return out;
}

}  // namespace pagoda::model::testing
