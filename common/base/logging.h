// Structured logs: one JSON object a line on stderr.
//
//   {"ts":"2026-01-31T12:00:00.123456Z","level":"info","service":"worker-0","msg":"ready","port":7100}
//
// A message is a fixed sentence; what varies goes into fields. Secrets, prompts and generated text
// are never logged.
//
// Concurrency: Log may be called from any thread; InitLogging once, before other threads start.
#ifndef PAGODA_COMMON_BASE_LOGGING_H_
#define PAGODA_COMMON_BASE_LOGGING_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "common/base/status.h"

namespace pagoda {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning", "error".
StatusOr<LogLevel> ParseLogLevel(std::string_view name);

struct LogField {
  using Value = std::variant<std::string, int64_t, uint64_t, double, bool>;

  LogField(std::string_view key, std::string_view value) : key(key), value(std::string(value)) {}
  LogField(std::string_view key, const char* value) : key(key), value(std::string(value)) {}
  LogField(std::string_view key, const std::string& value) : key(key), value(value) {}
  LogField(std::string_view key, const Status& status) : key(key), value(status.ToString()) {}
  template <typename T>
  requires std::is_arithmetic_v<T> LogField(std::string_view key, T number)
      : key(key), value(Widen(number)) {}

  std::string_view key;
  Value value;

 private:
  template <typename T>
  static Value Widen(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      return number;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(number);
    } else if constexpr (std::is_signed_v<T>) {
      return static_cast<int64_t>(number);
    } else {
      return static_cast<uint64_t>(number);
    }
  }
};

// `service` stands in every line ("router", "kvstore", or a worker's name).
void InitLogging(std::string_view service, LogLevel level);

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

// The line that Log would write at `timestamp` ("2026-..."), without the line break.
std::string FormatLogLine(std::string_view timestamp, LogLevel level, std::string_view service,
                          std::string_view message, std::initializer_list<LogField> fields);

// Appends `text` as a JSON string with its quotes; invalid UTF-8 bytes become U+FFFD.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_LOGGING_H_
