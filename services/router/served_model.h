// The model that a router serves: its text side and the names it answers to. No weights.
//
// Concurrency: immutable once made.
#ifndef PAGODA_SERVICES_ROUTER_SERVED_MODEL_H_
#define PAGODA_SERVICES_ROUTER_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/text_model.h"

namespace pagoda::router {

class ServedModel {
 public:
  // REQUIRES: at least one name. `context_length`: tokens the model was made for.
  ServedModel(std::unique_ptr<const text::TextModel> text, std::vector<std::string> names,
              uint32_t context_length, int64_t created_seconds);

  // Reads a GGUF file's tokenizer, template and context length. Without names: the file's stem.
  static StatusOr<std::shared_ptr<const ServedModel>> Load(const std::string& path,
                                                           std::vector<std::string> names,
                                                           int64_t created_seconds);

  const text::TextModel& text() const { return *text_; }
  const std::vector<std::string>& names() const { return names_; }
  uint32_t context_length() const { return context_length_; }
  int64_t created_seconds() const { return created_seconds_; }  // since 1970, when it was loaded

  // The name to answer with: the one asked for, or the first one for "default" and "". Errors:
  // NOT_FOUND.
  StatusOr<std::string> Resolve(std::string_view name) const;

 private:
  const std::unique_ptr<const text::TextModel> text_;
  const std::vector<std::string> names_;
  const uint32_t context_length_;
  const int64_t created_seconds_;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_SERVED_MODEL_H_
