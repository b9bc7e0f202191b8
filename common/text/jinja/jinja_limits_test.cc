// What one template may cost, and that hostile ones end in an error.
#include <string>

#include "common/text/jinja/budget.h"
#include "common/text/jinja/template.h"
#include "gtest/gtest.h"

namespace pagoda::text::jinja {
namespace {

std::string Repeat(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

Status RenderStatus(std::string_view source, Variables variables = {}) {
  auto parsed = Template::Parse(source);
  return parsed.ok() ? (*parsed)->Render(std::move(variables)).status() : parsed.status();
}

std::string Message(const Status& status) { return std::string(status.message()); }

TEST(JinjaLimitsTest, ATemplateAtTheSizeLimitIsTakenAndOnePastItIsNot) {
  std::string source(kMaxTemplateBytes, 'x');
  EXPECT_TRUE(RenderStatus(source).ok());
  EXPECT_EQ(Message(RenderStatus(source + "x")),
            "the template has 1048577 bytes; at most 1048576 are allowed");
}

TEST(JinjaLimitsTest, OutputPastTheLimitIsAnError) {
  Variables variables = {{"s", MakeString(std::string(1 << 20, 'x'), Origin::kMessage)}};
  EXPECT_TRUE(RenderStatus("{% for i in range(64) %}{{ s }}{% endfor %}", variables).ok());
  Status status = RenderStatus("{% for i in range(65) %}{{ s }}{% endfor %}", variables);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "line 1: more than 67108864 bytes of output");
}

TEST(JinjaLimitsTest, LoopIterationsAreCountedOverAllLoops) {
  std::string loops = "{% for i in range(1000) %}{% for j in range(999) %}{% endfor %}{% endfor %}";
  EXPECT_TRUE(RenderStatus(loops).ok());
  Status status = RenderStatus(loops + "{% for i in range(1) %}{% endfor %}");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "line 1: more than 1000000 loop iterations");
}

TEST(JinjaLimitsTest, NestingIsBoundedInEveryDirection) {
  const size_t deep = 100'000;
  for (const std::string& source :
       {"{{ " + std::string(deep, '(') + "1" + std::string(deep, ')') + " }}",
        "{{ " + std::string(deep, '[') + std::string(deep, ']') + " }}",
        "{{ " + Repeat("{'a':", deep) + "1" + std::string(deep, '}') + " }}",
        "{{ " + Repeat("not ", deep) + "1 }}", "{{ " + Repeat("- ", deep) + "1 }}",
        "{{ 1" + Repeat(" + 1", deep) + " }}", "{{ 1" + Repeat(" and 1", deep) + " }}",
        "{{ a" + Repeat(".a", deep) + " }}", "{{ a" + Repeat("[0]", deep) + " }}",
        "{{ a" + Repeat("|trim", deep) + " }}", "{{ a" + Repeat(" is defined", deep) + " }}",
        "{{ 1" + Repeat(" if 1 else 1", deep) + " }}", "{{ 1" + Repeat(" if 1", deep) + " }}",
        Repeat("{% if 1 %}", deep) + Repeat("{% endif %}", deep),
        Repeat("{% for a in b %}", 60'000), Repeat("{% set a %}", deep),
        "{{ a" + Repeat(" is in a", deep) + " }}"}) {
    SCOPED_TRACE(source.substr(0, 40));
    EXPECT_FALSE(Template::Parse(source).ok());
  }
}

TEST(JinjaLimitsTest, NestingUpToTheLimitWorks) {
  const size_t depth = kMaxDepth - 3;
  EXPECT_TRUE(
      RenderStatus("{{ " + std::string(depth, '(') + "1" + std::string(depth, ')') + " }}").ok());
  EXPECT_TRUE(RenderStatus("{{ 1" + Repeat(" + 1", depth) + " }}").ok());
  EXPECT_TRUE(RenderStatus(Repeat("{% if 1 %}", depth) + Repeat("{% endif %}", depth)).ok());
  // Wide is not deep.
  EXPECT_TRUE(RenderStatus("{{ 1" + Repeat(" ~ 1", 10'000) + " }}").ok());
  EXPECT_TRUE(RenderStatus("{{ 1" + Repeat(" < 1", 10'000) + " }}").ok());
  EXPECT_TRUE(RenderStatus("{% if 0 %}" + Repeat("{% elif 0 %}", 10'000) + "{% endif %}").ok());
}

TEST(JinjaLimitsTest, ValuesNestedInALoopAreBounded) {
  Status status = RenderStatus(
      "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}");
  EXPECT_EQ(Message(status), "line 1: lists or dicts nested deeper than 32");
}

TEST(JinjaLimitsTest, StringsThatGrowInALoopRunOutOfWork) {
  Status status = RenderStatus(
      "{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% "
      "endfor %}");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "line 1: too much work");
}

TEST(JinjaLimitsTest, QuadraticWorkRunsOutOfWork) {
  std::vector<Value> items(20'000, MakeString("m", Origin::kMessage));
  Variables variables = {{"messages", MakeList(items, ListKind::kList).value()}};
  EXPECT_TRUE(
      RenderStatus("{% for m in messages %}{{ messages[loop.index0] }}{% endfor %}", variables)
          .ok());
  for (const char* source :
       {"{% for m in messages %}{{ messages[::-1]|length }}{% endfor %}{{ messages[::-1]|join }}",
        "{% for m in messages %}{{ 'z' in messages }}{% endfor %}{{ messages|join }}",
        "{% for m in messages %}{{ messages|join|length }}{% endfor %}"}) {
    SCOPED_TRACE(source);
    Status status = RenderStatus(std::string(source) + source, variables);
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  }
}

TEST(JinjaLimitsTest, IntegersDoNotOverflow) {
  for (const char* source : {"{{ 999999999999999999 * 999999999999999999 }}", "{{ -x - 2 }}",
                             "{{ x + 1 }}", "{{ (-x - 1) // -1 }}", "{{ 9999999999999999999 }}"}) {
    SCOPED_TRACE(source);
    EXPECT_FALSE(RenderStatus(source, {{"x", INT64_MAX}}).ok());
  }
  EXPECT_TRUE(
      RenderStatus("{{ 'abc'[x] }}{{ 'abc'[-x:x:x] }}{{ 'abc'[x:-x:-x] }}", {{"x", INT64_MAX}})
          .ok());
  EXPECT_TRUE(
      RenderStatus("{{ 'abc'[y::y] }}{{ 'abc'[:y] }}{{ 'abc'[y] }}", {{"y", INT64_MIN}}).ok());
}

}  // namespace
}  // namespace pagoda::text::jinja
