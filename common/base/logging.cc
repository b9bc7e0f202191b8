#include "common/base/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <memory>

#include "common/base/utf8.h"

namespace pagoda {
namespace {

constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error"};

struct LogState {
  std::string service = "pagoda";
  LogLevel level = LogLevel::kInfo;
  std::shared_ptr<spdlog::logger> sink;
};

LogState& State() {
  // Never destroyed: other threads may log while the process exits.
  static LogState* state = [] {
    auto* fresh = new LogState;
    fresh->sink = std::make_shared<spdlog::logger>(
        "pagoda", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    fresh->sink->set_pattern("%v");
    fresh->sink->set_level(spdlog::level::trace);
    return fresh;
  }();
  return *state;
}

std::string Timestamp() {
  auto now = std::chrono::system_clock::now();
  auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  std::time_t seconds = static_cast<std::time_t>(micros.count() / 1'000'000);
  std::tm utc;
  gmtime_r(&seconds, &utc);
  char text[40];
  size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof text - length, ".%06dZ",
                static_cast<int>(micros.count() % 1'000'000));
  return text;
}

void AppendValue(std::string& out, const LogField::Value& value) {
  if (auto* text = std::get_if<std::string>(&value)) {
    AppendJsonString(out, *text);
  } else if (auto* flag = std::get_if<bool>(&value)) {
    out += *flag ? "true" : "false";
  } else if (auto* number = std::get_if<int64_t>(&value)) {
    out += std::to_string(*number);
  } else if (auto* count = std::get_if<uint64_t>(&value)) {
    out += std::to_string(*count);
  } else {
    double real = std::get<double>(value);
    if (!std::isfinite(real)) {
      out += "null";
      return;
    }
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.6g", real);
    out += buffer;
  }
}

}  // namespace

StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  for (size_t i = 0; i < std::size(kLevelNames); ++i) {
    if (kLevelNames[i] == name) return static_cast<LogLevel>(i);
  }
  return absl::InvalidArgumentError("log level \"" + std::string(name) +
                                    "\" is none of debug, info, warning, error");
}

void AppendJsonString(std::string& out, std::string_view text) {
  out.push_back('"');
  for (size_t i = 0; i < text.size();) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
      ++i;
    } else if (c < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
      ++i;
    } else if (size_t length = Utf8SequenceLength(text, i); length > 0) {
      out.append(text.substr(i, length));
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  out.push_back('"');
}

std::string FormatLogLine(std::string_view timestamp, LogLevel level, std::string_view service,
                          std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = "{\"ts\":";
  AppendJsonString(line, timestamp);
  line += ",\"level\":\"";
  line += kLevelNames[static_cast<size_t>(level)];
  line += "\",\"service\":";
  AppendJsonString(line, service);
  line += ",\"msg\":";
  AppendJsonString(line, message);
  for (const LogField& field : fields) {
    line.push_back(',');
    AppendJsonString(line, field.key);
    line.push_back(':');
    AppendValue(line, field.value);
  }
  line.push_back('}');
  return line;
}

void InitLogging(std::string_view service, LogLevel level) {
  State().service = service;
  State().level = level;
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  LogState& state = State();
  if (level < state.level) return;
  std::string line = FormatLogLine(Timestamp(), level, state.service, message, fields);
  state.sink->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace pagoda
