#include "common/text/jinja/json.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pagoda::text::jinja {
namespace {

// Bounds what a level costs in output.
constexpr int64_t kMaxIndent = 16;

class JsonWriter {
 public:
  JsonWriter(Budget& budget, std::optional<int64_t> indent) : budget_(budget) {
    // Python takes a negative indent as 0.
    if (indent.has_value()) indent_ = std::max<int64_t>(*indent, 0);
  }

  Status Write(const Value& value, int level) {
    PAGODA_RETURN_IF_ERROR(budget_.Work(1));
    if (const MarkedString* text = AsString(value)) return WriteString(*text);
    if (const List* list = AsList(value)) return WriteList(*list, level);
    if (const Dict* dict = AsDict(value)) return WriteDict(*dict, level);
    if (std::holds_alternative<None>(value)) {
      Own("null");
    } else if (const bool* flag = std::get_if<bool>(&value)) {
      Own(*flag ? "true" : "false");
    } else if (const int64_t* number = std::get_if<int64_t>(&value)) {
      Own(std::to_string(*number));
    } else {
      return TypeError("\"tojson\"", value);
    }
    return absl::OkStatus();
  }

  MarkedString Take() { return std::move(out_); }

 private:
  void Own(std::string_view text) { out_.Append(text, Origin::kTemplate); }

  void NewLine(int level) {
    if (indent_.has_value()) Own("\n" + std::string(static_cast<size_t>(*indent_) * level, ' '));
  }
  // Between items: with an indent the line's end separates enough.
  void Comma(int level) {
    Own(indent_.has_value() ? "," : ", ");
    NewLine(level);
  }

  Status WriteList(const List& list, int level) {
    if (list.kind != ListKind::kList && list.kind != ListKind::kTuple) {
      return absl::UnimplementedError("\"tojson\" of a range, view or generator is not supported");
    }
    Own("[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      i == 0 ? NewLine(level + 1) : Comma(level + 1);
      PAGODA_RETURN_IF_ERROR(Write(list.items[i], level + 1));
    }
    if (!list.items.empty()) NewLine(level);
    Own("]");
    return absl::OkStatus();
  }

  Status WriteDict(const Dict& dict, int level) {
    Own("{");
    for (size_t i = 0; i < dict.entries.size(); ++i) {
      i == 0 ? NewLine(level + 1) : Comma(level + 1);
      PAGODA_RETURN_IF_ERROR(WriteString(*dict.entries[i].first));
      Own(": ");
      PAGODA_RETURN_IF_ERROR(Write(dict.entries[i].second, level + 1));
    }
    if (!dict.entries.empty()) NewLine(level);
    Own("}");
    return absl::OkStatus();
  }

  Status WriteString(const MarkedString& string) {
    PAGODA_RETURN_IF_ERROR(budget_.Bytes(4 * string.size()));
    Own("\"");
    size_t plain = 0;  // where what is copied as it stands begins
    for (size_t i = 0; i < string.size(); ++i) {
      std::string escape = Escape(string.text()[i]);
      if (escape.empty()) continue;
      out_.AppendRange(string, plain, i);
      out_.Append(escape, string.OriginAt(i));
      plain = i + 1;
    }
    out_.AppendRange(string, plain, string.size());
    Own("\"");
    return absl::OkStatus();
  }

  // Empty for a byte that needs none.
  static std::string Escape(char byte) {
    constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
    constexpr std::string_view kTo = "\"\\nrtfb";
    if (size_t found = kFrom.find(byte); found != std::string_view::npos) {
      return {'\\', kTo[found]};
    }
    constexpr char kHex[] = "0123456789abcdef";
    auto code = static_cast<unsigned char>(byte);
    if (code >= 0x20) return {};
    return std::string("\\u00") + kHex[code >> 4] + kHex[code & 0xF];
  }

  Budget& budget_;
  std::optional<int64_t> indent_;
  MarkedString out_;
};

}  // namespace

StatusOr<MarkedString> ToJson(Budget& budget, const Value& value, std::optional<int64_t> indent) {
  if (indent.value_or(0) > kMaxIndent) {
    return absl::UnimplementedError(
        absl::StrCat("\"tojson\" with an indent above ", kMaxIndent, " is not supported"));
  }
  JsonWriter writer(budget, indent);
  PAGODA_RETURN_IF_ERROR(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace pagoda::text::jinja
