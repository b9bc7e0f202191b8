#include "services/ctl/flag_routing.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace pagoda::ctl {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::set<std::string> AllNames(const FlagRules& rules) {
  std::set<std::string> names;
  for (const auto& [name, kind] : rules.own) names.insert(name);
  for (const auto& [program, flags] : rules.programs) {
    for (const auto& [name, kind] : flags) names.insert(name);
  }
  for (const auto& [name, reason] : rules.reserved) names.erase(name);
  return names;
}

Status UnknownFlag(const std::string& name, const FlagRules& rules) {
  std::string message = "unknown flag --" + name;
  std::vector<std::string> near = NearMatches(name, AllNames(rules));
  for (const std::string& match : near) {
    message += (match == near.front() ? " (did you mean --" : ", --") + match;
  }
  if (!near.empty()) message += "?)";
  return absl::InvalidArgumentError(message);
}

// Who takes a flag, and how it is written.
struct Takers {
  bool own = false;
  std::vector<std::string> programs;
  FlagKind kind = FlagKind::kValue;
};

Takers FindTakers(const std::string& name, const FlagRules& rules) {
  Takers takers;
  if (auto own = rules.own.find(name); own != rules.own.end()) {
    takers.own = true;
    takers.kind = own->second;
    return takers;
  }
  auto only = rules.only.find(name);
  for (const auto& [program, flags] : rules.programs) {
    auto flag = flags.find(name);
    if (flag == flags.end() || (only != rules.only.end() && only->second != program)) continue;
    takers.programs.push_back(program);
    takers.kind = flag->second;
  }
  return takers;
}

bool IsTaken(const Takers& takers) { return takers.own || !takers.programs.empty(); }

// `words` are what a program gets, `value` is what it means.
void Give(const Takers& takers, const std::string& name, const std::vector<std::string>& words,
          const std::string& value, RoutedFlags& routed) {
  if (takers.own) routed.own[name] = value;
  for (const std::string& program : takers.programs) {
    std::vector<std::string>& line = routed.programs[program];
    line.insert(line.end(), words.begin(), words.end());
  }
  routed.given.insert(name);
}

// Routes the flag at arguments[index] and moves index behind it and its value.
Status RouteOne(const std::vector<std::string>& arguments, size_t& index, const FlagRules& rules,
                RoutedFlags& routed) {
  const std::string& word = arguments[index++];
  if (word.size() < 3 || word.compare(0, 2, "--") != 0) {
    return absl::InvalidArgumentError("\"" + word + "\" is not a flag");
  }
  size_t equals = word.find('=');
  std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
  std::optional<std::string> value;
  if (equals != std::string::npos) value = word.substr(equals + 1);
  if (auto reserved = rules.reserved.find(name); reserved != rules.reserved.end()) {
    return absl::InvalidArgumentError("--" + name + " " + reserved->second);
  }
  Takers takers = FindTakers(name, rules);
  if (!IsTaken(takers) && name.compare(0, 3, "no-") == 0) {
    takers = FindTakers(name.substr(3), rules);
    if (takers.kind != FlagKind::kSwitch) takers = {};
    if (IsTaken(takers)) {
      Give(takers, name.substr(3), {word}, "false", routed);
      return absl::OkStatus();
    }
  }
  if (!IsTaken(takers)) return UnknownFlag(name, rules);
  if (takers.kind == FlagKind::kSwitch) {
    Give(takers, name, {word}, value.value_or("true"), routed);
    return absl::OkStatus();
  }
  if (!value) {
    if (index == arguments.size()) {
      return absl::InvalidArgumentError("--" + name + " needs a value");
    }
    value = arguments[index++];
  }
  Give(takers, name, {"--" + name, *value}, *value, routed);
  return absl::OkStatus();
}

}  // namespace

StatusOr<FlagKinds> ParseFlagList(std::string_view text) {
  FlagKinds kinds;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, kind, rest;
    words >> name >> kind;
    if (name.empty() || (words >> rest) || (kind != "value" && kind != "switch")) {
      return absl::InvalidArgumentError("\"" + line + "\" is not `name value` or `name switch`");
    }
    kinds[name] = kind == "switch" ? FlagKind::kSwitch : FlagKind::kValue;
  }
  return kinds;
}

std::vector<std::string> NearMatches(std::string_view name, const std::set<std::string>& names) {
  std::vector<std::pair<size_t, std::string>> scored;
  for (const std::string& candidate : names) {
    size_t distance = EditDistance(name, candidate);
    bool part = name.size() >= 4 && candidate.find(name) != std::string::npos;
    if (part || distance <= std::max<size_t>(1, name.size() / 4)) {
      scored.emplace_back(distance, candidate);
    }
  }
  std::sort(scored.begin(), scored.end());
  std::vector<std::string> near;
  for (size_t i = 0; i < std::min<size_t>(3, scored.size()); ++i) near.push_back(scored[i].second);
  return near;
}

StatusOr<RoutedFlags> RouteFlags(const std::vector<std::string>& arguments, const FlagRules& rules,
                                 const std::function<bool(std::string_view)>& in_environment) {
  RoutedFlags routed;
  for (size_t index = 0; index < arguments.size();) {
    PAGODA_RETURN_IF_ERROR(RouteOne(arguments, index, rules, routed));
  }
  for (const FlagRules::Default& fallback : rules.defaults) {
    if (routed.given.count(fallback.flag) || in_environment(fallback.flag)) continue;
    for (const std::string& program : FindTakers(fallback.flag, rules).programs) {
      if (!fallback.program.empty() && fallback.program != program) continue;
      std::vector<std::string>& line = routed.programs[program];
      line.push_back("--" + fallback.flag);
      if (!fallback.value.empty()) line.push_back(fallback.value);
    }
  }
  return routed;
}

}  // namespace pagoda::ctl
