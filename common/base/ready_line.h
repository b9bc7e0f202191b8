// The one line that a service writes to stdout, when it is ready:
//
//   {"ready":true,"grpc":"127.0.0.1:7100","http":"127.0.0.1:7101","pid":4711}
//
// Whoever started the program (`pagoda up`, a test, a script) reads it to learn the ports and when to
// begin; nothing else ever goes to stdout.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_BASE_READY_LINE_H_
#define PAGODA_COMMON_BASE_READY_LINE_H_

#include <string>

namespace pagoda {

// Without the line break.
std::string FormatReadyLine(const std::string& grpc_address, const std::string& http_address,
                            int pid);

// Writes the line for this process and flushes.
void PrintReadyLine(const std::string& grpc_address, const std::string& http_address);

}  // namespace pagoda

#endif  // PAGODA_COMMON_BASE_READY_LINE_H_
