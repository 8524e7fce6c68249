#include "data/readers.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/forms.h"
#include "data/labels.h"
#include "data/mat.h"
#include "data/npy.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFormats = {"auto", "native", "mat",  "npz", "npy",   "csv",
                                           "arff", "libsvm", "lear", "mtx", "clist", "h5ad"};

std::string format_of(const std::string& path) {
  static constexpr std::pair<const char*, const char*> kEndings[] = {
      {".mat", "mat"},     {".npz", "npz"},     {".npy", "npy"},      {".csv", "csv"},
      {".tsv", "csv"},     {".arff", "arff"},   {".svm", "libsvm"},   {".libsvm", "libsvm"},
      {".fvec", "lear"},   {".hvecs", "lear"},  {".hvecs32", "lear"}, {".mtx", "mtx"},
      {".clist", "clist"}, {".toml", "native"}, {".h5ad", "h5ad"},    {".h5mu", "h5ad"}};
  std::error_code error;
  if (fs::is_directory(path, error)) return fs::exists(path + "/dataset.toml", error) ? "native" : "csv";
  const std::string ending = fs::path(path).extension().string();
  for (const auto& [known, format] : kEndings)
    if (ending == known) return format;
  fail(Exit::data, "{}: the form of the data cannot be told from the ending '{}'; say --format ({})", path,
       ending, join({kFormats.begin() + 1, kFormats.end()}, ", "));
}

bool is_table(const std::string& format) {
  return format == "csv" || format == "arff" || format == "libsvm" || format == "lear" || format == "mtx" ||
         format == "clist";
}

// Labels of a table from a file of their own: a matrix of the same rows, or one class a line.
void read_label_file(const ReadOptions& options, Dataset& data) {
  const std::string& path = options.label_file;
  Dataset labels;
  if (path.ends_with(".txt")) {
    one_hot_labels(read_lines(path), labels);
  } else {
    ReadOptions plain;
    plain.label_code = options.label_code;
    FlatTable table = read_table(path, "", plain);
    if (table.labels.empty() && table.classes.empty())
      for (std::size_t c = 0; c < table.column_count(); ++c) table.label_columns.push_back(c);
    take_labels(table, plain, path, labels);
  }
  if (labels.labels.rows() != data.rows)
    fail(Exit::data, "{}: {} rows of labels, the views have {}", path, labels.labels.rows(), data.rows);
  data.labels = labels.labels;
  data.label_names = labels.label_names;
}

}  // namespace

void ReadOptions::declare(Options& options) {
  const auto group = options.group("reading the data");
  options.add("format", format, "form of the data, where its name does not tell").choices(kFormats);
  options
      .add("label-code", label_code,
           "what label numbers mean: 01, pm1 (-1/1), pm1-unknown (-1/0/1 = no/unknown/yes), 01-unknown (-1 = "
           "unknown)")
      .choices({"auto", "01", "pm1", "pm1-unknown", "01-unknown"});
  options
      .add("label-file", label_file,
           "labels or their names in a file of their own (Mulan XML, words, a table)")
      .metavar("FILE");
  if (options.find("labels") == nullptr) {  // predict decides labels instead of reading them
    options.add("labels", labels, "of .h5ad and .h5mu: columns of obs, or matrices, that are labels")
        .metavar("[MOD/]obs:COLUMN,...");
    labels_declared = true;
  }
  options.add("label-columns", label_columns, "labels are the last (negative: first) so many columns");
  options.add("class-column", class_column, "the column that holds one class a row (name or number)")
      .metavar("COLUMN");
  options
      .add("views", views,
           "views as column ranges: timbre=0-63,rhythm=64-71; of .h5ad and .h5mu: X,pca=obsm/X_pca")
      .metavar("NAME=A-B,...");
  options.add("id-column", id_column, "the column that holds ids (name or number)").metavar("COLUMN");
  options.add("header", header, "whether CSV and TSV open with column names").choices({"auto", "yes", "no"});
  options.add("empty", empty, "what to do with a row of which some cells are empty")
      .choices({"refuse", "zero", "mean"});
  options.add("columns", columns, "columns of a LIBSVM file (0: the largest that occurs)").range(0, 4e9);
  options.add("transpose", transpose, "items are the columns of the table");
}

FlatTable read_array_table(const std::string& path, const ReadOptions& options) {
  FlatTable table;
  if (path.ends_with(".mat")) {
    auto values = read_mat(path, {options.variable});
    if (values.empty() || !values[0].numeric() || values[0].shape.size() != 2)
      fail(Exit::data, "{}: has no matrix '{}'", path, options.variable);
    table.source_type = values[0].type;
    if (values[0].sparse)
      table.values = *values[0].sparse;
    else
      table.values = values[0].values;
    return table;
  }
  Array array;
  if (path.ends_with(".npz")) {
    const auto arrays = read_npz(path);
    const Array* found = find_array(arrays, options.variable);
    if (found == nullptr) fail(Exit::data, "{}: has no array '{}'", path, options.variable);
    array = *found;
  } else {
    array = read_npy(path);
  }
  table.source_type = element_name(array.type);
  table.values = to_floats(array, path);
  return table;
}

FlatTable read_table(const std::string& path, const std::string& given, const ReadOptions& options) {
  const std::string format = given.empty() || given == "auto" ? format_of(path) : given;
  if (format == "csv") return read_csv(path, options);
  if (format == "arff") return read_arff(path, options);
  if (format == "libsvm") return read_libsvm(path, options);
  if (format == "lear") return read_lear(path, options);
  if (format == "mtx") return read_matrix_market(path, options);
  if (format == "clist") return read_topic_lists(path);
  if (format == "npy" || format == "npz" || format == "mat") return read_array_table(path, options);
  fail(Exit::data, "{}: the form '{}' holds no table{}", path, format, did_you_mean(format, kFormats));
}

Dataset read_dataset(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) fail(Exit::data, "{}: there is no such file or folder", path);
  const std::string format = options.format == "auto" ? format_of(path) : options.format;
  const bool folder = fs::is_directory(path, error);
  Dataset data;
  if (format == "native") {
    data = read_toml_dataset(folder ? path + "/dataset.toml" : path, options);
  } else if (folder) {
    data = read_csv_folder(path, options);
  } else if (is_table(format)) {
    FlatTable table = read_table(path, format, options);
    if (options.transpose) table = transposed(std::move(table));
    data = assemble(std::move(table), options, path);
    if (options.label_file.empty() || options.label_file.ends_with(".xml")) {
    } else if (data.labels.empty()) {
      read_label_file(options, data);
    } else {
      find_label_names(path, options, data);
    }
  } else {
    data = format == "mat"    ? read_mat_dataset(path, options)
           : format == "h5ad" ? read_h5ad_dataset(path, options)
                              : read_npz_dataset(path, options);
    data.check(path, Dataset::Scan::shapes);  // before rows are looked at
    find_missing_rows(data);
  }
  if (data.name.empty()) data.name = fs::path(path).stem().string();
  if (format != "native")  // a native folder was checked by its own rules
    data.check(path, options.allow_non_finite ? Dataset::Scan::shapes : Dataset::Scan::values);
  return data;
}

void write_dataset(const Dataset& data, const std::string& path) {
  data.check("the data set to be written");  // what is written is marked as checked
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".npz") return write_npz_dataset(data, path);
  if (ending == ".mat") return write_mat_dataset(data, path);
  if (ending == ".h5ad") return write_h5ad_dataset(data, path);
  if (ending == ".h5mu") return write_h5mu_dataset(data, path);
  if (ending == ".csv") return write_csv_folder(data, path);
  static const std::vector<std::string> kForeign = {".npy", ".arff",  ".svm",  ".libsvm", ".mtx",
                                                    ".tsv", ".hvecs", ".fvec", ".toml"};
  if (std::ranges::find(kForeign, ending) != kForeign.end())
    fail(Exit::usage,
         "{}: {} files are only read; write .npz, .mat, .h5mu, .csv (a folder) or a native folder", path,
         ending);
  write_native_folder(data, path);
}

}  // namespace lacuna
