#include "services/router/field_error.h"

#include "absl/strings/cord.h"
#include "common/base/logging.h"

namespace pagoda::router {
namespace {

constexpr char kFieldPayload[] = "pagoda/field";
constexpr char kCodePayload[] = "pagoda/code";

Status WithField(Status status, std::string_view field, std::string_view code) {
  status.SetPayload(kFieldPayload, absl::Cord(std::string(field)));
  if (!code.empty()) status.SetPayload(kCodePayload, absl::Cord(std::string(code)));
  return status;
}

std::string Payload(const Status& status, const char* name) {
  auto payload = status.GetPayload(name);
  return payload.has_value() ? std::string(*payload) : std::string();
}

std::string Message(std::string_view field, std::string_view message) {
  return std::string(field) + ": " + std::string(message);
}

}  // namespace

Status InvalidField(std::string_view field, std::string_view message, std::string_view code) {
  return WithField(absl::InvalidArgumentError(Message(field, message)), field, code);
}

Status UnsupportedField(std::string_view field, std::string_view message) {
  return WithField(absl::UnimplementedError(Message(field, message)), field,
                   "unsupported_parameter");
}

Status UnknownModel(std::string_view model) {
  return WithField(absl::NotFoundError("model: " + Quote(model) + " is not served here"), "model",
                   "model_not_found");
}

std::string ErrorField(const Status& status) { return Payload(status, kFieldPayload); }
std::string ErrorCode(const Status& status) { return Payload(status, kCodePayload); }

std::string Quote(std::string_view text) {
  constexpr size_t kMaxQuoted = 64;
  std::string quoted;
  AppendJsonString(quoted, text.substr(0, kMaxQuoted));
  if (text.size() > kMaxQuoted) quoted += "...";
  return quoted;
}

}  // namespace pagoda::router
