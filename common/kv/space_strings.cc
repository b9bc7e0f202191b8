#include "common/kv/space_strings.h"

#include <string_view>

#include "common/base/bytes.h"
#include "common/kv/encoding.h"

namespace pagoda {
namespace {

// "name=value", the fields parted by ';'.
void AppendField(std::string& text, std::string_view name, std::string_view value) {
  if (!text.empty()) text += ';';
  text.append(Plain(name)).append("=").append(Plain(value));
}

}  // namespace

std::string KvFormat::ToString() const {
  std::string skip;
  for (uint32_t layer : skip_layers) skip += (skip.empty() ? "" : ",") + std::to_string(layer);
  std::string text;
  AppendField(text, "k", k_dtype);
  AppendField(text, "v", v_dtype);
  AppendField(text, "scales", scales ? ToHex(AsBytes(*scales)) : "");
  AppendField(text, "k_group", std::to_string(k_group));
  AppendField(text, "v_group", std::to_string(v_group));
  AppendField(text, "transforms", transforms);
  AppendField(text, "skip", skip);
  return text;
}

std::string LayoutFormat::ToString() const {
  std::string text;
  AppendField(text, "order", order);
  AppendField(text, "k", k_tile);
  AppendField(text, "v", v_tile);
  AppendField(text, "align", std::to_string(align_bytes));
  AppendField(text, "groups", std::to_string(head_groups));
  AppendField(text, "layers", std::to_string(layers));
  AppendField(text, "kv_heads", std::to_string(kv_heads));
  AppendField(text, "head_dim", std::to_string(head_dim));
  return text;
}

std::string RopeFormat::ToString() const {
  std::string text;
  AppendField(text, "type", type);
  AppendField(text, "pairing", pairing);
  AppendField(text, "dim", std::to_string(dim));
  AppendField(text, "theta", FloatHex(theta));
  for (const auto& [name, value] : scaling) AppendField(text, name, FloatHex(value));
  return text;
}

}  // namespace pagoda
