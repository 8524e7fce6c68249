// Parts of .h5ad and .h5mu files (AnnData and MuData), for their reader: data frames (obs, var) and matrices
// (X, obsm, layers), in the layouts of anndata from version 0.6 on.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "data/dataset.h"
#include "data/hdf5.h"

namespace lacuna {

// One column of a data frame. Texts are categories in the order in which they first appear.
struct FrameColumn {
  enum class Kind { categories, boolean, number };
  Kind kind = Kind::number;
  std::vector<std::string> categories;  // of Kind::categories
  std::vector<std::int32_t> codes;      // (n) the category of each row, -1 = missing
  std::vector<float> values;            // (n) of the other kinds; NaN = missing
  std::size_t rows() const { return kind == Kind::categories ? codes.size() : values.size(); }
};

class Frame {
 public:
  // `uns`: where files of anndata 0.6 keep the categories of the columns.
  Frame(Hdf5File& file, std::string at, std::string uns);
  std::vector<std::string> names() const;  // the index
  const std::vector<std::string>& columns() const { return columns_; }
  bool has(const std::string& column) const;
  FrameColumn column(const std::string& name) const;

 private:
  FrameColumn series(const std::string& name) const;
  Hdf5File& file_;
  std::string at_, uns_, index_;
  std::vector<std::string> columns_;
  bool compound_ = false;  // anndata 0.6: one dataset of records
};

bool is_frame(Hdf5File& file, const std::string& at);
// Texts at `at`: a dataset of texts or whole numbers, or a group of categories or of texts with a mask.
std::vector<std::string> texts_at(Hdf5File& file, const std::string& at);

// A matrix at `at`: dense, compressed rows or columns, or a data frame of numbers (whose columns have names).
struct FileMatrix {
  std::variant<Table<float>, Csr> features;
  std::vector<std::string> column_names;
  std::string source_type;
};
FileMatrix matrix_at(Hdf5File& file, const std::string& at);

}  // namespace lacuna
