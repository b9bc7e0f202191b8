// A parsed template, ready to be rendered any number of times.
//
// Concurrency: immutable once parsed; Render may be called from any thread at once.
#ifndef PAGODA_COMMON_TEXT_JINJA_TEMPLATE_H_
#define PAGODA_COMMON_TEXT_JINJA_TEMPLATE_H_

#include <memory>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/text/jinja/ast.h"
#include "common/text/jinja/marked_string.h"
#include "common/text/jinja/scope.h"

namespace pagoda::text::jinja {

class Template {
 public:
  // Errors: as ParseTemplate.
  static StatusOr<std::unique_ptr<const Template>> Parse(std::string_view source);

  // Errors, with the line: INVALID_ARGUMENT for what Jinja2 raises an exception for, UNIMPLEMENTED
  // for a use of a value that is not supported, RESOURCE_EXHAUSTED past a limit of budget.h.
  StatusOr<MarkedString> Render(Variables variables) const;

 private:
  explicit Template(Body body) : body_(std::move(body)) {}

  Body body_;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_TEMPLATE_H_
