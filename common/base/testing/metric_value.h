// What a metric shows now, for tests.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_BASE_TESTING_METRIC_VALUE_H_
#define PAGODA_COMMON_BASE_TESTING_METRIC_VALUE_H_

#include <cstdlib>
#include <optional>
#include <string>

#include "common/base/metrics.h"

namespace pagoda::testing {

// `series`: the name without "pagoda:", with its labels as they are rendered. Nothing when there is
// no such series.
inline std::optional<double> MetricValue(Metrics& metrics, const std::string& series) {
  const std::string line = "\npagoda:" + series + " ";
  const std::string text = "\n" + metrics.Render();
  const size_t at = text.find(line);
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(text.c_str() + at + line.size(), nullptr);
}

}  // namespace pagoda::testing

#endif  // PAGODA_COMMON_BASE_TESTING_METRIC_VALUE_H_
