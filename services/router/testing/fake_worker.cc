#include "services/router/testing/fake_worker.h"

#include <grpcpp/client_context.h>
#include <grpcpp/server_context.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "common/base/bounded_queue.h"
#include "common/base/mutex.h"
#include "common/base/random.h"
#include "common/rpc/channel.h"
#include "common/rpc/grpc_status.h"
#include "common/rpc/server.h"
#include "pagoda/v1/control.grpc.pb.h"
#include "pagoda/v1/worker.grpc.pb.h"
#include "services/router/open_calls.h"

namespace pagoda::router::testing {
namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "fake worker: %s\n", what.c_str());
  std::abort();
}

// Writes an answer's messages one after the other.
class AnswerStream final : public grpc::ServerWriteReactor<v1::WorkerGenerateResponse> {
 public:
  AnswerStream(FakeAnswer answer, BoundedQueue<int>* cancels, OpenCalls* open)
      : answer_(std::move(answer)), cancels_(cancels), open_(open) {
    open_->Begin();
  }

  void Begin() {
    // As a real worker that takes a request up; a refusal is the status alone.
    if (!answer_.messages.empty() || answer_.hang) StartSendInitialMetadata();
    Next();
  }

  void Next() {
    if (next_ < answer_.messages.size()) {
      message_.Clear();
      const auto& ids = answer_.messages[next_++];
      message_.mutable_token_ids()->Add(ids.begin(), ids.end());
      return StartWrite(&message_);
    }
    MutexLock lock(mutex_);
    if (finished_) return;
    if (answer_.hang) {
      hanging_ = true;
      return;
    }
    finished_ = true;
    if (!answer_.status.ok()) return Finish(rpc::ToGrpc(answer_.status));
    message_.Clear();
    message_.set_finish_reason(answer_.finish);
    *message_.mutable_usage() = answer_.usage;
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void OnWriteDone(bool ok) override {
    if (ok) return Next();
    MutexLock lock(mutex_);
    if (!std::exchange(finished_, true)) Finish(grpc::Status::CANCELLED);
  }
  void OnCancel() override {
    cancels_->TryPush(1);
    MutexLock lock(mutex_);
    if (hanging_ && !std::exchange(finished_, true)) Finish(grpc::Status::CANCELLED);
    answer_.hang = false;
  }
  void OnDone() override {
    OpenCalls* open = open_;
    delete this;
    open->End();
  }

 private:
  FakeAnswer answer_;
  BoundedQueue<int>* const cancels_;
  OpenCalls* const open_;
  v1::WorkerGenerateResponse message_;
  size_t next_ = 0;
  Mutex mutex_;
  bool hanging_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::vector<uint32_t> ByteIds(std::string_view bytes) {
  std::vector<uint32_t> ids;
  for (unsigned char byte : bytes) ids.push_back(3u + byte);  // after the 3 control tokens
  return ids;
}

FakeAnswer AnswerText(const v1::WorkerGenerateRequest& request, std::string_view text) {
  FakeAnswer answer;
  for (uint32_t id : ByteIds(text)) answer.messages.push_back({id});
  auto prompt = static_cast<uint32_t>(request.prompt_ids_size());
  answer.usage.set_prompt_tokens(prompt);
  answer.usage.set_computed(prompt);
  answer.usage.set_completion_tokens(static_cast<uint32_t>(text.size()));
  return answer;
}

class FakeWorker::Service final : public v1::Worker::CallbackService {
 public:
  explicit Service(Script script) : script_(std::move(script)) {}
  // After the server's end, which ends every stream. gRPC does so in its own order, which
  // ThreadSanitizer does not see: who waits here sees it by a lock of ours.
  ~Service() override {
    if (!open_.WaitUntilNone(SystemClock::Get()->Now() + std::chrono::seconds(60))) {
      Die("its streams do not end");
    }
  }

  grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* Generate(
      grpc::CallbackServerContext* context, const v1::WorkerGenerateRequest* request) override {
    {
      MutexLock lock(mutex_);
      requests_.push_back(*request);
      last_time_left_ = context->deadline() - std::chrono::system_clock::now();
    }
    auto* stream =
        new AnswerStream(script_(*request), &cancels_, &open_);  // deletes itself in OnDone
    stream->Begin();
    return stream;
  }

  std::vector<v1::WorkerGenerateRequest> requests() const {
    MutexLock lock(mutex_);
    return requests_;
  }
  Duration last_time_left() const {
    MutexLock lock(mutex_);
    return last_time_left_;
  }
  BoundedQueue<int>& cancels() { return cancels_; }

 private:
  const Script script_;
  mutable Mutex mutex_;
  std::vector<v1::WorkerGenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  Duration last_time_left_ ABSL_GUARDED_BY(mutex_){};
  BoundedQueue<int> cancels_{1000};
  OpenCalls open_;
};

struct FakeWorker::Server {
  std::unique_ptr<rpc::Server> rpc;
  std::string address;
};

struct FakeWorker::ReportStream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ReportRequest, v1::ReportResponse>> stream;
  uint64_t instance_id = 0;
};

FakeWorker::FakeWorker(std::string name, Script script)
    : name_(std::move(name)),
      service_(std::make_unique<Service>(std::move(script))),
      server_(std::make_unique<Server>()) {
  auto server = rpc::Server::Start({.address = "127.0.0.1:0", .services = {service_.get()}});
  if (!server.ok()) Die(server.status().ToString());
  server_->rpc = *std::move(server);
  server_->address = server_->rpc->address();
}

FakeWorker::~FakeWorker() {
  Leave();
  Kill();
}

std::string FakeWorker::address() const { return server_->address; }

std::vector<v1::WorkerGenerateRequest> FakeWorker::requests() const { return service_->requests(); }

Duration FakeWorker::last_time_left() const { return service_->last_time_left(); }

bool FakeWorker::WaitForCancel() {
  return service_->cancels()
      .PopUntil(std::chrono::steady_clock::now() + std::chrono::seconds(20))
      .has_value();
}

v1::RegisterRequest FakeWorker::Registration() const {
  v1::RegisterRequest request;
  request.set_name(name_);
  request.set_instance_id(RandomId());
  request.set_grpc_address(server_->address);
  request.mutable_protocol()->set_min(1);
  request.mutable_protocol()->set_max(1);
  auto* space = request.mutable_space();
  space->set_weights(std::string(32, 'w'));
  space->set_kv_format("k=f32;v=f32");
  space->set_block_tokens(32);
  space->set_layout(std::string(32, 'l'));
  space->set_rope("type=none");
  space->set_numerics(numerics_);
  request.mutable_limits()->set_max_model_len(max_model_len_);
  request.mutable_limits()->set_max_num_seqs(8);
  request.mutable_limits()->set_total_blocks(64);
  return request;
}

void FakeWorker::Join(const std::string& router_address) {
  auto stub = v1::Control::NewStub(rpc::MakeChannel(router_address, rpc::ChannelKind::kControl));
  v1::RegisterRequest registration = Registration();
  {
    grpc::ClientContext context;
    v1::RegisterResponse response;
    grpc::Status status = stub->Register(&context, registration, &response);
    if (!status.ok()) Die("Register: " + status.error_message());
  }
  reports_ = std::make_unique<ReportStream>();
  reports_->instance_id = registration.instance_id();
  reports_->stream = stub->Report(&reports_->context);
  v1::ReportRequest report;
  report.set_instance_id(registration.instance_id());
  report.set_sequence(1);
  reports_->stream->Write(report);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < deadline) {
    grpc::ClientContext context;
    v1::ListWorkersResponse list;
    stub->ListWorkers(&context, {}, &list);
    for (const auto& worker : list.workers()) {
      if (worker.instance_id() == registration.instance_id() && worker.state() == "ready") return;
    }
    std::this_thread::yield();
  }
  Die("the router does not see " + name_);
}

void FakeWorker::Leave() {
  if (reports_ == nullptr) return;
  reports_->context.TryCancel();
  reports_->stream->Finish();
  reports_ = nullptr;
}

void FakeWorker::Kill() { server_->rpc->Shutdown(Duration::zero()); }

}  // namespace pagoda::router::testing
