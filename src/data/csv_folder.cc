// A folder of CSV and TSV files without a dataset.toml: labels.csv contains the labels, every other file is a view,
// named after the file. Nothing says how they belong together, so likely mistakes are refused (data/join.h: wary).
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "data/formats.h"
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
  std::vector<std::string> views, labels, notes;
};

Files list_files(const std::string& path, const ReadOptions& options) {
  Files files;
  std::vector<std::string> all, unread;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string(), name = entry.path().filename().string(),
                      ending = ending_of(file);
    if (name.starts_with(".")) continue;
    if ((ending == ".csv" || ending == ".tsv") && entry.is_regular_file())
      all.push_back(file);
    else if (options.label_file.empty() || !same_file(file, options.label_file))
      unread.push_back(name + (entry.is_directory() ? "/" : ""));
  }
  std::ranges::sort(all);
  std::ranges::sort(unread);
  if (all.empty())
    fail(Exit::data, "{}: has neither a dataset.toml nor CSV or TSV files{}", path,
         unread.empty() ? "" : fmt::format("; it has {}", some(unread, 6)));
  if (!unread.empty())
    files.notes.push_back(fmt::format(
        "warning: not read: {}; a table is a file .csv, .tsv, .csv.gz or .tsv.gz", some(unread, 6)));
  for (const auto& file : all) {
    const bool chosen = !options.label_file.empty() && same_file(file, options.label_file);
    if (!options.label_file.empty() && !chosen && is_labels(file))
      files.notes.push_back(
          fmt::format("{} is ignored: --label-file names another", fs::path(file).filename().string()));
    else
      (chosen || is_labels(file) ? files.labels : files.views).push_back(file);
  }
  if (!options.label_file.empty()) files.labels = {options.label_file};
  if (files.labels.size() > 1)
    fail(Exit::data, "{}: {} and {} both hold labels; keep one, or name it with --label-file", path,
         files.labels[0], files.labels[1]);
  return files;
}

// --ignore-columns NAME is meant for every table that has the column, TABLE:NAME for one.
std::vector<std::string> ignored_of(const std::string& table, const Files& files,
                                    const std::vector<std::string>& columns) {
  std::vector<std::string> own;
  for (const auto& column : columns) {
    const auto colon = column.find(':');
    const auto names_table = [&](const std::string& file) {
      return stem_of(file) == column.substr(0, colon);
    };
    const bool one = colon != std::string::npos && (std::ranges::any_of(files.views, names_table) ||
                                                    std::ranges::any_of(files.labels, names_table));
    if (!one)
      own.push_back(column);
    else if (column.substr(0, colon) == table)
      own.push_back(column.substr(colon + 1));
  }
  return own;
}

// --views NAME,...: only these, in this order.
void choose_views(const std::vector<std::string>& wanted, const std::string& path,
                  std::vector<std::string>& files) {
  if (wanted.empty()) return;
  std::vector<std::string> names, chosen;
  for (const auto& file : files) names.push_back(stem_of(file));
  for (const auto& name : wanted) {
    if (const auto equals = name.find('='); equals != std::string::npos)
      fail(Exit::usage,
           "{}: --views '{}': ranges of columns are for a single table; in a folder every file is a view "
           "({})",
           path, name, join(names, ", "));
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
  std::vector<std::string> ignored;  // columns to ignore, as each table knows them
  const auto table_of = [&](const std::string& file) {
    TableSpec table;
    table.name = stem_of(file);
    table.files = {file};
    table.read.id_column = options.id_column;
    table.read.header = options.header;
    table.read.empty = options.empty;
    table.read.ignore_columns = ignored_of(table.name, files, options.ignore_columns);
    ignored.insert(ignored.end(), table.read.ignore_columns.begin(), table.read.ignore_columns.end());
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
    fail(Exit::usage,
         "{}: has no labels.csv that --label-columns, --class-column, --tags-column or --blank-means could "
         "apply to; name the file with labels by --label-file",
         path);
  for (const auto& column : ignored)
    if (std::ranges::find(join.ignored(), column) == join.ignored().end())
      fail(Exit::usage, "{}: --ignore-columns: no table has a column '{}'", path, column);
  if (!options.id_column.empty() && !join.id_column_found() && !(options.transpose && files.labels.empty()))
    fail(Exit::usage, "{}: --id-column: no table has a column '{}'", path, options.id_column);
  Dataset data = join.finish({}, std::nullopt);
  data.notes.insert(data.notes.begin(), files.notes.begin(), files.notes.end());
  return data;
}

}  // namespace lacuna
