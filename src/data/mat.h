// MATLAB files. Level 5 files (MATLAB 5 to 7.2, SciPy, Octave) are read and written by our own code, level 7.3
// files (HDF5) through libmatio in a child process.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

struct MatValue {
  std::string name;
  std::string type;                  // "float64", "uint16", "logical", "char", "cell", "struct", ...
  std::vector<std::uint64_t> shape;  // in MATLAB's order: rows, columns, ...
  Table<float> values{};  // numbers, row-major (rows, columns); further dimensions lie among the columns
  std::optional<Csr> sparse{};      // a sparse matrix has this instead
  std::vector<std::string> text{};  // of a char array: one per row, with trailing blanks cut
  std::vector<MatValue> cells{};    // of a cell array: in MATLAB's order (down the columns)

  bool numeric() const { return sparse.has_value() || !values.empty(); }
};

// The variables with the given names, or all. Numbers become float32 under the rules of to_floats
// (data/arrays.h).
std::vector<MatValue> read_mat(const std::string& path, const std::vector<std::string>& names = {});
const MatValue* find_value(std::span<const MatValue> values,
                           const std::string& name);  // null if there is none

// Level 5, compressed; level 7.3 where a variable is too large for it (2 GB). Atomic. `type` says how numbers
// are stored (float32, float64, int32, uint8, ...); the values must fit it.
void write_mat(const std::string& path, std::span<const MatValue> values);
MatValue mat_matrix(std::string name, Table<float> values, std::string type = "float32");
MatValue mat_cell(std::string name, std::vector<MatValue> cells);  // 1 x n
MatValue mat_text(std::string name, std::string text);
MatValue mat_texts(std::string name, const std::vector<std::string>& texts);  // a 1 x n cell of char rows

}  // namespace lacuna
