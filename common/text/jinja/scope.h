// The variables that a template sees: scopes inside scopes, the innermost first. A loop's pass, a
// set block and a generation block have one of their own; what is set there is gone after it.
//
// Concurrency: belongs to one rendering.
#ifndef PAGODA_COMMON_TEXT_JINJA_SCOPE_H_
#define PAGODA_COMMON_TEXT_JINJA_SCOPE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

using Variables = std::vector<std::pair<std::string, Value>>;

// Where a loop is; Jinja2's `loop`.
struct LoopState {
  const std::vector<Value>* items = nullptr;
  size_t index0 = 0;
};

class Scopes {
 public:
  explicit Scopes(Variables outermost) : variables_(std::move(outermost)) {}

  // nullptr: no such variable.
  const Value* Find(std::string_view name) const {
    for (size_t i = variables_.size(); i-- > 0;) {
      if (variables_[i].first == name) return &variables_[i].second;
    }
    return nullptr;
  }

  void Set(std::string_view name, Value value) {
    for (size_t i = begins_.empty() ? 0 : begins_.back(); i < variables_.size(); ++i) {
      if (variables_[i].first == name) {
        variables_[i].second = std::move(value);
        return;
      }
    }
    variables_.emplace_back(std::string(name), std::move(value));
  }

  // What a search may have to look at.
  size_t size() const { return variables_.size(); }

  // An inner scope while it lives.
  class Inner {
   public:
    explicit Inner(Scopes& scopes) : scopes_(scopes) {
      scopes_.begins_.push_back(scopes_.variables_.size());
    }
    ~Inner() {
      scopes_.variables_.resize(scopes_.begins_.back());
      scopes_.begins_.pop_back();
    }
    Inner(const Inner&) = delete;
    Inner& operator=(const Inner&) = delete;

   private:
    Scopes& scopes_;
  };

 private:
  Variables variables_;         // of all scopes, outermost first
  std::vector<size_t> begins_;  // where each inner scope's variables begin
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_SCOPE_H_
