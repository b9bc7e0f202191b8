// A disk for tests whose files fail to grow when they are told to.
//
// Concurrency: `failing` may be changed at any time; it outlives the Env.
#ifndef PAGODA_SERVICES_KVSTORE_TESTING_FAILING_ENV_H_
#define PAGODA_SERVICES_KVSTORE_TESTING_FAILING_ENV_H_

#include <atomic>
#include <memory>

#include "rocksdb/env.h"

namespace pagoda::testing {

std::unique_ptr<rocksdb::Env> MakeFailingEnv(const std::atomic<bool>& failing);

}  // namespace pagoda::testing

#endif  // PAGODA_SERVICES_KVSTORE_TESTING_FAILING_ENV_H_
