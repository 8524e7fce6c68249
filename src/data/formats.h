// The file formats of read_dataset and write_dataset, one row each of a table in readers.cc. Readers fill name, views,
// gaps, labels, ids and notes; read_dataset adds what is common (label names, the final check).
//
// To add a format: a file with its reader, a declaration and a row in readers.cc, and tests/fuzz/corpus/ENDING/seed.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/flat_table.h"
#include "data/readers.h"

namespace lacuna {

struct FileFormat {
  std::string name;                  // of --format
  std::vector<std::string> endings;  // in lower case
  FlatTable (*read_table)(const std::string& path, const ReadOptions& options);  // null: not a table
  Dataset (*read)(const std::string& path, const ReadOptions& options);          // null: assembled from its table
  void (*write)(const Dataset& data, const std::string& path);                   // null: read only
  std::vector<std::string> options;  // those of ReadOptions that apply to it
};
const std::vector<FileFormat>& file_formats();

Dataset read_npz_dataset(const std::string& path, const ReadOptions& options);
Dataset read_mat_dataset(const std::string& path, const ReadOptions& options);
Dataset read_toml_dataset(const std::string& path, const ReadOptions& options);  // path of the dataset.toml
Dataset read_csv_folder(const std::string& path, const ReadOptions& options);  // tables without a dataset.toml
Dataset read_h5ad_dataset(const std::string& path, const ReadOptions& options);  // .h5mu as well
void write_h5ad_dataset(const Dataset& data, const std::string& path);          // of one view
void write_h5mu_dataset(const Dataset& data, const std::string& path);
void write_npz_dataset(const Dataset& data, const std::string& path);
void write_mat_dataset(const Dataset& data, const std::string& path);
void write_native_folder(const Dataset& data, const std::string& path);
void write_csv_folder(const Dataset& data, const std::string& path);

constexpr const char* kSchema = "lacuna.dataset.1";  // of dataset.toml

// Shared by several formats.
// Marks rows without a finite value in a view as missing instances in `present` (n, m).
void find_missing_rows(Dataset& data);
// The given rows of a view, in this order; -1 gives an empty row.
std::variant<Table<float>, Csr> gather_rows(const View& view, const std::vector<std::int64_t>& rows);
// The view's values with zeros in the rows of missing instances; shares memory where nothing is missing.
Table<float> without_missing(const Dataset& data, std::size_t v);
bool has_unknown_labels(const Dataset& data);
Table<float> labels_as_floats(const Dataset& data);  // unknown = NaN
// Applies a known-mask G (n, c), 1 = known, to the labels.
void hide_unknown(MatrixView<const std::uint8_t> known, Dataset& data, const std::string& where);

}  // namespace lacuna
