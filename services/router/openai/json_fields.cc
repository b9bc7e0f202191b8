#include "services/router/openai/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "services/router/field_error.h"

namespace pagoda::router::openai {
namespace {

using nlohmann::json;

// What parsing would build, counted before it is built.
struct Shape {
  int depth = 0;          // the deepest nesting of brackets outside strings
  size_t nodes = 0;       // strings, objects and arrays: an allocation each
  size_t separators = 0;  // commas: each but the last value of an object or array has one
};

// What is not JSON is found by the parser; no value can hide from these counts.
Shape Measure(std::string_view text) {
  Shape shape;
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
      ++shape.nodes;
    } else if (c == '{' || c == '[') {
      shape.depth = std::max(shape.depth, ++depth);
      ++shape.nodes;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++shape.separators;
    }
  }
  return shape;
}

Status CheckShape(const Shape& shape) {
  if (shape.depth > kMaxJsonDepth) {
    return absl::InvalidArgumentError("the body nests " + std::to_string(shape.depth) +
                                      " levels deep; the limit is " +
                                      std::to_string(kMaxJsonDepth));
  }
  if (shape.nodes > kMaxJsonNodes) {
    return absl::InvalidArgumentError("the body holds " + std::to_string(shape.nodes) +
                                      " strings, objects and arrays; the limit is " +
                                      std::to_string(kMaxJsonNodes));
  }
  if (shape.separators >= kMaxJsonValues) {
    return absl::InvalidArgumentError("the body holds over " + std::to_string(shape.separators) +
                                      " values; the limit is " + std::to_string(kMaxJsonValues));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<json> ParseJsonObject(std::string_view body) {
  PAGODA_RETURN_IF_ERROR(CheckShape(Measure(body)));
  try {
    json value = json::parse(body.begin(), body.end());
    if (!value.is_object()) {
      return absl::InvalidArgumentError("the body is " + TypeOf(value) + ", not a JSON object");
    }
    return value;
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError("the body is not valid JSON (or not UTF-8) at byte " +
                                      std::to_string(error.byte));
  } catch (const json::exception&) {
    return absl::InvalidArgumentError("the body holds a number that is out of range");
  }
}

std::string TypeOf(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    default:
      return "a number";
  }
}

const json* JsonFields::Find(std::string_view name) const {
  auto found = object_.find(name);
  if (found == object_.end() || found->is_null()) return nullptr;
  return &*found;
}

Status JsonFields::WrongType(std::string_view name, const json& value,
                             std::string_view wanted) const {
  std::string shown = value.is_number() || value.is_boolean() ? value.dump() : TypeOf(value);
  return InvalidField(Path(name), shown + " is not " + std::string(wanted));
}

StatusOr<std::optional<bool>> JsonFields::Bool(std::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return WrongType(name, *value, "true or false");
  return value->get<bool>();
}

StatusOr<std::optional<std::string>> JsonFields::String(std::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return WrongType(name, *value, "a string");
  return value->get<std::string>();
}

StatusOr<std::optional<double>> JsonFields::Number(std::string_view name) const {
  const json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return WrongType(name, *value, "a number");
  return value->get<double>();
}

StatusOr<std::optional<int64_t>> JsonFields::Int(std::string_view name, int64_t min,
                                                 int64_t max) const {
  const json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer()) return WrongType(name, *value, "a whole number");
  bool too_large = value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX;
  int64_t number = too_large ? INT64_MAX : value->get<int64_t>();
  if (too_large || number < min || number > max) {
    return InvalidField(Path(name), value->dump() + " is not between " + std::to_string(min) +
                                        " and " + std::to_string(max));
  }
  return number;
}

}  // namespace pagoda::router::openai
