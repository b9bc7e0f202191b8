// Typed access to the fields of a JSON object that a client sent: each error names the field by its
// path, what it holds and what is allowed. A null field counts as absent, as OpenAI's clients send
// it.
//
// Concurrency: plain values; the JSON outlives the object.
#ifndef PAGODA_SERVICES_ROUTER_OPENAI_JSON_FIELDS_H_
#define PAGODA_SERVICES_ROUTER_OPENAI_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace pagoda::router::openai {

// Deeper JSON has no use in these APIs and costs stack in whoever walks it.
inline constexpr int kMaxJsonDepth = 32;
// Strings (keys too), objects and arrays cost up to 130 bytes each when parsed, and three of the
// body: a body of 16 MiB could take a GiB. This many are a chat of 50,000 messages.
inline constexpr size_t kMaxJsonNodes = 256 << 10;
// Numbers cost 16 bytes each, up to three times that while an array grows. Two million token ids
// are a longer prompt than 16 MiB holds of any large vocabulary.
inline constexpr size_t kMaxJsonValues = 2 << 20;

// Errors: INVALID_ARGUMENT with the place for text that is not JSON (RFC 8259, UTF-8, numbers that
// a double holds), passes one of the limits above, or is not an object at the top. Of equal keys
// the last one counts.
StatusOr<nlohmann::json> ParseJsonObject(std::string_view body);

// "a string", "a number" and so on, for messages.
std::string TypeOf(const nlohmann::json& value);

class JsonFields {
 public:
  // REQUIRES: `object` is a JSON object. `path` stands before the names in errors ("messages[3].").
  explicit JsonFields(const nlohmann::json& object, std::string path = "")
      : object_(object), path_(std::move(path)) {}

  // Null when absent or null.
  const nlohmann::json* Find(std::string_view name) const;
  std::string Path(std::string_view name) const { return path_ + std::string(name); }

  StatusOr<std::optional<bool>> Bool(std::string_view name) const;
  StatusOr<std::optional<std::string>> String(std::string_view name) const;
  StatusOr<std::optional<double>> Number(std::string_view name) const;
  // A whole number in [min, max]; 3.0 is not one.
  StatusOr<std::optional<int64_t>> Int(std::string_view name, int64_t min, int64_t max) const;

 private:
  Status WrongType(std::string_view name, const nlohmann::json& value,
                   std::string_view wanted) const;

  const nlohmann::json& object_;
  const std::string path_;
};

}  // namespace pagoda::router::openai

#endif  // PAGODA_SERVICES_ROUTER_OPENAI_JSON_FIELDS_H_
