#include "common/base/ready_line.h"

#include <unistd.h>

#include <cstdio>

#include "common/base/logging.h"

namespace pagoda {

std::string FormatReadyLine(const std::string& grpc_address, const std::string& http_address,
                            int pid) {
  std::string line = "{\"ready\":true,\"grpc\":";
  AppendJsonString(line, grpc_address);
  line += ",\"http\":";
  AppendJsonString(line, http_address);
  line += ",\"pid\":" + std::to_string(pid) + "}";
  return line;
}

void PrintReadyLine(const std::string& grpc_address, const std::string& http_address) {
  std::puts(FormatReadyLine(grpc_address, http_address, getpid()).c_str());
  std::fflush(stdout);
}

}  // namespace pagoda
