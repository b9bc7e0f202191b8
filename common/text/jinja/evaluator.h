// The value of an expression.
//
// Concurrency: belongs to one rendering.
#ifndef PAGODA_COMMON_TEXT_JINJA_EVALUATOR_H_
#define PAGODA_COMMON_TEXT_JINJA_EVALUATOR_H_

#include <vector>

#include "common/base/status.h"
#include "common/text/jinja/ast.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/scope.h"
#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

class Evaluator {
 public:
  Evaluator(Budget& budget, Scopes& scopes) : budget_(budget), scopes_(scopes) {}

  // Errors name the line.
  StatusOr<Value> Evaluate(const Expr& expr);

  // The loops around the expression, innermost last; the renderer keeps it.
  std::vector<LoopState>& loops() { return loops_; }

  // A loop's condition is evaluated for all items before the first pass, where Jinja2 goes item by
  // item; so that the difference cannot show, namespaces are refused meanwhile.
  void set_in_loop_condition(bool inside) { in_loop_condition_ = inside; }

 private:
  StatusOr<Value> Dispatch(const Expr& expr);
  StatusOr<Value> Name(const Expr& expr);
  StatusOr<Value> LoopField(const Expr& expr);
  StatusOr<Value> Items(const Expr& expr, ListKind kind);
  StatusOr<Value> DictLiteral(const Expr& expr);
  StatusOr<Value> DictCall(const Expr& expr);
  StatusOr<Value> MakeNamespace(const Expr& expr);
  StatusOr<Value> Attribute(const Expr& expr);
  StatusOr<Value> Subscript(const Expr& expr);
  StatusOr<Value> Slice(const Expr& expr);
  StatusOr<Value> Call(const Expr& expr);
  StatusOr<Value> Select(const Expr& expr);
  StatusOr<Value> Map(const Expr& expr);
  StatusOr<Value> Negate(const Expr& expr);
  StatusOr<Value> Binary(const Expr& expr);
  StatusOr<Value> Compare(const Expr& expr);
  StatusOr<Value> Concat(const Expr& expr);
  StatusOr<Value> Conditional(const Expr& expr);

  // object.name or object[name].
  StatusOr<Value> Member(const Value& object, std::string_view name);
  // value[names[0]][names[1]]...
  StatusOr<Value> Path(Value value, const std::vector<std::string>& names);

  Budget& budget_;
  Scopes& scopes_;
  std::vector<LoopState> loops_;
  bool in_loop_condition_ = false;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_EVALUATOR_H_
