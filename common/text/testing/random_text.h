// Random well-formed text for tests, from a generator that the test seeds.
//
// Concurrency: plain functions.
#ifndef PAGODA_COMMON_TEXT_TESTING_RANDOM_TEXT_H_
#define PAGODA_COMMON_TEXT_TESTING_RANDOM_TEXT_H_

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace pagoda::text::testing {

// Characters of all planes, the lower ones and white space more often.
std::vector<std::string> RandomCharacters(std::mt19937& random, size_t count);

std::string RandomText(std::mt19937& random, size_t characters);

// Any bytes.
std::string RandomBytes(std::mt19937& random, size_t count);

}  // namespace pagoda::text::testing

#endif  // PAGODA_COMMON_TEXT_TESTING_RANDOM_TEXT_H_
