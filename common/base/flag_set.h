// The command line of one program: `--flag value`, else the environment (`PAGODA_FLAG`), else the
// file named by `--config` (lines `flag = value`), else the default.
//
// Unknown flags and unknown keys of the file are errors. Unknown PAGODA_* variables are ignored
// with one log line, because Kubernetes injects some. Every program also has --help, --version and
// --list-flags (one `name value|switch` a line, by which `pagoda up` knows who takes what).
//
// Concurrency: used by main before other threads start.
#ifndef PAGODA_COMMON_BASE_FLAG_SET_H_
#define PAGODA_COMMON_BASE_FLAG_SET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"

namespace pagoda {

class FlagSet {
 public:
  FlagSet(std::string program, std::string description);
  ~FlagSet();

  // `name` without dashes ("kv-cache-bytes"). The target holds the default and must outlive Parse.
  void Add(std::string_view name, std::string_view help, std::string* target);
  void Add(std::string_view name, std::string_view help, std::vector<std::string>* target);
  void Add(std::string_view name, std::string_view help, int* target, int min, int max);
  void Add(std::string_view name, std::string_view help, uint64_t* target);
  // A switch: `--name` and `--no-name`.
  void AddSwitch(std::string_view name, std::string_view help, bool* target);
  // A size: B, KiB, MiB, GiB.
  void AddBytes(std::string_view name, std::string_view help, uint64_t* target);
  // Whole milliseconds, at least 1.
  void AddMilliseconds(std::string_view name, std::string_view help, Duration* target);
  // One of `choices`, all of which the error names.
  void AddChoice(std::string_view name, std::string_view help, std::string* target,
                 std::vector<std::string> choices);
  // Text that `check` accepts or refuses with a message.
  void AddChecked(std::string_view name, std::string_view help, std::string* target,
                  std::function<Status(const std::string&)> check);
  // Arguments without a flag.
  void AddPositional(std::string_view name, std::string_view help, std::string* target,
                     bool required);

  // The exit status with which the program must end now (0 after --help, 2 after bad input, with
  // the text already printed), or nothing: go on.
  std::optional<int> Parse(int argc, const char* const* argv);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_FLAG_SET_H_
