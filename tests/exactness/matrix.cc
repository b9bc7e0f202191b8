#include "tests/exactness/matrix.h"

#include <algorithm>

namespace pagoda::exactness {
namespace {

void AddOnce(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

size_t Widest(const std::vector<std::string>& names) {
  size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  return width;
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(text.size(), width + 2), ' ');
  return text;
}

}  // namespace

void Matrix::Set(const std::string& row, const std::string& column, const std::string& verdict) {
  AddOnce(rows_, row);
  AddOnce(columns_, column);
  cells_.push_back({row, column, verdict});
}

std::string Matrix::ToString() const {
  if (rows_.empty()) return "";
  const size_t first = Widest(rows_), width = std::max(Widest(columns_), size_t{9});
  std::string text = "\n" + Padded("path", first);
  for (const std::string& column : columns_) text += Padded(column, width);
  for (const std::string& row : rows_) {
    text += "\n" + Padded(row, first);
    for (const std::string& column : columns_) {
      auto cell = std::find_if(cells_.begin(), cells_.end(),
                               [&](const Cell& c) { return c.row == row && c.column == column; });
      text += Padded(cell == cells_.end() ? "-" : cell->verdict, width);
    }
  }
  return text + "\n\n";
}

}  // namespace pagoda::exactness
