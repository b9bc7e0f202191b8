// Finds the texts that end an answer, in a stream that comes in pieces: across the borders of
// tokens, and before anything of one has been given out. Text that may still become a stop string
// is held back.
//
// Of several stop strings the one that is complete first counts; of those that end together the
// longest. How the stream is cut into pieces changes nothing.
//
// Concurrency: one thread at a time; each stream has its own.
#ifndef PAGODA_COMMON_TEXT_STOP_STRINGS_H_
#define PAGODA_COMMON_TEXT_STOP_STRINGS_H_

#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text {

class StopStrings {
 public:
  // REQUIRES: none of them is empty. Without any, all text passes at once.
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // The text that became certain: of what was fed, all before a stop string that was found, else
  // all that cannot be the start of one. After one was found: nothing.
  std::string Feed(std::string_view text);

  // Lets text through unseen, with what was held back; a stop string that begins in it is not
  // found.
  std::string Pass(std::string_view text);

  // The end: what was held back.
  std::string Finish() { return Pass(""); }

  bool found() const { return found_; }

 private:
  // How many of the last bytes of held_ may be the start of a stop string.
  size_t Undecided() const;

  const std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace pagoda::text

#endif  // PAGODA_COMMON_TEXT_STOP_STRINGS_H_
