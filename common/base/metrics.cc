#include "common/base/metrics.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace pagoda {
namespace {

std::string Named(std::string_view name) { return "pagoda:" + std::string(name); }

// A field of /proc/self/status, in the unit that stands there; 0 when it cannot be read.
double ProcStatus(std::string_view field) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.compare(0, field.size(), field) == 0) {
      return std::strtod(line.c_str() + field.size(), nullptr);
    }
  }
  return 0;
}

double OpenDescriptors() {
  std::error_code error;
  double count = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {}
Metrics::~Metrics() = default;

prometheus::Counter& Metrics::Counter(std::string_view name, std::string_view help, Labels labels) {
  return prometheus::BuildCounter()
      .Name(Named(name))
      .Help(std::string(help))
      .Register(*registry_)
      .Add(labels);
}

prometheus::Gauge& Metrics::Gauge(std::string_view name, std::string_view help, Labels labels) {
  return prometheus::BuildGauge()
      .Name(Named(name))
      .Help(std::string(help))
      .Register(*registry_)
      .Add(labels);
}

prometheus::Histogram& Metrics::Histogram(std::string_view name, std::string_view help,
                                          const std::vector<double>& buckets, Labels labels) {
  return prometheus::BuildHistogram()
      .Name(Named(name))
      .Help(std::string(help))
      .Register(*registry_)
      .Add(labels, buckets);
}

void Metrics::AddProcessMetrics(std::string_view service, std::string_view version) {
  Gauge("build_info", "1; the labels say what runs here",
        {{"service", std::string(service)}, {"version", std::string(version)}})
      .Set(1);
  process_metrics_ = true;
}

void Metrics::UpdateProcessMetrics() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / 1e6; };
  Gauge("process_resident_memory_bytes", "resident memory").Set(ProcStatus("VmRSS:") * 1024);
  Gauge("process_threads", "threads of the process").Set(ProcStatus("Threads:"));
  Gauge("process_open_fds", "open file descriptors").Set(OpenDescriptors());
  Gauge("process_cpu_seconds_total", "user and system CPU time")
      .Set(seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

std::string Metrics::Render() {
  if (process_metrics_) UpdateProcessMetrics();
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

const std::vector<double>& Metrics::LatencyBuckets() {
  static const std::vector<double>& buckets = *new std::vector<double>{
      0.0001, 0.00016, 0.00025, 0.0004, 0.00063, 0.001, 0.0016, 0.0025, 0.004, 0.0063, 0.01,
      0.016,  0.025,   0.04,    0.063,  0.1,     0.16,  0.25,   0.4,    0.63,  1,      1.6,
      2.5,    4,       6.3,     10,     16,      25,    40,     63,     100};
  return buckets;
}

}  // namespace pagoda
