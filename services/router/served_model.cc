#include "services/router/served_model.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/model/gguf.h"
#include "common/model/model_config.h"
#include "common/text/gguf_text.h"
#include "services/router/field_error.h"

namespace pagoda::router {
namespace {

// The text model and the context length of a file.
StatusOr<std::pair<std::unique_ptr<const text::TextModel>, uint32_t>> Read(
    const model::GgufFile& file) {
  PAGODA_ASSIGN_OR_RETURN(model::ModelConfig config, model::ReadModelConfig(file));
  PAGODA_ASSIGN_OR_RETURN(text::TokenizerSpec spec, text::ReadTokenizerSpec(file));
  PAGODA_ASSIGN_OR_RETURN(auto text, text::TextModel::Make(spec));
  return std::pair(std::move(text), static_cast<uint32_t>(config.context_length));
}

}  // namespace

ServedModel::ServedModel(std::unique_ptr<const text::TextModel> text,
                         std::vector<std::string> names, uint32_t context_length,
                         int64_t created_seconds)
    : text_(std::move(text)),
      names_(std::move(names)),
      context_length_(context_length),
      created_seconds_(created_seconds) {}

StatusOr<std::shared_ptr<const ServedModel>> ServedModel::Load(const std::string& path,
                                                               std::vector<std::string> names,
                                                               int64_t created_seconds) {
  // Its errors name the file.
  PAGODA_ASSIGN_OR_RETURN(model::GgufFile file, model::GgufFile::Open(path));
  auto read = Read(file);
  if (!read.ok()) return Annotate(read.status(), path);
  auto& [text, context_length] = *read;
  if (names.empty()) names.push_back(std::filesystem::path(path).stem().string());
  return std::make_shared<const ServedModel>(std::move(text), std::move(names), context_length,
                                             created_seconds);
}

StatusOr<std::string> ServedModel::Resolve(std::string_view name) const {
  if (name.empty() || name == "default") return names_.front();
  if (std::find(names_.begin(), names_.end(), name) == names_.end()) return UnknownModel(name);
  return std::string(name);
}

}  // namespace pagoda::router
