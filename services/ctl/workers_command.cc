// `pagoda workers`: the workers that the router knows.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/flag_set.h"
#include "common/http/http_client.h"
#include "services/ctl/answer.h"
#include "services/ctl/command.h"
#include "services/ctl/table.h"

namespace pagoda::ctl {
namespace {

using nlohmann::ordered_json;

constexpr auto kTimeout = std::chrono::seconds(10);
constexpr const char* kColumns[] = {"name",         "state", "running", "waiting", "free_blocks",
                                    "total_blocks", "grpc",  "http",    "pid"};

std::string Cell(const ordered_json& worker, const char* column) {
  auto field = worker.is_object() ? worker.find(column) : worker.end();
  if (field == worker.end()) return "-";
  return field->is_string() ? field->get<std::string>() : field->dump();
}

void PrintTable(const ordered_json& workers) {
  std::vector<std::vector<std::string>> rows(1);
  for (const char* column : kColumns) rows[0].push_back(column);
  for (const ordered_json& worker : workers) {
    rows.emplace_back();
    for (const char* column : kColumns) rows.back().push_back(Cell(worker, column));
  }
  std::fputs(FormatTable(rows).c_str(), stdout);
}

StatusOr<std::string> FetchWorkers(const http::HttpClient& client) {
  PAGODA_ASSIGN_OR_RETURN(http::HttpResponse response,
                          client.Get("/pagoda/v1/workers", SystemClock::Get()->Now() + kTimeout));
  if (response.status != 200) {
    return absl::UnavailableError(ServerMessage(response.status, response.body));
  }
  return std::move(response.body);
}

int Failure(int exit_status, const Status& status) {
  std::fprintf(stderr, "pagoda workers: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

}  // namespace

int RunWorkers(int argc, const char* const* argv) {
  std::string http = "http://127.0.0.1:8080";
  std::string output = "text";
  FlagSet flags("pagoda workers", "Lists the workers that the router knows.");
  flags.Add("http", "the router's URL", &http);
  flags.AddChoice("output", "a table, or the router's answer as it is", &output, {"text", "json"});
  if (std::optional<int> status = flags.Parse(argc, argv)) return *status;
  StatusOr<http::HttpClient> client = http::HttpClient::Create(http);
  if (!client.ok()) return Failure(2, Annotate(client.status(), "--http"));
  StatusOr<std::string> body = FetchWorkers(*client);
  if (!body.ok()) return Failure(1, body.status());
  ordered_json answer = ordered_json::parse(*body, nullptr, /*allow_exceptions=*/false);
  auto workers = answer.is_object() ? answer.find("workers") : answer.end();
  if (workers == answer.end() || !workers->is_array()) {
    return Failure(1, absl::InternalError("the router's answer has no list of workers"));
  }
  if (output == "json") {
    std::printf("%s\n", answer.dump().c_str());
  } else {
    PrintTable(*workers);
  }
  return 0;
}

}  // namespace pagoda::ctl
