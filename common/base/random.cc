#include "common/base/random.h"

#include <sys/random.h>

#include <cstdio>
#include <cstdlib>

namespace pagoda {

uint64_t RandomId() {
  uint64_t id = 0;
  while (id == 0) {
    if (getrandom(&id, sizeof id, 0) != sizeof id) {
      std::perror("getrandom");
      std::abort();
    }
  }
  return id;
}

std::string RandomHex128() {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(RandomId()),
                static_cast<unsigned long long>(RandomId()));
  return text;
}

}  // namespace pagoda
