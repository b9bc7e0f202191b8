#include "common/base/flag_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "common/base/bytes.h"
#include "common/base/logging.h"
#include "common/base/version.h"

extern char** environ;

namespace pagoda {
namespace {

std::string EnvironmentName(std::string_view flag) {
  std::string name = "PAGODA_";
  for (char c : flag) name += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return name;
}

// Variables of Pagoda that are no flags.
const std::set<std::string, std::less<>>& OtherVariables() {
  static const auto& names = *new std::set<std::string, std::less<>>{
      "PAGODA_CACHE", "PAGODA_TEST_MODEL", "PAGODA_SHARED_DATA"};
  return names;
}

// CLI11 writes a switch as `--x,--no-x{false}`, which reads as if it were off by default.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const auto& names = option->get_lnames();
    if (!is_positional && names.size() == 2) return "--[no-]" + names.front();
    return CLI::Formatter::make_option_name(option, is_positional);
  }
};

}  // namespace

struct FlagSet::Parser {
  explicit Parser(std::string description, std::string program) : app(description, program) {}

  CLI::Option* Register(std::string_view name, CLI::Option* option) {
    flag_of_variable.emplace(EnvironmentName(name), name);
    return option;
  }

  // The command line with what the environment adds, last argument first as CLI11 wants it. CLI11's
  // own reading of variables lets the config file win over them.
  std::vector<std::string> Arguments(int argc, const char* const* argv) const {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    auto given = [&](const std::string& flag) {
      for (int i = 1; i < argc; ++i) {
        std::string_view argument(argv[i]);
        argument = argument.substr(0, argument.find('='));
        if (argument == "--" + flag || argument == "--no-" + flag) return true;
      }
      return false;
    };
    for (const auto& [variable, flag] : flag_of_variable) {
      const char* value = std::getenv(variable.c_str());
      if (value == nullptr || *value == '\0' || given(flag)) continue;
      arguments.push_back("--" + flag + "=" + value);
    }
    std::reverse(arguments.begin(), arguments.end());
    return arguments;
  }

  template <typename T>
  CLI::Option* Add(std::string_view name, std::string_view help, T& target) {
    return Register(name, app.add_option("--" + std::string(name), target, std::string(help)));
  }

  void WarnAboutUnknownVariables() const {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      std::string_view text(*entry);
      std::string_view name = text.substr(0, text.find('='));
      if (name.substr(0, 7) != "PAGODA_" || flag_of_variable.count(name) ||
          OtherVariables().count(name)) {
        continue;
      }
      Log(LogLevel::kInfo, "ignored an environment variable that is no flag of this program",
          {{"name", name}});
    }
  }

  // CLI11's words for what is wrong with the file name neither the file nor what it is about.
  std::string Explain(const CLI::ParseError& error) const {
    const int code = error.get_exit_code();
    if (code == static_cast<int>(CLI::ExitCodes::FileError)) {
      return std::string("--config: ") + error.what();
    }
    if (code != static_cast<int>(CLI::ExitCodes::ConfigError)) return error.what();
    std::string_view what = error.what();
    constexpr std::string_view kBefore = "INI was not able to parse ";
    if (what.substr(0, kBefore.size()) != kBefore) return std::string("--config: ") + error.what();
    return "--config: \"" + std::string(what.substr(kBefore.size())) +
           "\" is no flag of this program (lines are `flag = value`)";
  }

  void PrintFlags() const {
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string& name = option->get_lnames().front();
      if (name == "help" || name == "version" || name == "list-flags") continue;
      std::printf("%s %s\n", name.c_str(), option->get_expected_min() == 0 ? "switch" : "value");
    }
  }

  CLI::App app;
  std::map<std::string, std::string, std::less<>> flag_of_variable;
  bool list_flags = false;
};

FlagSet::FlagSet(std::string program, std::string description)
    : parser_(std::make_unique<Parser>(std::move(description), program)) {
  CLI::App& app = parser_->app;
  app.set_version_flag("--version", program + " " + kVersion);
  app.set_config("--config", "", "read flags from this file (lines `flag = value`)")
      ->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.add_flag("--list-flags", parser_->list_flags, "print every flag and end")->group("");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "A flag can also be set in the environment (--kv-cache-bytes: PAGODA_KV_CACHE_BYTES) or in "
      "the\n"
      "--config file; the command line wins over the environment, which wins over the file.");
  app.get_formatter()->column_width(34);
}

FlagSet::~FlagSet() = default;

void FlagSet::Add(std::string_view name, std::string_view help, std::string* target) {
  parser_->Add(name, help, *target)->capture_default_str();
}

void FlagSet::Add(std::string_view name, std::string_view help, std::vector<std::string>* target) {
  parser_->Add(name, help, *target)->delimiter(',')->allow_extra_args(false);
}

void FlagSet::Add(std::string_view name, std::string_view help, int* target, int min, int max) {
  parser_->Add(name, help, *target)->capture_default_str()->check(CLI::Range(min, max));
}

void FlagSet::Add(std::string_view name, std::string_view help, uint64_t* target) {
  parser_->Add(name, help, *target)->capture_default_str();
}

void FlagSet::AddSwitch(std::string_view name, std::string_view help, bool* target) {
  std::string flag(name);
  std::string with_default = std::string(help) + (*target ? " (default: on)" : " (default: off)");
  parser_->Register(name,
                    parser_->app.add_flag("--" + flag + ",!--no-" + flag, *target, with_default));
}

void FlagSet::AddBytes(std::string_view name, std::string_view help, uint64_t* target) {
  std::string flag = "--" + std::string(name);
  CLI::callback_t assign = [target, flag](const CLI::results_t& results) {
    StatusOr<uint64_t> bytes = ParseBytes(results.back());
    if (!bytes.ok()) throw CLI::ValidationError(flag, std::string(bytes.status().message()));
    *target = *bytes;
    return true;
  };
  CLI::Option* option = parser_->app.add_option(flag, assign, std::string(help));
  option->type_name("BYTES");
  if (*target != 0) option->default_str(FormatBytes(*target));
  parser_->Register(name, option);
}

void FlagSet::AddMilliseconds(std::string_view name, std::string_view help, Duration* target) {
  using std::chrono::milliseconds;
  const int64_t now = std::chrono::duration_cast<milliseconds>(*target).count();
  CLI::Option* option = parser_->app.add_option_function<int64_t>(
      "--" + std::string(name), [target](int64_t value) { *target = milliseconds(value); },
      std::string(help));
  // A year: far from an overflow of nanoseconds.
  option->check(CLI::Range(int64_t{1}, int64_t{365} * 24 * 3600 * 1000));
  option->type_name("MS")->default_str(std::to_string(now));
  parser_->Register(name, option);
}

void FlagSet::AddChoice(std::string_view name, std::string_view help, std::string* target,
                        std::vector<std::string> choices) {
  std::string listed = "one of";
  for (const std::string& choice : choices) {
    listed += (choice == choices.front() ? " " : ", ") + choice;
  }
  AddChecked(name, std::string(help) + " (" + listed + ")", target,
             [choices = std::move(choices), listed](const std::string& value) -> Status {
               if (std::find(choices.begin(), choices.end(), value) != choices.end()) {
                 return absl::OkStatus();
               }
               return absl::InvalidArgumentError("\"" + value + "\" is not " + listed);
             });
}

void FlagSet::AddChecked(std::string_view name, std::string_view help, std::string* target,
                         std::function<Status(const std::string&)> check) {
  auto validate = [check = std::move(check)](const std::string& value) -> std::string {
    return std::string(check(value).message());
  };
  parser_->Add(name, help, *target)->capture_default_str()->check(validate);
}

void FlagSet::AddPositional(std::string_view name, std::string_view help, std::string* target,
                            bool required) {
  parser_->app.add_option(std::string(name), *target, std::string(help))->required(required);
}

std::optional<int> FlagSet::Parse(int argc, const char* const* argv) {
  try {
    parser_->app.parse(parser_->Arguments(argc, argv));
  } catch (const CLI::Success& success) {  // --help, --version
    return parser_->app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s\n%s --help shows all flags.\n", parser_->app.get_name().c_str(),
                 parser_->Explain(error).c_str(), parser_->app.get_name().c_str());
    return 2;
  }
  if (parser_->list_flags) {
    parser_->PrintFlags();
    return 0;
  }
  parser_->WarnAboutUnknownVariables();
  return std::nullopt;
}

}  // namespace pagoda
