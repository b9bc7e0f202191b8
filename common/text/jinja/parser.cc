#include "common/text/jinja/parser.h"

#include <initializer_list>
#include <memory>
#include <utility>

#include "common/text/jinja/expression_parser.h"
#include "common/text/jinja/lexer.h"

namespace pagoda::text::jinja {
namespace {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : stream_(std::move(tokens)), expressions_(stream_) {}

  StatusOr<Body> Run() {
    PAGODA_ASSIGN_OR_RETURN(Body body, ParseBody({}));
    if (!stream_.At(TokenKind::kEnd)) return stream_.Unexpected("a statement");
    return body;
  }

 private:
  // Until one of the `ends` stands after "{%": that name is the next token then. Without `ends`:
  // until the template's end.
  StatusOr<Body> ParseBody(std::initializer_list<std::string_view> ends) {
    TokenStream::Nested nested(stream_);
    PAGODA_RETURN_IF_ERROR(nested.status());
    Body body;
    while (!stream_.At(TokenKind::kEnd)) {
      if (stream_.At(TokenKind::kBlockBegin)) {
        stream_.Next();
        for (std::string_view end : ends) {
          if (stream_.AtName(end)) return body;
        }
      }
      PAGODA_ASSIGN_OR_RETURN(StmtPtr statement, ParseStatement());
      body.push_back(std::move(statement));
    }
    if (ends.size() != 0) {
      return stream_.Error(
          absl::StrCat("the template ends before \"", std::string(*(ends.end() - 1)), "\""));
    }
    return body;
  }

  StatusOr<StmtPtr> ParseStatement() {
    Stmt statement;
    statement.line = stream_.line();
    if (stream_.At(TokenKind::kText)) {
      statement.text = MakeString(stream_.Next().text, Origin::kTemplate);
    } else if (stream_.At(TokenKind::kOutputBegin)) {
      stream_.Next();
      statement.kind = StmtKind::kOutput;
      PAGODA_ASSIGN_OR_RETURN(statement.value, expressions_.Parse());
      PAGODA_RETURN_IF_ERROR(End(TokenKind::kOutputEnd));
    } else {
      PAGODA_RETURN_IF_ERROR(ParseTag(statement));
      PAGODA_RETURN_IF_ERROR(End(TokenKind::kBlockEnd));
    }
    return std::make_unique<const Stmt>(std::move(statement));
  }

  // After "{%": up to the "%}" that ends the statement.
  Status ParseTag(Stmt& statement) {
    if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a statement");
    if (stream_.AcceptName("for")) return ParseFor(statement);
    if (stream_.AcceptName("if")) return ParseIf(statement);
    if (stream_.AcceptName("set")) return ParseSet(statement);
    if (stream_.AcceptName("generation")) return ParseGeneration(statement);
    bool is_break = stream_.AtName("break");
    if (!is_break && !stream_.AtName("continue")) {
      return stream_.Unknown("statement", stream_.Peek().text);
    }
    if (!in_loop_) return stream_.Error("\"break\" or \"continue\" outside of a loop");
    statement.kind = is_break ? StmtKind::kBreak : StmtKind::kContinue;
    stream_.Next();
    return absl::OkStatus();
  }

  Status End(TokenKind kind) {
    if (stream_.AtOperator(",")) return stream_.Unsupported("a tuple without parentheses");
    return stream_.Expect(kind);
  }

  StatusOr<Target> ParseTarget() {
    if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a variable");
    Target target;
    target.name = stream_.Peek().text;
    PAGODA_RETURN_IF_ERROR(expressions_.CheckVariable(target.name));
    stream_.Next();
    return target;
  }

  // One variable, or several with commas between.
  Status ParseTargets(Stmt& statement) {
    bool parentheses = stream_.AcceptOperator("(");
    do {
      if (!statement.targets.empty() && !stream_.At(TokenKind::kName)) {
        return stream_.Unsupported("a single variable with a comma after it");
      }
      PAGODA_ASSIGN_OR_RETURN(Target target, ParseTarget());
      statement.targets.push_back(std::move(target));
    } while (stream_.AcceptOperator(","));
    if (!parentheses) return absl::OkStatus();
    if (statement.targets.size() == 1) return stream_.Unsupported("a variable in parentheses");
    return stream_.ExpectOperator(")");
  }

  Status ParseFor(Stmt& statement) {
    statement.kind = StmtKind::kFor;
    PAGODA_RETURN_IF_ERROR(ParseTargets(statement));
    PAGODA_RETURN_IF_ERROR(stream_.ExpectName("in"));
    PAGODA_ASSIGN_OR_RETURN(statement.value, expressions_.ParseUnconditional());
    bool outer_loop = expressions_.loop_available();
    bool outer_in_loop = std::exchange(in_loop_, true);
    if (stream_.AcceptName("if")) {
      expressions_.set_loop_available(false);
      PAGODA_ASSIGN_OR_RETURN(statement.condition, expressions_.Parse());
    }
    if (stream_.AtName("recursive")) return stream_.Unsupported("a recursive loop");
    PAGODA_RETURN_IF_ERROR(End(TokenKind::kBlockEnd));
    expressions_.set_loop_available(true);
    PAGODA_ASSIGN_OR_RETURN(statement.body, ParseBody({"else", "endfor"}));
    expressions_.set_loop_available(outer_loop);
    in_loop_ = outer_in_loop;
    if (stream_.AcceptName("else")) {
      PAGODA_RETURN_IF_ERROR(End(TokenKind::kBlockEnd));
      PAGODA_ASSIGN_OR_RETURN(statement.else_body, ParseBody({"endfor"}));
    }
    stream_.Next();
    return absl::OkStatus();
  }

  Status ParseIf(Stmt& statement) {
    statement.kind = StmtKind::kIf;
    bool otherwise = false;
    while (true) {
      Branch branch;
      if (!otherwise) {
        PAGODA_ASSIGN_OR_RETURN(branch.condition, expressions_.ParseUnconditional());
        if (stream_.AtName("if")) return stream_.Unsupported("\"if\" inside a condition");
      }
      PAGODA_RETURN_IF_ERROR(End(TokenKind::kBlockEnd));
      auto body = otherwise ? ParseBody({"endif"}) : ParseBody({"elif", "else", "endif"});
      PAGODA_RETURN_IF_ERROR(body.status());
      branch.body = *std::move(body);
      statement.branches.push_back(std::move(branch));
      if (stream_.Peek().text == "endif") break;
      otherwise = stream_.Next().text == "else";
    }
    stream_.Next();
    return absl::OkStatus();
  }

  Status ParseSet(Stmt& statement) {
    statement.kind = StmtKind::kSet;
    bool attribute = TokenStream::Is(stream_.Peek(1), TokenKind::kOperator, ".");
    if (attribute) {
      PAGODA_ASSIGN_OR_RETURN(Target target, ParseTarget());
      stream_.Next();
      if (!stream_.At(TokenKind::kName)) return stream_.Unexpected("a name after \".\"");
      target.attribute = stream_.Peek().text;
      if (target.attribute.starts_with('_')) return stream_.Unknown("attribute", target.attribute);
      stream_.Next();
      statement.targets.push_back(std::move(target));
    } else {
      PAGODA_RETURN_IF_ERROR(ParseTargets(statement));
    }
    if (stream_.AcceptOperator("=")) {
      PAGODA_ASSIGN_OR_RETURN(statement.value, expressions_.Parse());
      return absl::OkStatus();
    }
    if (stream_.AtOperator("|")) return stream_.Unsupported("a filter of a set block");
    if (statement.targets.size() > 1) return stream_.Unexpected("\"=\"");
    statement.kind = StmtKind::kSetBlock;
    return ParseInner(statement, "endset");
  }

  // Marks what the assistant says, for training; the text is just written.
  Status ParseGeneration(Stmt& statement) {
    statement.kind = StmtKind::kBlock;
    return ParseInner(statement, "endgeneration");
  }

  // A body that a break cannot leave.
  Status ParseInner(Stmt& statement, std::string_view end) {
    PAGODA_RETURN_IF_ERROR(End(TokenKind::kBlockEnd));
    bool outer_in_loop = std::exchange(in_loop_, false);
    PAGODA_ASSIGN_OR_RETURN(statement.body, ParseBody({end}));
    in_loop_ = outer_in_loop;
    stream_.Next();
    return absl::OkStatus();
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  bool in_loop_ = false;  // a loop can be left from here
};

}  // namespace

StatusOr<Body> ParseTemplate(std::string_view source) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<Token> tokens, Lex(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace pagoda::text::jinja
