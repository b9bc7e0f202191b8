// The table of what was tried: a row for each path, a column for each model and KV format. Printed
// when the program ends.
//
// Concurrency: one thread.
#ifndef PAGODA_TESTS_EXACTNESS_MATRIX_H_
#define PAGODA_TESTS_EXACTNESS_MATRIX_H_

#include <string>
#include <vector>

namespace pagoda::exactness {

class Matrix {
 public:
  void Set(const std::string& row, const std::string& column, const std::string& verdict);

  // Rows and columns in the order in which they first came; what was not tried is "-".
  std::string ToString() const;

 private:
  struct Cell {
    std::string row;
    std::string column;
    std::string verdict;
  };

  std::vector<std::string> rows_;
  std::vector<std::string> columns_;
  std::vector<Cell> cells_;
};

}  // namespace pagoda::exactness

#endif  // PAGODA_TESTS_EXACTNESS_MATRIX_H_
