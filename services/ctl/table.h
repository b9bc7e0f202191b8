// Rows of text in aligned columns.
//
// Concurrency: a plain function.
#ifndef PAGODA_SERVICES_CTL_TABLE_H_
#define PAGODA_SERVICES_CTL_TABLE_H_

#include <string>
#include <vector>

namespace pagoda::ctl {

// One line a row, two spaces between columns, none at the end. Every row has as many cells as the
// first.
std::string FormatTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace pagoda::ctl

#endif  // PAGODA_SERVICES_CTL_TABLE_H_
