#include "common/text/jinja/template.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/text/jinja/budget.h"
#include "common/text/jinja/evaluator.h"
#include "common/text/jinja/parser.h"

namespace pagoda::text::jinja {
namespace {

// Walks the statements and writes what they give.
class Renderer {
 public:
  explicit Renderer(Variables variables)
      : scopes_(std::move(variables)), evaluator_(budget_, scopes_) {}

  StatusOr<MarkedString> Run(const Body& body) {
    PAGODA_RETURN_IF_ERROR(RenderBody(body).status());
    return std::move(out_);
  }

 private:
  // What happens after a statement.
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  StatusOr<Flow> RenderBody(const Body& body) {
    for (const StmtPtr& statement : body) {
      PAGODA_RETURN_IF_ERROR(budget_.Work(1));
      PAGODA_ASSIGN_OR_RETURN(Flow flow, RenderStatement(*statement));
      if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
  }

  StatusOr<Flow> RenderStatement(const Stmt& statement) {
    switch (statement.kind) {
      case StmtKind::kText:
        PAGODA_RETURN_IF_ERROR(Write(statement.text));
        return Flow::kNext;
      case StmtKind::kOutput: {
        PAGODA_ASSIGN_OR_RETURN(Value value, evaluator_.Evaluate(*statement.value));
        PAGODA_RETURN_IF_ERROR(WithLine(Write(value), statement));
        return Flow::kNext;
      }
      case StmtKind::kIf:
        return RenderIf(statement);
      case StmtKind::kFor:
        return RenderFor(statement);
      case StmtKind::kSet: {
        PAGODA_ASSIGN_OR_RETURN(Value value, evaluator_.Evaluate(*statement.value));
        PAGODA_RETURN_IF_ERROR(WithLine(Assign(statement.targets, value), statement));
        return Flow::kNext;
      }
      case StmtKind::kSetBlock:
        PAGODA_RETURN_IF_ERROR(RenderSetBlock(statement));
        return Flow::kNext;
      case StmtKind::kBlock: {
        Scopes::Inner inner(scopes_);
        return RenderBody(statement.body);
      }
      case StmtKind::kBreak:
        return Flow::kBreak;
      case StmtKind::kContinue:
        return Flow::kContinue;
    }
    return absl::InternalError("a statement of no kind");
  }

  Status WithLine(const Status& status, const Stmt& statement) {
    return Annotate(status, absl::StrCat("line ", statement.line));
  }

  Status Write(const Value& value) {
    const MarkedString* text = AsString(value);
    MarkedString printed;
    if (text == nullptr) {
      PAGODA_ASSIGN_OR_RETURN(printed, ToText(value));
      text = &printed;
    }
    PAGODA_RETURN_IF_ERROR(budget_.Bytes(text->size()));
    if (text->size() > kMaxOutputBytes - out_.size()) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", kMaxOutputBytes, " bytes of output"));
    }
    out_.Append(*text);
    return absl::OkStatus();
  }

  StatusOr<Flow> RenderIf(const Stmt& statement) {
    for (const Branch& branch : statement.branches) {
      if (branch.condition != nullptr) {
        PAGODA_ASSIGN_OR_RETURN(Value condition, evaluator_.Evaluate(*branch.condition));
        if (!Truthy(condition)) continue;
      }
      return RenderBody(branch.body);
    }
    return Flow::kNext;
  }

  StatusOr<Flow> RenderFor(const Stmt& statement) {
    PAGODA_ASSIGN_OR_RETURN(Value value, evaluator_.Evaluate(*statement.value));
    auto all = Iterate(budget_, value);
    if (!all.ok()) return WithLine(all.status(), statement);
    std::vector<Value> items = *std::move(all);
    if (statement.condition != nullptr) {
      PAGODA_RETURN_IF_ERROR(Filter(statement, items));
    }
    evaluator_.loops().push_back({&items, 0});
    StatusOr<bool> completed = RenderPasses(statement, items);
    evaluator_.loops().pop_back();
    PAGODA_RETURN_IF_ERROR(completed.status());
    if (*completed) return Flow::kNext;
    Scopes::Inner inner(scopes_);
    return RenderBody(statement.else_body);
  }

  // Whether a pass came to the end of the body: Jinja2 runs "else" when none did, also when all
  // were cut short by break or continue.
  StatusOr<bool> RenderPasses(const Stmt& statement, const std::vector<Value>& items) {
    bool completed = false;
    for (size_t i = 0; i < items.size(); ++i) {
      PAGODA_RETURN_IF_ERROR(WithLine(budget_.Iteration(), statement));
      evaluator_.loops().back().index0 = i;
      Scopes::Inner inner(scopes_);
      PAGODA_RETURN_IF_ERROR(WithLine(Assign(statement.targets, items[i]), statement));
      PAGODA_ASSIGN_OR_RETURN(Flow flow, RenderBody(statement.body));
      if (flow == Flow::kBreak) break;
      if (flow == Flow::kNext) completed = true;
    }
    return completed;
  }

  // Leaves the items that the loop's condition takes.
  Status Filter(const Stmt& statement, std::vector<Value>& items) {
    std::vector<Value> taken;
    for (Value& item : items) {
      PAGODA_RETURN_IF_ERROR(WithLine(budget_.Iteration(), statement));
      Scopes::Inner inner(scopes_);
      PAGODA_RETURN_IF_ERROR(WithLine(Assign(statement.targets, item), statement));
      evaluator_.set_in_loop_condition(true);
      auto condition = evaluator_.Evaluate(*statement.condition);
      evaluator_.set_in_loop_condition(false);
      PAGODA_RETURN_IF_ERROR(condition.status());
      if (Truthy(*condition)) taken.push_back(std::move(item));
    }
    items = std::move(taken);
    return absl::OkStatus();
  }

  Status RenderSetBlock(const Stmt& statement) {
    MarkedString outer = std::exchange(out_, MarkedString());
    {
      Scopes::Inner inner(scopes_);
      PAGODA_RETURN_IF_ERROR(RenderBody(statement.body).status());
    }
    Value text = MakeString(std::exchange(out_, std::move(outer)));
    return Assign(statement.targets, text);
  }

  Status Assign(const std::vector<Target>& targets, const Value& value) {
    if (targets.size() == 1) return AssignOne(targets[0], value);
    PAGODA_ASSIGN_OR_RETURN(std::vector<Value> items, Iterate(budget_, value));
    if (items.size() != targets.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("unpacking ", items.size(), " values into ", targets.size(), " variables"));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      PAGODA_RETURN_IF_ERROR(AssignOne(targets[i], items[i]));
    }
    return absl::OkStatus();
  }

  Status AssignOne(const Target& target, const Value& value) {
    PAGODA_RETURN_IF_ERROR(budget_.Work(scopes_.size() / 16));
    if (target.attribute.empty()) {
      if (IsGenerator(value)) return CheckStorable(value);
      scopes_.Set(target.name, value);
      return absl::OkStatus();
    }
    const Value* holder = scopes_.Find(target.name);
    const NamespaceRef* ref = holder != nullptr ? std::get_if<NamespaceRef>(holder) : nullptr;
    if (ref == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", target.name, "\" is not a namespace: its attributes cannot be set"));
    }
    PAGODA_RETURN_IF_ERROR(CheckStorable(value));
    PAGODA_RETURN_IF_ERROR(budget_.Work((*ref)->attributes.size() / 16));
    (*ref)->Set(target.attribute, value);
    return absl::OkStatus();
  }

  Budget budget_;
  Scopes scopes_;
  Evaluator evaluator_;
  MarkedString out_;
};

}  // namespace

StatusOr<std::unique_ptr<const Template>> Template::Parse(std::string_view source) {
  PAGODA_ASSIGN_OR_RETURN(Body body, ParseTemplate(source));
  return std::unique_ptr<const Template>(new Template(std::move(body)));
}

StatusOr<MarkedString> Template::Render(Variables variables) const {
  return Renderer(std::move(variables)).Run(body_);
}

}  // namespace pagoda::text::jinja
