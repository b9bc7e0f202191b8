#include "common/model/gguf.h"

#include <memory>

#include "common/base/bytes.h"
#include "common/model/model_config.h"
#include "common/model/testing/gguf_writer.h"
#include "common/model/testing/tiny_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::model {
namespace {

using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TinyModel;

std::string Message(const Status& status) { return std::string(status.message()); }

// Reads from an allocation of exactly the bytes, so that a sanitizer sees one byte too many.
class Exact {
 public:
  explicit Exact(std::string_view bytes) : copy_(new char[bytes.size()]), size_(bytes.size()) {
    std::copy(bytes.begin(), bytes.end(), copy_.get());
  }
  std::string_view view() const { return {copy_.get(), size_}; }
  char* data() { return copy_.get(); }

 private:
  std::unique_ptr<char[]> copy_;
  size_t size_;
};

// Uses everything a caller could; it must not crash, whatever the bytes are.
void TouchEverything(const GgufFile& gguf) {
  for (const GgufTensor& tensor : gguf.tensors()) {
    ASSERT_GE(tensor.data.data(), gguf.bytes().data());
    ASSERT_LE(tensor.data.data() + tensor.data.size(), gguf.bytes().data() + gguf.bytes().size());
  }
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
                          "tokenizer.ggml.bos_token_id", "general.architecture"}) {
    (void)gguf.Uint(key).ok();
    (void)gguf.Float(key).ok();
    (void)gguf.Bool(key).ok();
    (void)gguf.String(key).ok();
    (void)gguf.Strings(key).ok();
    (void)gguf.Ints(key).ok();
  }
  (void)ReadModelConfig(gguf).ok();
}

std::string TinyFile() {
  return TinyModel(
      {.layers = 1, .hidden = 64, .heads = 1, .kv_heads = 1, .ffn = 32, .vocabulary = 288});
}

// Where the tiny file's data section begins: the embedding is its first tensor.
size_t HeaderBytes(const std::string& file) {
  GgufFile gguf = GgufFile::Parse(file).value();
  return gguf.FindTensor("token_embd.weight")->data.data() - file.data();
}

TEST(GgufTest, ReadsBackWhatWasWritten) {
  GgufWriter writer;
  writer.AddUint("u", 7);
  writer.AddFloat("f", 0.5f);
  writer.AddBool("b", true);
  writer.AddString("s", "text");
  writer.AddStrings("a", {"one", "", "three"});
  writer.AddInts("i", {1, -2});
  writer.AddTensor("t", {2, 3}, TensorType::kF32, std::string(24, 'x'));
  writer.AddTensor("odd", {5}, TensorType::kF32, std::string(20, 'y'));
  std::string bytes = writer.Finish();
  GgufFile gguf = GgufFile::Parse(bytes).value();
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.Uint("u").value(), 7u);
  EXPECT_EQ(gguf.Float("f").value(), 0.5f);
  EXPECT_TRUE(gguf.Bool("b").value());
  EXPECT_EQ(gguf.String("s").value(), "text");
  EXPECT_THAT(gguf.Strings("a").value(), ::testing::ElementsAre("one", "", "three"));
  EXPECT_THAT(gguf.Ints("i").value(), ::testing::ElementsAre(1, -2));
  ASSERT_EQ(gguf.tensors().size(), 2u);
  const GgufTensor* tensor = gguf.FindTensor("t");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->num_dims, 2);
  EXPECT_EQ(tensor->dims, (std::array<uint64_t, 4>{2, 3, 1, 1}));
  EXPECT_EQ(tensor->data, std::string(24, 'x'));
  EXPECT_EQ(gguf.FindTensor("odd")->data, std::string(20, 'y'));
  EXPECT_EQ(gguf.FindTensor("no"), nullptr);
}

TEST(GgufTest, TypedAccessNamesTheKeyThatIsMissingOrWrong) {
  GgufWriter writer;
  writer.AddInts("ints", {1});
  writer.AddString("text", "x");
  writer.AddUint("big", 1000);
  writer.AddFloat("infinite", std::numeric_limits<float>::infinity());
  std::string bytes = writer.Finish();
  GgufFile gguf = GgufFile::Parse(bytes).value();
  EXPECT_EQ(gguf.Uint("none").status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(gguf.Uint("none").status()), HasSubstr("\"none\" is missing"));
  EXPECT_THAT(Message(gguf.Uint("text").status()), HasSubstr("\"text\" is not an integer"));
  EXPECT_THAT(Message(gguf.Uint("ints").status()), HasSubstr("\"ints\" is not a single value"));
  EXPECT_THAT(Message(gguf.Uint("big", 999).status()), HasSubstr("1000, the limit is 999"));
  EXPECT_THAT(Message(gguf.Strings("text").status()), HasSubstr("\"text\" is not an array"));
  EXPECT_THAT(Message(gguf.Strings("ints").status()), HasSubstr("not an array of strings"));
  EXPECT_THAT(Message(gguf.Float("infinite").status()), HasSubstr("not a finite number"));
  EXPECT_THAT(Message(gguf.Bool("text").status()), HasSubstr("not a boolean"));
}

TEST(GgufTest, OpenSaysWhichFileIsMissingOrNotAFile) {
  EXPECT_THAT(Message(GgufFile::Open("/nonexistent/m.gguf").status()),
              HasSubstr("/nonexistent/m.gguf"));
  EXPECT_THAT(Message(GgufFile::Open("/").status()), HasSubstr("/: not a regular file"));
}

TEST(GgufTest, EveryTruncationOfTheHeaderIsAnError) {
  const std::string file = TinyFile();
  const size_t header = HeaderBytes(file);
  for (size_t size = 0; size <= header; ++size) {
    Exact cut(std::string_view(file).substr(0, size));
    StatusOr<GgufFile> gguf = GgufFile::Parse(cut.view());
    ASSERT_FALSE(gguf.ok()) << size;
    ASSERT_THAT(Message(gguf.status()), HasSubstr("GGUF: ")) << size;
  }
  Exact short_data(std::string_view(file).substr(0, file.size() - 32));
  EXPECT_THAT(Message(GgufFile::Parse(short_data.view()).status()), HasSubstr("data section has"));
  EXPECT_TRUE(GgufFile::Parse(file).ok());
}

TEST(GgufTest, FlippedHeaderBytesNeverCrash) {
  const std::string file = TinyFile();
  const size_t header = HeaderBytes(file);
  Exact copy(file);
  int refused = 0;
  for (size_t at = 0; at < header; ++at) {
    for (int flip : {0x01, 0x80, 0xff}) {
      copy.data()[at] = static_cast<char>(file[at] ^ flip);
      StatusOr<GgufFile> gguf = GgufFile::Parse(copy.view());
      if (gguf.ok()) {
        TouchEverything(*gguf);
      } else {
        ++refused;
      }
    }
    copy.data()[at] = file[at];
  }
  EXPECT_GT(refused, 1000);
}

TEST(GgufTest, CountsThatTheFileCannotHoldAreRefusedBeforeAnythingIsReserved) {
  std::string file = TinyFile();
  for (uint64_t count : {uint64_t{1} << 20, uint64_t{1} << 40, UINT64_MAX}) {
    std::string bad = file;
    StoreLe(bad.data() + 8, count);
    EXPECT_THAT(Message(GgufFile::Parse(bad).status()), HasSubstr("the tensor count"));
    bad = file;
    StoreLe(bad.data() + 16, count);
    EXPECT_THAT(Message(GgufFile::Parse(bad).status()), HasSubstr("the metadata count"));
  }
}

TEST(GgufTest, VersionsOtherThan2And3AreRefused) {
  std::string file = TinyFile();
  StoreLe<uint32_t>(file.data() + 4, 2);
  EXPECT_TRUE(GgufFile::Parse(file).ok());
  for (uint32_t version : {0u, 1u, 4u, 0x03000000u}) {
    StoreLe(file.data() + 4, version);
    EXPECT_THAT(Message(GgufFile::Parse(file).status()), HasSubstr("version"));
  }
  EXPECT_THAT(Message(GgufFile::Parse("GGML").status()), HasSubstr("magic"));
}

std::string Raw(std::initializer_list<uint64_t> words) {
  std::string out;
  for (uint64_t word : words) AppendLe(out, word);
  return out;
}

std::string ArrayOf(GgufType type, uint64_t count) {
  std::string out;
  AppendLe<uint32_t>(out, static_cast<uint32_t>(GgufType::kArray));
  AppendLe<uint32_t>(out, static_cast<uint32_t>(type));
  AppendLe(out, count);
  return out;
}

Status ParseWithValue(std::string_view bytes) {
  GgufWriter writer;
  writer.AddRaw("key", bytes);
  writer.AddUint("after", 1);
  std::string file = writer.Finish();
  return GgufFile::Parse(file).status();
}

TEST(GgufTest, HostileValuesNameTheirKey) {
  const std::string nested = ArrayOf(GgufType::kArray, 1);
  EXPECT_THAT(Message(ParseWithValue(nested)), HasSubstr("\"key\" is an array of arrays"));
  EXPECT_THAT(Message(ParseWithValue(ArrayOf(GgufType::kUint64, UINT64_MAX / 4))),
              HasSubstr("inside metadata \"key\""));
  EXPECT_THAT(Message(ParseWithValue(ArrayOf(GgufType::kString, UINT64_MAX))),
              HasSubstr("metadata \"key\""));
  EXPECT_THAT(Message(ParseWithValue(ArrayOf(static_cast<GgufType>(99), 1))),
              HasSubstr("\"key\" has the unknown value type 99"));
  std::string text(4, '\0');
  text[0] = static_cast<char>(GgufType::kString);
  EXPECT_THAT(Message(ParseWithValue(text + Raw({UINT64_MAX - 3}))), HasSubstr("metadata \"key\""));
  std::string truth(5, '\0');
  truth[0] = static_cast<char>(GgufType::kBool);
  truth[4] = 2;
  EXPECT_THAT(Message(ParseWithValue(truth)), HasSubstr("neither 0 nor 1"));
}

TEST(GgufTest, RepeatedNamesAreRefused) {
  GgufWriter writer;
  writer.AddUint("twice", 1);
  writer.AddUint("twice", 1);
  EXPECT_THAT(Message(GgufFile::Parse(writer.Finish()).status()),
              HasSubstr("metadata \"twice\" occurs twice"));
  GgufWriter tensors;
  tensors.AddTensor("same", {1}, TensorType::kF32, "0000");
  tensors.AddTensor("same", {1}, TensorType::kF32, "0000");
  EXPECT_THAT(Message(GgufFile::Parse(tensors.Finish()).status()),
              HasSubstr("tensor \"same\" occurs twice"));
}

Status ParseWithTensor(const std::vector<uint64_t>& dims, TensorType type,
                       uint32_t alignment = 32) {
  GgufWriter writer;
  writer.AddUint("general.alignment", alignment);
  writer.AddTensor("first", {1}, TensorType::kF32, "0000");
  writer.AddTensor("w", dims, type, std::string(64, '0'));
  std::string file = writer.Finish();
  return GgufFile::Parse(file).status();
}

TEST(GgufTest, HostileTensorsAreNamed) {
  EXPECT_TRUE(ParseWithTensor({16}, TensorType::kF32).ok());
  EXPECT_THAT(Message(ParseWithTensor({33}, TensorType::kQ4_1)), HasSubstr("\"w\": a row of 33"));
  EXPECT_THAT(Message(ParseWithTensor({0}, TensorType::kF32)), HasSubstr("dimension 0 is 0"));
  EXPECT_THAT(Message(ParseWithTensor({}, TensorType::kF32)), HasSubstr("0 dimensions"));
  EXPECT_THAT(Message(ParseWithTensor({1, 1, 1, 1, 1}, TensorType::kF32)),
              HasSubstr("5 dimensions"));
  EXPECT_THAT(Message(ParseWithTensor({16}, static_cast<TensorType>(77))),
              HasSubstr("unknown type 77"));
  const uint64_t huge = uint64_t{1} << 62;
  EXPECT_THAT(Message(ParseWithTensor({huge}, TensorType::kF32)), HasSubstr("overflows"));
  EXPECT_THAT(Message(ParseWithTensor({8, huge, 4}, TensorType::kF32)), HasSubstr("overflows"));
  EXPECT_THAT(Message(ParseWithTensor({1 << 20}, TensorType::kF32)),
              HasSubstr("\"w\" needs 4194304 bytes"));
}

TEST(GgufTest, BadAlignmentIsRefused) {
  for (uint32_t alignment : {0u, 1u, 24u, 0x80000000u}) {
    EXPECT_THAT(Message(ParseWithTensor({16}, TensorType::kF32, alignment)),
                HasSubstr("general.alignment"));
  }
  // The second tensor starts at 32, which 64 does not divide.
  EXPECT_THAT(Message(ParseWithTensor({16}, TensorType::kF32, 64)),
              HasSubstr("no multiple of the alignment 64"));
}

TEST(GgufTest, OffsetsPastTheEndAreRefused) {
  GgufWriter writer;
  writer.AddTensor("w", {8}, TensorType::kF32, std::string(32, '0'));
  const std::string file = writer.Finish();
  const size_t offset_at = writer.HeaderBytes() - 8;
  for (uint64_t offset : {uint64_t{32}, uint64_t{1} << 40, UINT64_MAX - 31}) {
    std::string bad = file;
    StoreLe(bad.data() + offset_at, offset);
    EXPECT_THAT(Message(GgufFile::Parse(bad).status()), HasSubstr("tensor \"w\" needs 32 bytes"));
  }
}

TEST(GgufTest, NamesInMessagesAreEscapedAndCut) {
  EXPECT_EQ(QuoteName("a\n\"b\xff"), "\"a\\x0a\\x22b\\xff\"");
  EXPECT_EQ(QuoteName(std::string(100, 'x')), "\"" + std::string(80, 'x') + "...\"");
}

}  // namespace
}  // namespace pagoda::model
