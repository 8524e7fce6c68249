// A folder of CSV and TSV files without a dataset.toml: the names of the files say it all. labels.csv holds the
// labels, every other file is a view. Nobody has said how they belong together, so the join is a wary one.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/forms.h"
#include "data/join.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

bool is_labels(const std::string& file) {
  std::string stem = stem_of(file);
  for (char& c : stem) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return stem == "labels";
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

struct Files {
  std::vector<std::string> views, labels;
};

Files list_files(const std::string& path, const ReadOptions& options) {
  Files files;
  std::vector<std::string> all;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string(), ending = ending_of(file);
    const bool hidden = entry.path().filename().string().starts_with(".");
    if (!hidden && (ending == ".csv" || ending == ".tsv") && entry.is_regular_file()) all.push_back(file);
  }
  std::ranges::sort(all);
  if (all.empty()) fail(Exit::data, "{}: has neither a dataset.toml nor CSV or TSV files", path);
  for (const auto& file : all) {
    const bool labels = options.label_file.empty() ? is_labels(file) : same_file(file, options.label_file);
    (labels ? files.labels : files.views).push_back(file);
  }
  if (!options.label_file.empty()) files.labels = {options.label_file};
  if (files.labels.size() > 1)
    fail(Exit::data, "{}: {} and {} both hold labels; keep one, or name it with --label-file", path, files.labels[0],
         files.labels[1]);
  return files;
}

// --views NAME,...: only these, in this order.
void choose_views(const std::vector<std::string>& wanted, const std::string& path, std::vector<std::string>& files) {
  if (wanted.empty()) return;
  std::vector<std::string> names, chosen;
  for (const auto& file : files) names.push_back(stem_of(file));
  for (const auto& name : wanted) {
    if (const auto equals = name.find('='); equals != std::string::npos)
      fail(Exit::usage, "{}: --views '{}': ranges of columns are for a single table; in a folder every file is a view "
           "({})", path, name, join(names, ", "));
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      fail(Exit::usage, "{}: there is no view '{}'{} (it has {})", path, name, did_you_mean(name, names),
           join(names, ", "));
    chosen.push_back(files[static_cast<std::size_t>(at - names.begin())]);
  }
  files = std::move(chosen);
}

}  // namespace

Dataset read_csv_folder(const std::string& path, const ReadOptions& options) {
  Files files = list_files(path, options);
  choose_views(options.views, path, files.views);
  Join join(path, true);
  const auto table_of = [&](const std::string& file) {
    TableSpec table;
    table.name = stem_of(file);
    table.files = {file};
    table.read.id_column = options.id_column;
    table.read.header = options.header;
    table.read.empty = options.empty;
    table.read.ignore_columns = options.ignore_columns;
    table.read.several_tables = true;
    table.read.lists = false;
    return table;
  };
  for (const auto& file : files.views) {
    TableSpec view = table_of(file);
    view.transpose = view.read.transpose = options.transpose;
    if (options.transpose) view.read.id_column.clear();  // the names of its rows are those of columns
    join.add_view(view);
  }
  for (const auto& file : files.labels) {
    TableSpec labels = table_of(file);
    labels.read.labels_table = true;
    labels.read.label_columns = options.label_columns;
    labels.read.class_column = options.class_column;
    labels.read.tags_column = options.tags_column;
    labels.read.label_code = options.label_code;
    labels.read.blank_means = options.blank_means;
    join.add_labels(labels, "");
  }
  if (files.labels.empty() && (!options.label_columns.empty() || !options.class_column.empty() ||
                               !options.tags_column.empty() || options.blank_means != "auto"))
    fail(Exit::usage, "{}: has no labels.csv that --label-columns, --class-column, --tags-column or --blank-means could "
         "speak of; name the file with labels by --label-file", path);
  for (const auto& column : options.ignore_columns)
    if (std::ranges::find(join.ignored(), column) == join.ignored().end())
      fail(Exit::usage, "{}: --ignore-columns: no table has a column '{}'", path, column);
  return join.finish({}, std::nullopt);
}

}  // namespace lacuna
