// A parsed template: statements that hold expressions. Filters, tests, methods and functions are
// resolved (builtin.h), and their arguments are in the order of the parameters.
//
// Concurrency: immutable once parsed.
#ifndef PAGODA_COMMON_TEXT_JINJA_AST_H_
#define PAGODA_COMMON_TEXT_JINJA_AST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/text/jinja/builtin.h"
#include "common/text/jinja/value.h"

namespace pagoda::text::jinja {

enum class ExprKind : uint8_t {
  kConstant,   // constant
  kName,       // name
  kLoopField,  // loop.name
  kList,       // [operands]
  kTuple,      // (operands)
  kDict,       // {operands[0]: operands[1], ...}
  kNamespace,  // namespace(names[0]=operands[0], ...)
  kDictCall,   // dict(names[0]=operands[0], ...)
  kAttribute,  // operands[0].name
  kSubscript,  // operands[0][operands[1]]
  kSlice,      // operands[0][operands[1]:operands[2]:operands[3]], any of the last three null
  kCall,       // builtin(operands...): a filter, test, method or function; absent arguments null
  kSelect,   // those of operands[0] whose value at the path `names` passes builtin(operands[1]...)
  kMap,      // the values at the path `names` of those in operands[0], through builtin
  kNot,      // not operands[0]
  kNegate,   // -operands[0]
  kBinary,   // operands[0] operators[0] operands[1]: + - * // %
  kCompare,  // operands[0] operators[0] operands[1] operators[1] ...
  kAnd,      // operands[0] and operands[1]
  kOr,       // operands[0] or operands[1]
  kConcat,   // operands[0] ~ operands[1] ~ ...
  kConditional,  // operands[1] if operands[0] else operands[2] (may be null)
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kFloorDivide,
  kModulo,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expr;
using ExprPtr = std::unique_ptr<const Expr>;

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;  // 1 + that of the deepest operand
  std::string name;
  Value constant;
  const Builtin* builtin = nullptr;
  bool rejects = false;  // kSelect: those that do not pass
  std::vector<Operator> operators;
  std::vector<ExprPtr> operands;
  std::vector<std::string> names;
};

enum class StmtKind : uint8_t {
  kText,      // text
  kOutput,    // {{ value }}
  kIf,        // branches, the first whose condition holds
  kFor,       // body for each `targets` in value if condition; else_body when there was none
  kSet,       // targets = value
  kSetBlock,  // targets[0] = what body gives
  kBlock,     // body in a scope of its own
  kBreak,
  kContinue,
};

struct Stmt;
using StmtPtr = std::unique_ptr<const Stmt>;
using Body = std::vector<StmtPtr>;

// A variable, or an attribute of a namespace held in one.
struct Target {
  std::string name;
  std::string attribute;  // empty: the variable itself
};

struct Branch {
  ExprPtr condition;  // null: else
  Body body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  Value text;
  ExprPtr value;
  ExprPtr condition;
  std::vector<Target> targets;  // more than one: the value is unpacked
  std::vector<Branch> branches;
  Body body;
  Body else_body;
};

}  // namespace pagoda::text::jinja

#endif  // PAGODA_COMMON_TEXT_JINJA_AST_H_
