#include "tests/wire/golden_instance.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <sstream>
#include <utility>

namespace pagoda::wire {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::OneofDescriptor;
using google::protobuf::Reflection;
using google::protobuf::UnknownFieldSet;
using google::protobuf::util::MessageDifferencer;

// Which fields an instance has: those of `guide` when there is one, otherwise all, of each oneof
// the member `variant` (in the order of declaration, from the first again behind the last).
struct Choice {
  const Message* guide = nullptr;
  int variant = 0;
};

bool IsSet(const Message& message, const FieldDescriptor* field) {
  const Reflection* reflection = message.GetReflection();
  return field->is_repeated() ? reflection->FieldSize(message, field) > 0
                              : reflection->HasField(message, field);
}

bool IsChosen(const FieldDescriptor* field, const Choice& choice) {
  if (choice.guide != nullptr) return IsSet(*choice.guide, field);
  const OneofDescriptor* oneof = field->real_containing_oneof();
  return oneof == nullptr || oneof->field(choice.variant % oneof->field_count()) == field;
}

// The message of `field` that leads the nested instance. All entries of a repeated field have the
// same fields, so the first leads them all.
const Message* NestedGuide(const Message* guide, const FieldDescriptor* field) {
  if (guide == nullptr) return nullptr;
  const Reflection* reflection = guide->GetReflection();
  return field->is_repeated() ? &reflection->GetRepeatedMessage(*guide, field, 0)
                              : &reflection->GetMessage(*guide, field);
}

// The named value with the lowest number over 0, which no later value can take away.
int GoldenEnumNumber(const EnumDescriptor* descriptor) {
  int number = 0;
  for (int i = 0; i < descriptor->value_count(); ++i) {
    int candidate = descriptor->value(i)->number();
    if (candidate > 0 && (number == 0 || candidate < number)) number = candidate;
  }
  return number;
}

void FillMessage(Message* message, uint64_t path, const Choice& choice);

void FillField(Message* message, const FieldDescriptor* field, uint64_t path,
               const Message* guide) {
  const Reflection* to = message->GetReflection();
  const bool repeated = field->is_repeated();
  auto put = [&](auto set, auto add, auto value) {
    repeated ? (to->*add)(message, field, value) : (to->*set)(message, field, value);
  };
  // Values of one wire type differ between the types that share it.
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return put(&Reflection::SetInt32, &Reflection::AddInt32, -static_cast<int32_t>(path));
    case FieldDescriptor::CPPTYPE_INT64:
      return put(&Reflection::SetInt64, &Reflection::AddInt64,
                 -static_cast<int64_t>(path) - (int64_t{1} << 40));
    case FieldDescriptor::CPPTYPE_UINT32:
      return put(&Reflection::SetUInt32, &Reflection::AddUInt32,
                 static_cast<uint32_t>(path) + (1u << 31));
    case FieldDescriptor::CPPTYPE_UINT64:
      return put(&Reflection::SetUInt64, &Reflection::AddUInt64, path + (uint64_t{1} << 48));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return put(&Reflection::SetFloat, &Reflection::AddFloat, static_cast<float>(path) + 0.5f);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return put(&Reflection::SetDouble, &Reflection::AddDouble, static_cast<double>(path) + 0.25);
    case FieldDescriptor::CPPTYPE_BOOL:
      return put(&Reflection::SetBool, &Reflection::AddBool, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return put(&Reflection::SetEnumValue, &Reflection::AddEnumValue,
                 GoldenEnumNumber(field->enum_type()));
    case FieldDescriptor::CPPTYPE_STRING: {
      // Bytes that are no UTF-8, so that they cannot become a string.
      std::string value = std::to_string(path);
      if (field->type() == FieldDescriptor::TYPE_BYTES) value.insert(value.begin(), '\xff');
      return put(&Reflection::SetString, &Reflection::AddString, value);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return FillMessage(repeated ? to->AddMessage(message, field, nullptr)
                                  : to->MutableMessage(message, field, nullptr),
                         path, {NestedGuide(guide, field)});
  }
}

// `path` has two decimal digits for each field on the way, and one for the entry of a repeated one.
void FillMessage(Message* message, uint64_t path, const Choice& choice) {
  const Descriptor* descriptor = message->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (!IsChosen(field, choice)) continue;
    uint64_t here = path * 100 + static_cast<uint64_t>(field->number());
    if (!field->is_repeated()) {
      FillField(message, field, here, choice.guide);
      continue;
    }
    for (uint64_t entry = 1; entry <= 2; ++entry) {
      FillField(message, field, here * 10 + entry, choice.guide);
    }
  }
}

Status Different(const Descriptor* descriptor, const std::string& what) {
  return absl::InvalidArgumentError(descriptor->full_name() + ": " + what);
}

// Whether all that today's code cannot read is reserved; counts it.
Status CheckUnknown(const Message& message, int* count) {
  const Descriptor* descriptor = message.GetDescriptor();
  const Reflection* reflection = message.GetReflection();
  const UnknownFieldSet& unknown = reflection->GetUnknownFields(message);
  *count += unknown.field_count();
  for (int i = 0; i < unknown.field_count(); ++i) {
    int number = unknown.field(i).number();
    if (descriptor->IsReservedNumber(number)) continue;
    const char* what = descriptor->FindFieldByNumber(number) == nullptr
                           ? " is gone and not reserved"
                           : " has another type";
    return Different(descriptor, "field " + std::to_string(number) + what);
  }
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    int entries = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < entries; ++i) {
      PAGODA_RETURN_IF_ERROR(CheckUnknown(field->is_repeated()
                                              ? reflection->GetRepeatedMessage(message, field, i)
                                              : reflection->GetMessage(message, field),
                                          count));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::unique_ptr<Message>> GoldenInstances(const Message& prototype) {
  const Descriptor* descriptor = prototype.GetDescriptor();
  int variants = 1;
  for (int i = 0; i < descriptor->real_oneof_decl_count(); ++i) {
    variants = std::max(variants, descriptor->oneof_decl(i)->field_count());
  }
  std::vector<std::unique_ptr<Message>> instances;
  for (int variant = 0; variant < variants; ++variant) {
    instances.emplace_back(prototype.New());
    FillMessage(instances.back().get(), 0, {nullptr, variant});
  }
  return instances;
}

std::string Encode(const Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

Status CheckGolden(const Message& prototype, std::string_view bytes) {
  const Descriptor* descriptor = prototype.GetDescriptor();
  std::unique_ptr<Message> read(prototype.New());
  if (!read->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Different(descriptor, "the committed bytes cannot be read");
  }
  int unknown = 0;
  PAGODA_RETURN_IF_ERROR(CheckUnknown(*read, &unknown));
  read->DiscardUnknownFields();
  std::unique_ptr<Message> expected(prototype.New());
  FillMessage(expected.get(), 0, {read.get()});
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  if (!differencer.Compare(*expected, *read)) return Different(descriptor, difference);
  // With fields left out the bytes cannot be the same.
  if (unknown == 0 && Encode(*expected) != bytes) {
    return Different(descriptor, "the same values are written as other bytes");
  }
  return absl::OkStatus();
}

std::string EnumText(const EnumDescriptor& descriptor) {
  std::string text;
  for (int i = 0; i < descriptor.value_count(); ++i) {
    const EnumValueDescriptor* value = descriptor.value(i);
    text += (i == 0 ? "" : " ") + std::to_string(value->number()) + "=" + value->name();
  }
  return text;
}

Status CheckEnum(const EnumDescriptor& descriptor, std::string_view text) {
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    int number = std::stoi(word.substr(0, equals));
    const EnumValueDescriptor* value = descriptor.FindValueByNumber(number);
    if (value == nullptr ? descriptor.IsReservedNumber(number)
                         : value->name() == word.substr(equals + 1)) {
      continue;
    }
    return absl::InvalidArgumentError(
        descriptor.full_name() + ": " + word +
        (value == nullptr ? " is gone and not reserved" : " is now called " + value->name()));
  }
  return absl::OkStatus();
}

}  // namespace pagoda::wire
