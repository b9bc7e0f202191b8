// A folder for one test; it goes with the object.
//
// Concurrency: one thread.
#ifndef PAGODA_SERVICES_KVSTORE_TESTING_TEMP_FOLDER_H_
#define PAGODA_SERVICES_KVSTORE_TESTING_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace pagoda::testing {

struct TempFolder {
  TempFolder() {
    std::string name = ::testing::TempDir() + "pagoda-XXXXXX";
    path = mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string path;
};

}  // namespace pagoda::testing

#endif  // PAGODA_SERVICES_KVSTORE_TESTING_TEMP_FOLDER_H_
