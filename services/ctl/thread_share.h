// How `pagoda up` divides the CPUs among the workers of one host.
//
// Concurrency: a plain function.
#ifndef PAGODA_SERVICES_CTL_THREAD_SHARE_H_
#define PAGODA_SERVICES_CTL_THREAD_SHARE_H_

#include <algorithm>

namespace pagoda::ctl {

// Compute threads of each of `workers` workers on `cpus` CPUs. One CPU is left to the router, the
// store and the kernel, unless that would leave a worker without any.
// REQUIRES: workers > 0.
inline int ThreadShare(int cpus, int workers) { return std::max(1, (cpus - 1) / workers); }

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_THREAD_SHARE_H_
