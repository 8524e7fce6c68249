// Reads and writes data sets in every format. The format follows from the file name extension, or from `format`. Every
// reader treats its input as hostile: sizes are checked against the size of the file before memory is allocated, and
// an error (Exit::data) names file, place (line or byte offset), what was found and what was expected.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "data/dataset.h"

namespace lacuna {

struct ReadOptions {
  std::string format = "auto";      // auto, or the name of a format (data/formats.h)
  std::string label_code = "auto";  // what label numbers mean: auto, 01, pm1, pm1-unknown, 01-unknown
  std::vector<std::string> labels;  // columns of .h5ad and .h5mu that are labels: "rna/obs:celltype"
  std::string label_file;           // labels, or label names (Mulan XML, words), in a file of their own
  std::vector<std::string> label_columns;   // their names, or one number N: the last N (negative: the first N)
  std::string class_column;                 // the column of a table that holds one class per row
  std::string tags_column;                  // the column of a table that holds a list of tags per row
  std::string blank_means = "auto";         // an empty label cell, or a tag that a list does not name: no, unknown
  std::vector<std::string> ignore_columns;  // of a table, left out
  std::vector<std::string> views;  // of a table: column ranges ("timbre=0-63", "odd=0-3+17-20"), or one name for all
                                   // columns; of a folder of tables: those that are read; of .h5ad: matrices
  std::string id_column;           // the column that holds ids in CSV, TSV and ARFF
  std::string header = "auto";     // whether CSV and TSV open with column names: auto, yes, no
  std::string empty = "refuse";    // a view's row with some empty cells: refuse, zero, mean (of training rows)
  std::int64_t columns = 0;        // columns of a LIBSVM file; 0 = the largest that occurs
  bool transpose = false;          // items are the columns of the table
  void declare(Options& options);

  // Not for users: what readers tell each other.
  std::string variable;           // the array of an .npz or .mat file that is meant, in dataset.toml
  bool lists = true;              // look for lists of names beside the file (.docs, .terms, _words.txt, .xml)
  bool labels_table = false;      // the table holds labels and nothing else
  bool several_tables = false;    // a column to ignore need not be in this one
  bool allow_non_finite = false;  // for callers that report such values; all others refuse them
  bool labels_declared = false;   // the user could have named labels: not in predict
  // What the caller looks at: values of the rest are not refused.
  bool needs_views = true, needs_labels = true;
  bool allow_idle = false;        // ignore options that mean nothing for the format: of several data sets
};

Dataset read_dataset(const std::string& path, const ReadOptions& options = {});
// Format by extension: .npz, .mat, .csv (a folder with one CSV file per view), otherwise a native folder. Atomic:
// what was at `path` stays whole until the new data set is complete.
void write_dataset(const Dataset& data, const std::string& path);

}  // namespace lacuna
