// Labels from columns and matrices of .h5ad and .h5mu files.
#pragma once

#include <string>
#include <vector>

#include "data/h5ad.h"

namespace lacuna {

// Labels of the rows of one table of observations.
struct LabelBlock {
  std::vector<std::string> names;
  Matrix<std::int8_t> values;  // (rows, names)
};

// A boolean, a yes/no column and 0/1 become one label; other texts, categories and whole numbers one label
// for each. The latter are called by their value alone or, where `prefixed`, `column=value`.
LabelBlock labels_of(const FrameColumn& column, const std::string& name, bool prefixed,
                     const std::string& code, const std::string& where);
// A matrix with one column per label: 0/1 or another label code, NaN = unknown.
LabelBlock labels_of(const FileMatrix& matrix, const std::string& name, const std::string& code,
                     const std::string& where);

}  // namespace lacuna
