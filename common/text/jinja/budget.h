// What one template may cost. Templates come with models from anywhere and messages from clients,
// so neither may make the other expensive.
//
// Concurrency: a Budget belongs to one rendering.
#ifndef PAGODA_COMMON_TEXT_JINJA_BUDGET_H_
#define PAGODA_COMMON_TEXT_JINJA_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "common/base/status.h"

namespace pagoda::text::jinja {

// The longest published chat templates are near 30 KiB.
inline constexpr size_t kMaxTemplateBytes = size_t{1} << 20;

// Four of the longest request bodies: a template repeats little of what it is given.
inline constexpr size_t kMaxOutputBytes = size_t{64} << 20;

// Passes through all loops of one rendering: the longest request body holds fewer messages.
inline constexpr uint64_t kMaxLoopIterations = 1'000'000;

// Nesting of expressions and of statements: bounds the stack that parsing and rendering use.
inline constexpr int kMaxDepth = 128;

// A name is copied into error messages and compared with others; a call's keywords are compared
// with each other.
inline constexpr size_t kMaxNameBytes = 256;
inline constexpr size_t kMaxArguments = 256;

// Nesting of lists and dicts: bounds the stack that comparing, printing and freeing them use.
inline constexpr int kMaxValueDepth = 32;

// Work of one rendering in units of some ten nanoseconds: evaluated nodes and elements that
// operations look at count one, kBytesPerWork bytes too. A second or so at the very most; the
// longest request body may be looked at 16 times.
inline constexpr uint64_t kMaxWork = uint64_t{1} << 24;
inline constexpr uint64_t kBytesPerWork = 16;

class Budget {
 public:
  Status Work(uint64_t amount) {
    if (amount > kMaxWork - work_) return absl::ResourceExhaustedError("too much work");
    work_ += amount;
    return absl::OkStatus();
  }
  Status Bytes(uint64_t amount) { return Work(1 + amount / kBytesPerWork); }
  Status Iteration() {
    if (++iterations_ > kMaxLoopIterations) {
      return absl::ResourceExhaustedError("more than 1000000 loop iterations");
    }
    return absl::OkStatus();
  }

 private:
  uint64_t work_ = 0;
  uint64_t iterations_ = 0;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_BUDGET_H_
