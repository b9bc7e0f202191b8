// A whole router in one object: the only place that knows all of its parts.
//
// Concurrency: Start and Stop from one thread; the rest from any.
#ifndef PAGODA_SERVICES_ROUTER_ROUTER_SERVER_H_
#define PAGODA_SERVICES_ROUTER_ROUTER_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "services/router/router_core.h"

namespace pagoda::router {

class RouterServer {
 public:
  struct Options {
    std::string grpc_address = "127.0.0.1:7070";
    std::string http_address = "127.0.0.1:8080";
    std::string model;                      // path of a GGUF file
    std::vector<std::string> served_names;  // none: the file's stem
    std::string kvstore;                    // HOST:PORT, or empty; not asked yet
    std::string policy = "predicted";
    bool allow_placement_override = false;
    HealthLimits health;
    GenerationLimits limits;
  };

  // Loads the tokenizer and listens before it returns; workers are not needed to be ready. Errors
  // name the option or the file.
  static StatusOr<std::unique_ptr<RouterServer>> Start(const Options& options);

  virtual ~RouterServer() = default;  // stops

  // HOST:PORT with the ports that were bound.
  virtual std::string grpc_address() const = 0;
  virtual std::string http_address() const = 0;

  // Not ready any more; running answers are cut, everything is joined. Harmless when repeated.
  virtual void Stop() = 0;
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_ROUTER_SERVER_H_
