// A worker for router tests: a real gRPC server whose answers a script decides, without a model.
//
// Concurrency: the test's thread beside gRPC's; the script is called on gRPC's threads.
#ifndef PAGODA_SERVICES_ROUTER_TESTING_FAKE_WORKER_H_
#define PAGODA_SERVICES_ROUTER_TESTING_FAKE_WORKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "pagoda/v1/control.pb.h"
#include "pagoda/v1/worker.pb.h"

namespace pagoda::router::testing {

// What a worker does with one request: sends `messages`, then ends with `status` or hangs until it
// is cancelled. On an OK end without hanging, a last message with `finish` and usage is added.
struct FakeAnswer {
  std::vector<std::vector<uint32_t>> messages;
  Status status;
  bool hang = false;
  v1::FinishReason finish = v1::STOP;
  v1::Usage usage;
};

// The ids of the tiny tokenizer for plain bytes.
std::vector<uint32_t> ByteIds(std::string_view bytes);

// One message for each byte of `text`, all of the prompt computed.
FakeAnswer AnswerText(const v1::WorkerGenerateRequest& request, std::string_view text);

class FakeWorker {
 public:
  using Script = std::function<FakeAnswer(const v1::WorkerGenerateRequest&)>;

  FakeWorker(std::string name, Script script);
  ~FakeWorker();

  // Registers at a router and reports, so that it gets requests from the return on. Tests end the
  // process on failure (a router that does not take a worker makes every test meaningless).
  void Join(const std::string& router_address);
  // Ends the report stream.
  void Leave();
  // Stops the gRPC server: the address refuses connections.
  void Kill();

  v1::RegisterRequest Registration() const;
  // Changes what the next Join registers.
  void set_space_numerics(std::string numerics) { numerics_ = std::move(numerics); }
  void set_max_model_len(uint32_t tokens) { max_model_len_ = tokens; }

  std::string address() const;
  // Requests so far.
  std::vector<v1::WorkerGenerateRequest> requests() const;
  // How much time the last request's deadline left it when it came.
  Duration last_time_left() const;
  // Waits up to 20 s for a call to be cancelled by the router. False: none was.
  bool WaitForCancel();

 private:
  class Service;
  struct ReportStream;

  const std::string name_;
  std::string numerics_ = "cpu-f32-r1";
  uint32_t max_model_len_ = 512;
  std::unique_ptr<Service> service_;
  struct Server;
  std::unique_ptr<Server> server_;
  std::unique_ptr<ReportStream> reports_;
};

}  // namespace pagoda::router::testing

#endif  // PAGODA_SERVICES_ROUTER_TESTING_FAKE_WORKER_H_
