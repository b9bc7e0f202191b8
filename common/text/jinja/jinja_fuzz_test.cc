// Random templates: whatever comes in, the answer is text or an error. Prints its seed on failure;
// PAGODA_FUZZ_SEED repeats a run.
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "common/base/utf8.h"
#include "common/text/jinja/template.h"
#include "common/text/testing/random_text.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace pagoda::text::jinja {
namespace {

uint32_t Seed() {
  const char* given = std::getenv("PAGODA_FUZZ_SEED");
  return given != nullptr ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10))
                          : std::random_device{}();
}

Variables SomeVariables() {
  Value text = MakeString("some <text> \u00E9", Origin::kMessage);
  Value message =
      MakeDict({{std::make_shared<const MarkedString>("role", Origin::kTemplate), text},
                {std::make_shared<const MarkedString>("content", Origin::kTemplate), text}})
          .value();
  return {{"messages", MakeList({message, message}, ListKind::kList).value()},
          {"x", int64_t{3}},
          {"s", text},
          {"t", None{}},
          {"d", message}};
}

// Parses and renders; what comes out of the renderer is well-formed and as long as its spans.
void Try(const std::string& source) {
  auto parsed = Template::Parse(source);
  if (!parsed.ok()) return;
  auto rendered = (*parsed)->Render(SomeVariables());
  if (!rendered.ok()) return;
  EXPECT_EQ(Utf8ValidPrefix(rendered->text()), rendered->size());
  EXPECT_EQ(Join(rendered->Spans()), rendered->text());
}

TEST(JinjaFuzzTest, RandomBytesNeverCrash) {
  const uint32_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    Try(text::testing::RandomBytes(random, random() % 64));
    Try("{{" + text::testing::RandomText(random, random() % 24) + "}}");
    Try("{%" + text::testing::RandomText(random, random() % 24) + "%}");
  }
}

TEST(JinjaFuzzTest, RandomTokensNeverCrash) {
  const uint32_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  const std::vector<std::string> parts = {"{{",
                                          "}}",
                                          "{%",
                                          "%}",
                                          "{{-",
                                          "-}}",
                                          "{#",
                                          "#}",
                                          "for ",
                                          "in ",
                                          "if ",
                                          "elif ",
                                          "else",
                                          "endif",
                                          "endfor",
                                          "set ",
                                          "endset",
                                          "not ",
                                          "and ",
                                          "or ",
                                          "is ",
                                          "defined",
                                          "none",
                                          "true",
                                          "x",
                                          "s",
                                          "t",
                                          "d",
                                          "messages",
                                          "loop.index",
                                          "loop.last",
                                          "[0]",
                                          "[1:]",
                                          "[::-1]",
                                          ".role",
                                          ".split('e')",
                                          "|trim",
                                          "|length",
                                          "|tojson",
                                          "|join(',')",
                                          "|default('z')",
                                          "+",
                                          "-",
                                          "*",
                                          "//",
                                          "%",
                                          "~",
                                          "==",
                                          "<",
                                          "(",
                                          ")",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          ",",
                                          ":",
                                          "=",
                                          "'a'",
                                          "\"b\"",
                                          "0",
                                          "7",
                                          " ",
                                          "\n",
                                          "text",
                                          "namespace(a=1)",
                                          "range(3)",
                                          ".items()",
                                          "|items",
                                          "break",
                                          "continue",
                                          "."};
  for (int round = 0; round < 20000; ++round) {
    std::string source;
    for (size_t i = random() % 24; i-- > 0;) source += parts[random() % parts.size()];
    Try(source);
    Try("{{ " + source + " }}");
  }
}

TEST(JinjaFuzzTest, MutatedTemplatesNeverCrash) {
  const uint32_t seed = Seed();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::ifstream file(PAGODA_TEXT_TESTDATA "/jinja.json");
  auto golden = nlohmann::json::parse(file);
  std::vector<std::string> sources;
  for (const auto& snippet : golden["snippets"]) sources.push_back(snippet["source"]);
  for (int round = 0; round < 20000; ++round) {
    std::string source = sources[random() % sources.size()];
    const std::string& other = sources[random() % sources.size()];
    size_t at = random() % (source.size() + 1);
    switch (random() % 4) {
      case 0:
        source = source.substr(0, at) + other.substr(other.size() / 2);
        break;
      case 1:
        source.erase(at, random() % 8);
        break;
      case 2:
        source.insert(at, other.substr(0, random() % 12));
        break;
      default:
        source.insert(at, 1, static_cast<char>(random() % 128));
        break;
    }
    Try(source);
  }
}

}  // namespace
}  // namespace pagoda::text::jinja
