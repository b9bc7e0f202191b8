// The ways in which a request can be computed, all of which must give the same bits. Each path
// says how it is walked and proves by usage or a counter that it was.
//
// Concurrency: one thread.
#ifndef PAGODA_TESTS_EXACTNESS_PATHS_H_
#define PAGODA_TESTS_EXACTNESS_PATHS_H_

#include <ostream>
#include <vector>

#include "tests/exactness/trial.h"

namespace pagoda::exactness {

struct Path {
  const char* name;
  void (*walk)(Trial& trial);
  bool tiny_only = false;  // variants of other paths, too much for a real model
};

inline void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

// The rows of the matrix. A new path is a function and an entry here.
const std::vector<Path>& Paths();

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_PATHS_H_
