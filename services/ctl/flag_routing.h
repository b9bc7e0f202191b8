// Decides which flags of `pagoda up` go to which program.
//
// Pure: it starts nothing and reads no environment but through the function it is given. Values are
// not checked here; the program that takes a flag does that.
//
// Concurrency: plain functions and values.
#ifndef PAGODA_SERVICES_CTL_FLAG_ROUTING_H_
#define PAGODA_SERVICES_CTL_FLAG_ROUTING_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace pagoda::ctl {

enum class FlagKind { kValue, kSwitch };
using FlagKinds = std::map<std::string, FlagKind>;  // by name, without dashes

// What a program prints for --list-flags: lines `name value` or `name switch`.
// Errors: INVALID_ARGUMENT naming the line.
StatusOr<FlagKinds> ParseFlagList(std::string_view text);

struct FlagRules {
  FlagKinds own;                                // flags of `up` itself
  std::map<std::string, FlagKinds> programs;    // flags of each program
  std::map<std::string, std::string> only;      // flag -> the one program that gets it
  std::map<std::string, std::string> reserved;  // flags that nobody may give, and why

  // Used when the flag is neither on the command line nor in the environment.
  struct Default {
    std::string flag;
    std::string value;    // empty for a switch
    std::string program;  // empty: every program that has the flag
  };
  std::vector<Default> defaults;
};

struct RoutedFlags {
  // The last value of each; a switch's is true or false.
  std::map<std::string, std::string> own;
  std::map<std::string, std::vector<std::string>> programs;  // command lines, in order
  std::set<std::string> given;                               // names on the command line
};

// Errors: INVALID_ARGUMENT for a flag that nobody has (naming near matches), a reserved one, a
// value that is missing, or an argument that is no flag.
StatusOr<RoutedFlags> RouteFlags(const std::vector<std::string>& arguments, const FlagRules& rules,
                                 const std::function<bool(std::string_view)>& in_environment);

// Up to three of `names` that `name` may have meant, the nearest first.
std::vector<std::string> NearMatches(std::string_view name, const std::set<std::string>& names);

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_FLAG_ROUTING_H_
