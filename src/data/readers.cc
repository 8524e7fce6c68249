#include "data/readers.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "data/forms.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFormats = {"auto", "mat", "npz", "npy"};

std::string format_of(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".mat") return "mat";
  if (ending == ".npz" || ending == ".npy") return ending.substr(1);
  fail(Exit::data, "{}: the form of the data cannot be told from the ending '{}'; say --format", path,
       ending);
}

}  // namespace

void ReadOptions::declare(Options& options) {
  options.add("format", format, "form of the data, where its name does not tell").choices(kFormats);
  options
      .add("label-code", label_code,
           "what label numbers mean: 01, pm1 (-1/1), pm1-unknown (-1/0/1 = no/unknown/yes), 01-unknown (-1 = "
           "unknown)")
      .choices({"auto", "01", "pm1", "pm1-unknown", "01-unknown"});
  options.add("label-file", label_file, "labels or their names in a file of their own (Mulan XML, words)")
      .metavar("FILE");
  options.add("label-columns", label_columns, "labels are the last (negative: first) so many columns");
  options.add("views", views, "views as column ranges: timbre=0-63,rhythm=64-71").metavar("NAME=A-B,...");
  options.add("id-column", id_column, "the column that holds ids in CSV and TSV").metavar("NAME");
}

Dataset read_dataset(const std::string& path, const ReadOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) fail(Exit::data, "{}: there is no such file or folder", path);
  const std::string format = options.format == "auto" ? format_of(path) : options.format;
  Dataset data = format == "mat" ? read_mat_dataset(path, options) : read_npz_dataset(path, options);
  if (data.name.empty()) data.name = fs::path(path).stem().string();
  find_missing_rows(data);
  data.check(path, options.allow_non_finite ? Dataset::Scan::shapes : Dataset::Scan::values);
  return data;
}

void write_dataset(const Dataset& data, const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  if (ending == ".npz") return write_npz_dataset(data, path);
  if (ending == ".mat") return write_mat_dataset(data, path);
  fail(Exit::usage, "{}: data sets are written as .npz or .mat", path);
}

}  // namespace lacuna
