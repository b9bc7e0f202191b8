#include "common/text/tokenizer_spec.h"

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"

namespace pagoda::text {
namespace {

// Changes whenever the fields below or their order do.
constexpr std::string_view kMagic = "pagoda.text_model.v1";

void PutString(std::string& out, std::string_view text) {
  AppendLe(out, static_cast<uint32_t>(text.size()));
  out += text;
}

void PutStrings(std::string& out, const std::vector<std::string>& list) {
  AppendLe(out, static_cast<uint32_t>(list.size()));
  for (const std::string& text : list) PutString(out, text);
}

void PutId(std::string& out, std::optional<uint32_t> id) {
  AppendLe(out, static_cast<uint8_t>(id.has_value()));
  AppendLe(out, id.value_or(0));
}

// Reads what Put* wrote. The first thing that does not fit is kept as the error; reads after it
// give empty values.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view Take(size_t count, std::string_view field) {
    if (count > rest_.size()) {
      Fail(field, "is cut short");
      return {};
    }
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  template <typename Int>
  Int Number(std::string_view field) {
    std::string_view bytes = Take(sizeof(Int), field);
    return bytes.size() == sizeof(Int) ? LoadLe<Int>(bytes.data()) : Int{0};
  }

  std::string String(std::string_view field) {
    return std::string(Take(Number<uint32_t>(field), field));
  }

  // The number of elements that follow, each of at least `element_bytes`.
  uint32_t Count(size_t element_bytes, std::string_view field) {
    uint32_t count = Number<uint32_t>(field);
    if (count > rest_.size() / element_bytes) {
      Fail(field, "is cut short");
      return 0;
    }
    return count;
  }

  void Strings(std::vector<std::string>& out, std::string_view field) {
    uint32_t count = Count(sizeof(uint32_t), field);
    for (uint32_t i = 0; i < count && status_.ok(); ++i) out.push_back(String(field));
  }

  bool Flag(std::string_view field) {
    uint8_t flag = Number<uint8_t>(field);
    if (flag > 1) Fail(field, "is neither 0 nor 1");
    return flag == 1;
  }

  std::optional<uint32_t> Id(std::string_view field) {
    bool present = Flag(field);
    uint32_t id = Number<uint32_t>(field);
    if (!present && id != 0) Fail(field, "is absent and has a value");
    return present ? std::optional<uint32_t>(id) : std::nullopt;
  }

  void Fail(std::string_view field, std::string_view what) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("text model: ", std::string(field), " ", std::string(what)));
    rest_ = {};
  }

  bool at_end() const { return rest_.empty(); }
  const Status& status() const { return status_; }

 private:
  std::string_view rest_;
  Status status_;
};

}  // namespace

std::string SerializeSpec(const TokenizerSpec& spec) {
  std::string out(kMagic);
  PutString(out, spec.model);
  PutString(out, spec.pre_tokenizer);
  PutStrings(out, spec.tokens);
  AppendLe(out, static_cast<uint32_t>(spec.types.size()));
  for (TokenType type : spec.types) AppendLe(out, static_cast<uint8_t>(type));
  PutStrings(out, spec.merges);
  AppendLe(out, static_cast<uint8_t>(spec.add_bos));
  for (const auto& id : {spec.bos, spec.eos, spec.eot, spec.eom, spec.unk, spec.pad})
    PutId(out, id);
  AppendLe(out, static_cast<uint32_t>(spec.generation_eos.size()));
  for (uint32_t id : spec.generation_eos) AppendLe(out, id);
  PutString(out, spec.chat_template);
  return out;
}

StatusOr<TokenizerSpec> ParseSpec(std::string_view bytes) {
  Reader reader(bytes);
  if (reader.Take(kMagic.size(), "header") != kMagic) {
    return absl::InvalidArgumentError("text model: the header is not pagoda.text_model.v1");
  }
  TokenizerSpec spec;
  spec.model = reader.String("model");
  spec.pre_tokenizer = reader.String("pre_tokenizer");
  reader.Strings(spec.tokens, "tokens");
  uint32_t types = reader.Count(sizeof(uint8_t), "types");
  for (uint32_t i = 0; i < types; ++i) {
    spec.types.push_back(static_cast<TokenType>(reader.Number<uint8_t>("types")));
  }
  reader.Strings(spec.merges, "merges");
  spec.add_bos = reader.Flag("add_bos");
  for (auto* id : {&spec.bos, &spec.eos, &spec.eot, &spec.eom, &spec.unk, &spec.pad}) {
    *id = reader.Id("special ids");
  }
  uint32_t eos_count = reader.Count(sizeof(uint32_t), "generation_eos");
  for (uint32_t i = 0; i < eos_count; ++i) {
    spec.generation_eos.push_back(reader.Number<uint32_t>("generation_eos"));
  }
  spec.chat_template = reader.String("chat_template");
  if (!reader.at_end()) reader.Fail("end", "is followed by more bytes");
  PAGODA_RETURN_IF_ERROR(reader.status());
  return spec;
}

}  // namespace pagoda::text
