#include "services/ctl/flag_routing.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pagoda::ctl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Words = std::vector<std::string>;

FlagRules Rules() {
  FlagRules rules;
  rules.own = {{"workers", FlagKind::kValue}};
  rules.programs["router"] = {{"model", FlagKind::kValue},
                              {"grpc-address", FlagKind::kValue},
                              {"kvstore", FlagKind::kValue},
                              {"allow-placement-override", FlagKind::kSwitch}};
  rules.programs["worker"] = {{"model", FlagKind::kValue},
                              {"grpc-address", FlagKind::kValue},
                              {"kvstore", FlagKind::kValue},
                              {"kv-cache-bytes", FlagKind::kValue},
                              {"max-num-seqs", FlagKind::kValue}};
  rules.only = {{"grpc-address", "router"}};
  rules.reserved = {{"kvstore", "is set elsewhere"}};
  return rules;
}

StatusOr<RoutedFlags> Route(const Words& arguments, const FlagRules& rules = Rules(),
                            std::set<std::string> environment = {}) {
  return RouteFlags(arguments, rules, [environment](std::string_view name) {
    return environment.count(std::string(name)) > 0;
  });
}

std::string ErrorOf(const Words& arguments) {
  return std::string(Route(arguments).status().message());
}

TEST(FlagRoutingTest, AFlagGoesToEveryProgramThatHasIt) {
  auto routed = Route({"--model", "m.gguf", "--kv-cache-bytes=1GiB"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["router"], ElementsAre("--model", "m.gguf"));
  EXPECT_THAT(routed->programs["worker"],
              ElementsAre("--model", "m.gguf", "--kv-cache-bytes", "1GiB"));
}

TEST(FlagRoutingTest, AddressesGoToTheRouterOnly) {
  auto routed = Route({"--grpc-address", "127.0.0.1:1"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["router"], ElementsAre("--grpc-address", "127.0.0.1:1"));
  EXPECT_THAT(routed->programs["worker"], IsEmpty());
}

TEST(FlagRoutingTest, OwnFlagsStayAndTheLastValueWins) {
  auto routed = Route({"--workers", "2", "--workers=3"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_EQ(routed->own["workers"], "3");
  EXPECT_THAT(routed->programs, IsEmpty());
}

TEST(FlagRoutingTest, ARepeatedFlagIsPassedOnEachTime) {
  auto routed = Route({"--max-num-seqs", "1", "--max-num-seqs", "2"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["worker"],
              ElementsAre("--max-num-seqs", "1", "--max-num-seqs", "2"));
}

TEST(FlagRoutingTest, SwitchesTakeNoValueAndMayBeNegated) {
  auto routed = Route({"--allow-placement-override", "--model", "m"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["router"],
              ElementsAre("--allow-placement-override", "--model", "m"));
  routed = Route({"--no-allow-placement-override"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["router"], ElementsAre("--no-allow-placement-override"));
  EXPECT_THAT(ErrorOf({"--no-model"}), HasSubstr("unknown flag --no-model"));
}

TEST(FlagRoutingTest, AValueMayLookLikeAFlag) {
  auto routed = Route({"--model", "--strange"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["router"], ElementsAre("--model", "--strange"));
}

TEST(FlagRoutingTest, AnUnknownFlagIsNamedWithItsNearMatches) {
  EXPECT_EQ(ErrorOf({"--kv-cache-byte", "1"}),
            "unknown flag --kv-cache-byte (did you mean --kv-cache-bytes?)");
  EXPECT_EQ(ErrorOf({"--zzz"}), "unknown flag --zzz");
}

TEST(FlagRoutingTest, AReservedFlagIsRefusedWithTheReason) {
  EXPECT_EQ(ErrorOf({"--kvstore", "127.0.0.1:1"}), "--kvstore is set elsewhere");
}

TEST(FlagRoutingTest, MalformedArgumentsAreRefused) {
  EXPECT_EQ(ErrorOf({"model.gguf"}), "\"model.gguf\" is not a flag");
  EXPECT_EQ(ErrorOf({"--"}), "\"--\" is not a flag");
  EXPECT_EQ(ErrorOf({"--=3"}), "unknown flag --");
  EXPECT_EQ(ErrorOf({"--model"}), "--model needs a value");
}

TEST(FlagRoutingTest, DefaultsYieldToTheCommandLineAndTheEnvironment) {
  FlagRules rules = Rules();
  rules.defaults = {{"kv-cache-bytes", "512MiB", ""}, {"allow-placement-override", "", ""}};
  auto routed = Route({}, rules);
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["worker"], ElementsAre("--kv-cache-bytes", "512MiB"));
  EXPECT_THAT(routed->programs["router"], ElementsAre("--allow-placement-override"));

  routed = Route({"--kv-cache-bytes", "1GiB", "--no-allow-placement-override"}, rules);
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["worker"], ElementsAre("--kv-cache-bytes", "1GiB"));
  EXPECT_THAT(routed->programs["router"], ElementsAre("--no-allow-placement-override"));

  routed = Route({}, rules, {"kv-cache-bytes"});
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["worker"], IsEmpty());
}

TEST(FlagRoutingTest, ADefaultMayBeForOneProgramOrForNone) {
  FlagRules rules = Rules();
  rules.defaults = {{"model", "m", "worker"}, {"not-built-yet", "1", ""}};
  auto routed = Route({}, rules);
  ASSERT_TRUE(routed.ok()) << routed.status();
  EXPECT_THAT(routed->programs["worker"], ElementsAre("--model", "m"));
  EXPECT_THAT(routed->programs["router"], IsEmpty());
}

TEST(FlagRoutingTest, AFlagListIsReadAndMalformedLinesAreNamed) {
  auto kinds = ParseFlagList("model value\nquiet switch\n");
  ASSERT_TRUE(kinds.ok()) << kinds.status();
  EXPECT_EQ((*kinds)["model"], FlagKind::kValue);
  EXPECT_EQ((*kinds)["quiet"], FlagKind::kSwitch);
  for (const char* text : {"model\n", "model number\n", "model value extra\n", "\n"}) {
    EXPECT_FALSE(ParseFlagList(text).ok()) << text;
  }
}

TEST(FlagRoutingTest, NearMatchesAreOrderedByDistance) {
  EXPECT_THAT(NearMatches("thread", {"threads", "http-threads", "model"}),
              ElementsAre("threads", "http-threads"));
}

}  // namespace
}  // namespace pagoda::ctl
