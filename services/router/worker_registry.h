// The workers that have registered, as Control's handlers and the generations see them.
//
// A worker takes requests from its first report on, unless it drains or hangs, and is gone when its
// report stream ends; it then registers anew. The books for placement and the table of killers are
// kept in step. No gRPC here.
//
// Concurrency: every method may be called from any thread.
#ifndef PAGODA_SERVICES_ROUTER_WORKER_REGISTRY_H_
#define PAGODA_SERVICES_ROUTER_WORKER_REGISTRY_H_

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/base/status.h"
#include "common/kv/block_key.h"
#include "common/placement/placement.h"
#include "pagoda/v1/control.pb.h"
#include "services/router/killer_table.h"
#include "services/router/served_model.h"
#include "services/router/worker_client.h"
#include "services/router/worker_health.h"

namespace pagoda::router {

// One registration; immutable but for `draining`.
struct RegisteredWorker {
  v1::RegisterRequest registration;
  Space space;
  std::shared_ptr<WorkerClient> client;
  // Its last word on it, which stays readable when it is gone: a drained worker's streams are
  // handed over, others' are lost.
  mutable std::atomic<bool> draining = false;

  const std::string& name() const { return registration.name(); }
};

class WorkerRegistry {
 public:
  struct Options {
    uint64_t router_id = 0;
    uint32_t report_interval_ms = 250;
    // More than any cluster behind one router; a bound against a client gone wrong.
    size_t max_workers = 1024;
    HealthLimits health;
  };

  // All but the model outlive the registry.
  WorkerRegistry(const Options& options, std::shared_ptr<const ServedModel> model,
                 placement::Placement* placement, KillerTable* killers, const Clock* clock);

  uint64_t router_id() const { return options_.router_id; }

  // Errors: those of Control.Register.
  StatusOr<v1::RegisterResponse> Register(const v1::RegisterRequest& request);

  // A report stream's life. The first report of a stream names its instance; `stream` is a number
  // of the caller's that tells streams apart. Errors: NOT_FOUND for an unknown instance.
  StatusOr<v1::ReportResponse> OnReport(uint64_t stream, const v1::ReportRequest& report);
  void OnReportsEnded(uint64_t stream);

  // No new requests for this worker. Errors: NOT_FOUND.
  Status Drain(const std::string& name);

  // The pulse, not on a thread of gRPC: judges every worker by its reports; those that hang get no
  // new requests until they are well. `stalled`: time that this process stood still in, which is
  // not held against them. Returns those that hang.
  std::map<uint64_t, Hang> CheckHealth(Duration stalled);

  v1::ListWorkersResponse List() const;

  // Null when it is gone.
  std::shared_ptr<const RegisteredWorker> Find(uint64_t instance_id) const;
  // Workers that take requests.
  std::vector<std::shared_ptr<const RegisteredWorker>> Live() const;

  // The longest prompt plus output that every live worker takes; the model's own without workers.
  uint32_t max_model_len() const;

 private:
  struct Entry {
    std::shared_ptr<const RegisteredWorker> worker;
    uint64_t stream = 0;    // 0: no report yet
    bool draining = false;  // asked for here
    WorkerHealth health;
    Hang hang = Hang::kNone;
    v1::ReportRequest last_report;
  };

  void SetHang(uint64_t instance_id, Entry& entry, Hang hang) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdatePlacement(uint64_t instance_id, const Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Check(const v1::RegisterRequest& request, Space* space) const;
  void Erase(uint64_t instance_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status MakeRoom(const v1::RegisterRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::shared_ptr<const ServedModel> model_;
  placement::Placement* const placement_;
  KillerTable* const killers_;
  const Clock* const clock_;
  mutable Mutex mutex_;
  std::map<uint64_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by instance id
  // Of workers that are gone, until nobody else holds them: CheckHealth frees them, as gRPC's
  // threads must not.
  std::vector<std::shared_ptr<WorkerClient>> retired_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pagoda::router

#endif  // PAGODA_SERVICES_ROUTER_WORKER_REGISTRY_H_
