// The forms of data sets, one row of a table each (readers.cc), behind read_dataset and write_dataset. Readers fill
// name, views, gaps, labels, ids and notes; read_dataset does what is common (label names, the final check).
//
// To add a form: a file with its reader, its row in the table, and tests/fuzz/corpus/ENDING/seed.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/flat_table.h"
#include "data/readers.h"

namespace lacuna {

struct FileForm {
  std::string name;                  // of --format
  std::vector<std::string> endings;  // in small letters
  FlatTable (*read_table)(const std::string& path, const ReadOptions& options);  // null: not one table
  Dataset (*read)(const std::string& path, const ReadOptions& options);          // null: what its table makes
  void (*write)(const Dataset& data, const std::string& path);                   // null: only read
  std::vector<std::string> options;  // of ReadOptions, those that mean something to it
};
const std::vector<FileForm>& forms();

Dataset read_npz_dataset(const std::string& path, const ReadOptions& options);
Dataset read_mat_dataset(const std::string& path, const ReadOptions& options);
Dataset read_toml_dataset(const std::string& path, const ReadOptions& options);  // the path of dataset.toml
Dataset read_csv_folder(const std::string& path, const ReadOptions& options);  // tables without a dataset.toml
Dataset read_h5ad_dataset(const std::string& path, const ReadOptions& options);  // .h5mu as well
void write_h5ad_dataset(const Dataset& data, const std::string& path);          // of one view
void write_h5mu_dataset(const Dataset& data, const std::string& path);
void write_npz_dataset(const Dataset& data, const std::string& path);
void write_mat_dataset(const Dataset& data, const std::string& path);
void write_native_folder(const Dataset& data, const std::string& path);
void write_csv_folder(const Dataset& data, const std::string& path);

constexpr const char* kSchema = "lacuna.dataset.1";  // of dataset.toml

// What several forms share.
// Rows without a single finite value in a view are missing instances; they are added to `present` (n, m).
void find_missing_rows(Dataset& data);
// The given rows of a view, in that order; -1 gives an empty row.
std::variant<Table<float>, Csr> gather_rows(const View& view, const std::vector<std::int64_t>& rows);
// The view's values with zeros in the rows of missing instances; shares memory where nothing is missing.
Table<float> without_missing(const Dataset& data, std::size_t v);
bool has_unknown_labels(const Dataset& data);
Table<float> labels_as_floats(const Dataset& data);  // unknown = NaN
// Applies a known-mask G (n, c), 1 = known, to the labels.
void hide_unknown(MatrixView<const std::uint8_t> known, Dataset& data, const std::string& where);

}  // namespace lacuna
