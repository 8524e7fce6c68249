// Reading and writing data sets in every form. The form is told by the name's ending, or by `format`.
// Every reader treats its input as hostile: sizes are checked against the file's size before memory is taken, and an
// error (Exit::data) names file, place (line or byte offset), what was found and what was expected.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "data/dataset.h"

namespace lacuna {

struct ReadOptions {
  std::string format = "auto";       // auto, native, mat, npz, npy, csv, arff, libsvm, lear, mtx
  std::string label_code = "auto";   // what label numbers mean: auto, 01, pm1 (-1/1), pm1-unknown (-1/0 = unknown/1)
  std::string label_file;            // labels, or label names (Mulan XML, words), in a file of their own
  std::int64_t label_columns = 0;    // labels are the last (negative: first) so many columns of a table
  std::vector<std::string> views;    // column ranges: "timbre=0-63", "rhythm=64-71"
  std::string id_column;             // the column that holds ids in CSV and TSV
  bool allow_non_finite = false;     // for those who report such values; everybody else refuses them
  void declare(Options& options);
};

Dataset read_dataset(const std::string& path, const ReadOptions& options = {});
// Form by ending: .npz, .mat (v5), .csv (one file a view in a folder), otherwise a native folder.
void write_dataset(const Dataset& data, const std::string& path);

}  // namespace lacuna
