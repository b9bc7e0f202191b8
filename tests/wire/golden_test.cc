#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <map>
#include <set>

#include "common/base/bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/wire/golden_file.h"
#include "tests/wire/golden_instance.h"

namespace pagoda::wire {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::DynamicMessageFactory;
using google::protobuf::FileDescriptor;
using google::protobuf::MessageFactory;
using ::testing::HasSubstr;

constexpr char kUpdate[] =
    "ninja -C build/release wire_golden && "
    "build/release/bin/wire_golden --update tests/wire/golden.txt";

std::vector<GoldenLine> Lines() {
  auto lines = ReadGoldenFile(PAGODA_GOLDEN_WIRE);
  EXPECT_TRUE(lines.ok()) << lines.status();
  return lines.ok() ? *lines : std::vector<GoldenLine>();
}

TEST(WireGolden, R69CommittedBytesAreReadAndWrittenAsBefore) {
  std::map<std::string, const Descriptor*> messages;
  std::map<std::string, const EnumDescriptor*> enums;
  for (const Descriptor* message : WireMessages()) messages[message->full_name()] = message;
  for (const EnumDescriptor* type : WireEnums()) enums[type->full_name()] = type;
  for (const GoldenLine& line : Lines()) {
    if (enums.count(line.type) != 0) {
      EXPECT_EQ(CheckEnum(*enums[line.type], line.value), absl::OkStatus());
      continue;
    }
    ASSERT_EQ(messages.count(line.type), 1u) << line.type << " is gone";
    auto bytes = FromHex(line.value);
    ASSERT_TRUE(bytes.ok()) << line.type << ": " << bytes.status();
    const Message* prototype =
        MessageFactory::generated_factory()->GetPrototype(messages[line.type]);
    EXPECT_EQ(CheckGolden(*prototype, *bytes), absl::OkStatus());
  }
}

TEST(WireGolden, R69EveryMessageAndEnumerationHasCommittedBytes) {
  std::set<std::string> committed;
  for (const GoldenLine& line : Lines()) committed.insert(line.type);
  auto expect_line = [&](const std::string& type) {
    EXPECT_EQ(committed.count(type), 1u) << type << ": create its bytes with\n  " << kUpdate;
  };
  for (const Descriptor* message : WireMessages()) expect_line(message->full_name());
  for (const EnumDescriptor* type : WireEnums()) expect_line(type->full_name());
}

TEST(WireGolden, EveryProtoFileIsLookedAt) {
  std::set<std::string> files, known;
  for (const auto& entry : std::filesystem::directory_iterator(PAGODA_PROTO_DIR "/pagoda/v1")) {
    files.insert("pagoda/v1/" + entry.path().filename().string());
  }
  for (const FileDescriptor* file : WireFiles()) known.insert(file->name());
  EXPECT_EQ(known, files);
}

// The fields of a small message by name, in the text form of a FieldDescriptorProto.
using Fields = std::map<std::string, std::string>;

std::string Field(int number, const std::string& type, const std::string& more = "") {
  std::string text = "number: " + std::to_string(number) + " type: TYPE_" + type + " " + more;
  return more.find("label:") == std::string::npos ? text + " label: LABEL_OPTIONAL" : text;
}

constexpr char kRepeated[] = "label: LABEL_REPEATED";
constexpr char kIn[] = "type_name: '.t.In'";

Fields Before() {
  return {{"a", Field(1, "UINT32")},
          {"list", Field(2, "UINT32", kRepeated)},
          {"in", Field(3, "MESSAGE", kIn)},
          {"map", Field(4, "MESSAGE", "label: LABEL_REPEATED type_name: '.t.M.MapEntry'")},
          {"s", Field(5, "STRING")},
          {"ins", Field(6, "MESSAGE", std::string(kRepeated) + " " + kIn)},
          {"e", Field(7, "ENUM", "type_name: '.t.E'")},
          {"o", Field(8, "BOOL", "proto3_optional: true oneof_index: 1")},
          {"p", Field(9, "UINT64", "oneof_index: 0")},
          {"q", Field(10, "STRING", "oneof_index: 0")}};
}

// One version of that message.
class Version {
 public:
  explicit Version(const Fields& fields, const std::string& more = "") {
    std::string text = R"(
      name: 't.proto' package: 't' syntax: 'proto3'
      enum_type { name: 'E' value { name: 'ZERO' number: 0 } value { name: 'ONE' number: 1 } }
      message_type { name: 'In' field { name: 'a' number: 1 type: TYPE_UINT32 } }
      message_type {
        name: 'M' oneof_decl { name: 'x' } oneof_decl { name: '_o' }
        nested_type {
          name: 'MapEntry' options { map_entry: true }
          field { name: 'key' number: 1 type: TYPE_UINT32 label: LABEL_OPTIONAL }
          field { name: 'value' number: 2 type: TYPE_FLOAT label: LABEL_OPTIONAL }
        }
      )" + more;
    for (const auto& [name, field] : fields) text += "field { name: '" + name + "' " + field + "}";
    google::protobuf::FileDescriptorProto file;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text + "}", &file)) << text;
    const FileDescriptor* built = pool_.BuildFile(file);
    EXPECT_NE(built, nullptr) << text;
    prototype_ = factory_.GetPrototype(built->FindMessageTypeByName("M"));
  }

  std::string Bytes() const { return Encode(*GoldenInstances(*prototype_)[0]); }
  size_t instances() const { return GoldenInstances(*prototype_).size(); }
  Status Check(const std::string& bytes) const { return CheckGolden(*prototype_, bytes); }

 private:
  DescriptorPool pool_;
  DynamicMessageFactory factory_;
  const Message* prototype_ = nullptr;
};

Fields With(const std::string& name, const std::string& field) {
  Fields fields = Before();
  fields[name] = field;
  return fields;
}

Fields Without(const std::string& name) {
  Fields fields = Before();
  fields.erase(name);
  return fields;
}

TEST(WireGolden, AddedFieldsAndNewNamesAreAllowed) {
  const Version before(Before());
  EXPECT_EQ(before.instances(), 2u);  // p, q
  EXPECT_EQ(before.Check(before.Bytes()), absl::OkStatus());
  Fields renamed = Without("a");
  renamed["name"] = Field(1, "UINT32");
  for (const Fields& after :
       {renamed, With("later", Field(20, "UINT32")), With("later", Field(20, "MESSAGE", kIn)),
        With("later", Field(20, "STRING", kRepeated)),
        With("r", Field(20, "STRING", "oneof_index: 0"))}) {
    EXPECT_EQ(Version(after).Check(before.Bytes()), absl::OkStatus());
  }
}

TEST(WireGolden, ARemovedFieldMustBeReserved) {
  const std::string bytes = Version(Before()).Bytes();
  EXPECT_THAT(std::string(Version(Without("s")).Check(bytes).message()),
              HasSubstr("field 5 is gone and not reserved"));
  EXPECT_EQ(Version(Without("s"), "reserved_range { start: 5 end: 6 }").Check(bytes),
            absl::OkStatus());
}

TEST(WireGolden, AChangedNumberTypeOrCountIsFound) {
  const std::string bytes = Version(Before()).Bytes();
  const std::pair<const char*, std::string> changes[] = {
      {"a", Field(30, "UINT32")},
      {"a", Field(1, "INT32")},
      {"a", Field(1, "SINT32")},
      {"a", Field(1, "UINT64")},
      {"a", Field(1, "BOOL")},
      {"a", Field(1, "FIXED32")},
      {"a", Field(1, "UINT32", kRepeated)},
      {"list", Field(2, "UINT32")},
      {"list", Field(2, "UINT32", "label: LABEL_REPEATED options { packed: false }")},
      {"in", Field(3, "STRING")},
      {"s", Field(5, "BYTES")},
      {"ins", Field(6, "MESSAGE", kIn)},
      {"e", Field(7, "UINT32")},
      {"o", Field(8, "UINT32", "proto3_optional: true oneof_index: 1")},
      {"p", Field(9, "INT64", "oneof_index: 0")},
      {"p", Field(9, "FIXED64", "oneof_index: 0")},
  };
  for (const auto& [name, field] : changes) {
    EXPECT_FALSE(Version(With(name, field)).Check(bytes).ok()) << name << ": " << field;
  }
}

TEST(WireGolden, AnEnumerationsNumbersKeepTheirNames) {
  const EnumDescriptor* kind = WireEnums()[0];
  const std::string text = EnumText(*kind);
  EXPECT_EQ(CheckEnum(*kind, text), absl::OkStatus());
  EXPECT_FALSE(CheckEnum(*kind, text + " 99=GONE").ok());
  EXPECT_FALSE(CheckEnum(*kind, "0=OTHER").ok());
}

}  // namespace
}  // namespace pagoda::wire
