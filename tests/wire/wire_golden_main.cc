// Adds to the committed bytes what the protos say and the file does not yet hold.
//
// usage: wire_golden --update tests/wire/golden.txt
#include <cstdio>
#include <string_view>

#include "tests/wire/golden_file.h"

int main(int argc, char** argv) {
  if (argc != 3 || std::string_view(argv[1]) != "--update") {
    std::fprintf(stderr, "usage: wire_golden --update tests/wire/golden.txt\n");
    return 2;
  }
  auto lines = pagoda::wire::ReadGoldenFile(argv[2]);
  if (!lines.ok()) {
    std::fprintf(stderr, "%s\n", lines.status().ToString().c_str());
    return 1;
  }
  auto missing = pagoda::wire::MissingLines(*lines);
  if (pagoda::Status status = pagoda::wire::AppendLines(argv[2], missing); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("%zu lines added\n", missing.size());
  return 0;
}
