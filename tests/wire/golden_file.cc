#include "tests/wire/golden_file.h"

#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "common/base/bytes.h"
#include "pagoda/v1/control.pb.h"
#include "pagoda/v1/inference.pb.h"
#include "pagoda/v1/kvstore.pb.h"
#include "pagoda/v1/types.pb.h"
#include "pagoda/v1/worker.pb.h"
#include "tests/wire/golden_instance.h"

namespace pagoda::wire {
namespace {

// The enumerations of a file or a message.
template <typename Scope>
void AddEnums(const Scope& scope, std::vector<const EnumDescriptor*>* enums) {
  for (int i = 0; i < scope.enum_type_count(); ++i) enums->push_back(scope.enum_type(i));
}

void AddWithNested(const Descriptor* message, std::vector<const Descriptor*>* messages) {
  if (message->options().map_entry()) return;
  messages->push_back(message);
  for (int i = 0; i < message->nested_type_count(); ++i) {
    AddWithNested(message->nested_type(i), messages);
  }
}

}  // namespace

StatusOr<std::vector<GoldenLine>> ReadGoldenFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(path + " cannot be read");
  std::vector<GoldenLine> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t space = line.find(' ');
    // A message without fields has no bytes.
    std::string value = space == std::string::npos ? "" : line.substr(space + 1);
    lines.push_back({line.substr(0, space), std::move(value)});
  }
  return lines;
}

std::vector<GoldenLine> MissingLines(const std::vector<GoldenLine>& lines) {
  std::vector<GoldenLine> missing;
  auto require = [&](const std::string& type, std::string value) {
    bool there = std::any_of(lines.begin(), lines.end(), [&](const GoldenLine& line) {
      return line.type == type && line.value == value;
    });
    if (!there) missing.push_back({type, std::move(value)});
  };
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  for (const Descriptor* message : WireMessages()) {
    for (const auto& instance : GoldenInstances(*factory->GetPrototype(message))) {
      require(message->full_name(), ToHex(Encode(*instance)));
    }
  }
  for (const EnumDescriptor* type : WireEnums()) require(type->full_name(), EnumText(*type));
  return missing;
}

Status AppendLines(const std::string& path, const std::vector<GoldenLine>& lines) {
  std::ofstream file(path, std::ios::app);
  for (const GoldenLine& line : lines) {
    file << line.type << (line.value.empty() ? "" : " ") << line.value << '\n';
  }
  file.close();
  return file ? absl::OkStatus() : absl::UnavailableError(path + " cannot be written");
}

std::vector<const google::protobuf::FileDescriptor*> WireFiles() {
  return {v1::Usage::descriptor()->file(), v1::GenerateRequest::descriptor()->file(),
          v1::WorkerGenerateRequest::descriptor()->file(),
          v1::RegisterRequest::descriptor()->file(), v1::GetRequest::descriptor()->file()};
}

std::vector<const Descriptor*> WireMessages() {
  std::vector<const Descriptor*> messages;
  for (const auto* file : WireFiles()) {
    for (int i = 0; i < file->message_type_count(); ++i) {
      AddWithNested(file->message_type(i), &messages);
    }
  }
  return messages;
}

std::vector<const EnumDescriptor*> WireEnums() {
  std::vector<const EnumDescriptor*> enums;
  for (const auto* file : WireFiles()) AddEnums(*file, &enums);
  for (const Descriptor* message : WireMessages()) AddEnums(*message, &enums);
  return enums;
}

}  // namespace pagoda::wire
