#include "data/readers.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/formats.h"
#include "data/ids.h"
#include "data/labels.h"
#include "data/leaks.h"
#include "data/mat.h"
#include "data/names.h"
#include "data/native_writer.h"
#include "data/npy.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kTable = {"label-code", "label-file", "label-columns",
                                         "views",      "empty",      "transpose"};

std::vector<std::string> format_names() {
  std::vector<std::string> names = {"auto"};
  for (const FileFormat& file_format : file_formats()) names.push_back(file_format.name);
  return names;
}

const FileFormat& format_named(const std::string& name) {
  return *std::ranges::find(file_formats(), name, &FileFormat::name);
}

const FileFormat& format_of(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return format_named(fs::exists(path + "/dataset.toml", error) ? "native" : "csv");
  const std::string ending = ending_of(path);
  for (const FileFormat& file_format : file_formats())
    if (std::ranges::find(file_format.endings, ending) != file_format.endings.end()) return file_format;
  auto names = format_names();
  names.erase(names.begin());
  fail(Exit::data, "{}: the format cannot be inferred from the extension '{}'; use --format ({})", path,
       ending, join(names, ", "));
}

const FileFormat& format_of(const std::string& path, const std::string& format) {
  if (format.empty() || format == "auto") return format_of(path);
  if (std::ranges::find(file_formats(), format, &FileFormat::name) == file_formats().end())
    fail(Exit::data, "{}: the format '{}' is unknown{}", path, format, did_you_mean(format, format_names()));
  return format_named(format);
}

// What was asked for and means nothing here would be a silent mistake.
void refuse_idle(const FileFormat& file_format, const ReadOptions& options, const std::string& path) {
  ReadOptions given = options;
  Options ours;
  given.declare(ours);
  static const std::vector<std::string> defaults = [] {
    ReadOptions plain;
    Options declared;
    plain.declare(declared);
    std::vector<std::string> texts;
    for (const Option& option : declared.all()) texts.push_back(option.text());
    return texts;
  }();
  for (std::size_t k = 0; k < ours.all().size(); ++k) {
    const Option& option = ours.all()[k];
    if (option.name == "format" || option.text() == defaults[k]) continue;
    if (std::ranges::find(file_format.options, option.name) == file_format.options.end())
      fail(Exit::usage, "{}: --{} has no effect on the format {}; omit it", path, option.name,
           file_format.name);
  }
}

// A table of labels beside the table of features; what else --label-file may name are lists of names.
bool names_table(const std::string& label_file) {
  return !label_file.empty() && !label_file.ends_with(".txt") && !label_file.ends_with(".xml");
}

// A file of labels: their values, and the ids of its rows if it is a table that has some.
struct LabelFile {
  std::string path;
  FlatTable table;
  Dataset labels;
  const std::vector<std::string>& ids() const { return table.ids; }
};

// A table, or a text with one class per line.
LabelFile open_label_file(const ReadOptions& options, std::vector<std::string>& notes) {
  LabelFile file{options.label_file, {}, {}};
  if (!names_table(file.path)) {
    one_hot_labels(read_lines(file.path), file.labels);
    notes.insert(notes.end(), file.labels.notes.begin(), file.labels.notes.end());
    return file;
  }
  ReadOptions plain;
  plain.label_code = options.label_code;
  plain.blank_means = options.blank_means;
  plain.label_columns = options.label_columns;
  plain.class_column = options.class_column;
  plain.tags_column = options.tags_column;
  plain.id_column = options.id_column;
  plain.several_tables = true;
  plain.labels_table = true;
  FlatTable& table = file.table;
  table = read_table(file.path, "", plain);
  if (table.labels.empty() && table.classes.empty() && table.tags.empty() && plain.label_columns.empty())
    for (std::size_t c = 0; c < table.column_count(); ++c) table.label_columns.push_back(c);
  take_labels(table, plain, file.path, file.labels);
  for (const auto* some : {&table.notes, &file.labels.notes})
    for (const auto& note : *some) notes.push_back(fmt::format("{}: {}", file.path, note));
  return file;
}

// Ids on one side only, or ids that merely number the rows, do not say which rows belong together.
void refuse_unjoinable(const LabelFile& file, const ReadOptions& options, bool numbered, bool by_number,
                       const std::string& id_name, const Dataset& data) {
  const auto& ids = file.ids();
  if (!ids.empty() && data.ids.empty())
    fail(Exit::data,
         "{}: has ids and the table has none, so that rows cannot be joined; name its column of ids with "
         "--id-column",
         file.path);
  if (ids.empty() && !data.ids.empty() && !numbered && names_table(file.path))
    fail(Exit::data,
         "{}: has no ids and the table has ('{}', ...), so that rows cannot be joined; write the ids into "
         "both{}",
         file.path, data.ids[0],
         options.transpose
             ? ""
             : fmt::format(", or, if their rows come in the same order, leave those of the table out with "
                           "--ignore-columns '{}'",
                           id_name.empty() ? "0" : id_name));
  if ((numbered || file.table.row_numbers) && !by_number && !ids.empty())
    fail(Exit::data,
         "{}: the ids of {} only number the rows, as pandas and R do, and so do not tell which of the {} rows "
         "of labels belongs to which of the {} rows of the table; write a column of ids into both, or, if the "
         "numbers are ids, use --id-column",
         file.path,
         !numbered                ? "the labels"
         : file.table.row_numbers ? "both"
                                  : "the table",
         ids.size(), data.rows);
}

void join_by_position(LabelFile& file, Dataset& data) {
  if (file.labels.labels.rows() != data.rows)
    fail(Exit::data,
         "{}: {} rows of labels, the views have {}, and no ids tell which belong together; write a column "
         "of "
         "ids into both",
         file.path, file.labels.labels.rows(), data.rows);
  data.labels = std::move(file.labels.labels);
  data.notes.push_back(fmt::format("its rows and those of {} are joined by position", file.path));
}

void join_by_id(const LabelFile& file, const std::string& id_name, Dataset& data) {
  const auto& ids = file.ids();
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (!place.emplace(ids[i], i).second) fail(Exit::data, "{}: the id '{}' occurs twice", file.path, ids[i]);
  Matrix<std::int8_t> joined(data.rows, file.labels.labels.cols());
  std::size_t found = 0, lost = data.rows;  // a row without labels
  for (std::size_t i = 0; i < data.rows; ++i) {
    const auto at = place.find(data.ids[i]);
    if (at == place.end()) {
      std::ranges::fill(joined.row(i), kUnknown);
      lost = std::min(lost, i);
    } else {
      std::ranges::copy(file.labels.labels.row(at->second), joined.row(i).begin());
      ++found;
    }
  }
  const std::string partner = lost < data.rows ? likely_partner(data.ids[lost], ids) : "";
  if (found == 0)
    fail(Exit::data, "{}: none of its {} ids ('{}', ...) is an id of the table ('{}', ...){}", file.path,
         ids.size(), ids[0], data.ids[0], partner);
  const std::size_t smaller = std::min(data.rows, ids.size());
  if (constexpr std::size_t kFew = 10; found * kFew < smaller)  // as in a folder of tables
    fail(Exit::data,
         "{}: only {} of its {} ids ('{}', ...) are ids of the table ({}: '{}', ...){}; they do not belong "
         "together, or their ids are written differently",
         file.path, found, ids.size(), ids[0], data.rows, data.ids[0], partner);
  if (id_name != file.table.id_name && !id_name.empty() && !file.table.id_name.empty())
    data.notes.push_back(fmt::format("its ids '{}' and '{}' of {} are compared by their values", id_name,
                                     file.table.id_name, file.path));
  const bool few = 2 * found < smaller;
  data.notes.push_back(fmt::format("{}{} of {} rows have labels in {}, which has {}{}",
                                   few ? "warning: only " : "", found, data.rows, file.path, ids.size(),
                                   found < smaller ? partner : ""));
  data.labels = std::move(joined);
}

// Labels of a table from a file of their own: a matrix of the same rows, or one class per line. `numbered`: the ids of the
// table, which it calls `id_name`, only number its rows.
void read_label_file(const ReadOptions& options, bool numbered, const std::string& id_name, Dataset& data) {
  LabelFile file = open_label_file(options, data.notes);
  if (file.labels.labels.empty())
    fail(Exit::data, "{}: was given as the label file, but has no column besides its {} ids", file.path,
         file.ids().size());
  data.label_names = file.labels.label_names;
  const bool by_number = numbered && file.table.row_numbers && file.ids().size() == data.rows;
  refuse_unjoinable(file, options, numbered, by_number, id_name, data);
  if (file.ids().empty() || by_number)
    join_by_position(file, data);
  else
    join_by_id(file, id_name, data);
}

}  // namespace

// Readers that only the table below calls.
FlatTable read_arff(const std::string& path, const ReadOptions& options);
FlatTable read_libsvm(const std::string& path, const ReadOptions& options);
FlatTable read_lear(const std::string& path, const ReadOptions& options);
FlatTable read_matrix_market(const std::string& path, const ReadOptions& options);
FlatTable read_topic_lists(const std::string& path, const ReadOptions& options);  // .clist: `name: id,id,...`
FlatTable read_array_table(const std::string& path, const ReadOptions& options);  // .npy, or a variable of .npz, .mat

const std::vector<FileFormat>& file_formats() {
  static const std::vector<FileFormat> table = {
      {"native",
       {".toml"},
       nullptr,
       read_toml_dataset,
       write_native_folder,
       {"label-code", "empty", "blank-means"}},
      {"mat", {".mat"}, read_array_table, read_mat_dataset, write_mat_dataset, {"label-code", "label-file"}},
      {"npz", {".npz"}, read_array_table, read_npz_dataset, write_npz_dataset, {"label-code", "label-file"}},
      {"npy", {".npy"}, read_array_table, read_npz_dataset, nullptr, {}},
      {"h5ad", {".h5ad"}, nullptr, read_h5ad_dataset, write_h5ad_dataset, {"labels", "views"}},
      {"h5mu", {".h5mu"}, nullptr, read_h5ad_dataset, write_h5mu_dataset, {"labels", "views"}},
      {"csv",
       {".csv", ".tsv"},
       read_csv,
       nullptr,
       write_csv_folder,
       with(kTable, {"class-column", "tags-column", "blank-means", "ignore-columns", "id-column", "header"})},
      {"arff", {".arff"}, read_arff, nullptr, nullptr, with(kTable, {"id-column"})},
      {"libsvm",
       {".libsvm", ".svm"},
       read_libsvm,
       nullptr,
       nullptr,
       {"label-file", "views", "columns", "empty", "transpose"}},
      {"lear", {".fvec", ".hvecs", ".hvecs32"}, read_lear, nullptr, nullptr, kTable},
      {"mtx", {".mtx"}, read_matrix_market, nullptr, nullptr, kTable},
      {"clist", {".clist"}, read_topic_lists, nullptr, nullptr, {}},
  };
  return table;
}

void ReadOptions::declare(Options& options) {
  const auto group = options.group("reading the data");
  options.add("format", format, "format of the data, if its name does not say").choices(format_names());
  options
      .add("label-code", label_code,
           "meaning of label numbers: 01, pm1 (-1/1), pm1-unknown (-1/0/1 = no/unknown/yes), 01-unknown (-1 = "
           "unknown)")
      .choices({"auto", "01", "pm1", "pm1-unknown", "01-unknown"});
  options
      .add("label-file", label_file,
           "separate file with the labels or their names (Mulan XML, words, a table)")
      .metavar("FILE");
  if (options.find("labels") == nullptr) {  // predict decides labels instead of reading them
    options.add("labels", labels, ".h5ad and .h5mu: columns of obs, or matrices, that are labels")
        .metavar("[MOD/]obs:COLUMN,...");
    labels_declared = true;
  }
  options
      .add("label-columns", label_columns,
           "the columns that are labels, by name; or how many: the last N (-N: the first)")
      .metavar("NAME,...|N");
  options.add("class-column", class_column, "the column with one class per row (name or number)")
      .metavar("COLUMN");
  options
      .add("tags-column", tags_column,
           "the column with a tag list per row: sun;beach (name or number)")
      .metavar("COLUMN");
  options
      .add("blank-means", blank_means,
           "meaning of an empty label cell, or of a tag that is not listed (auto: empty is unknown, not "
           "listed is no)")
      .choices({"auto", "no", "unknown"});
  options
      .add("ignore-columns", ignore_columns,
           "columns of a table to drop (name or number; TABLE:NAME for one table of a folder)")
      .metavar("NAME,...");
  options
      .add("views", views,
           "views as column ranges: timbre=0-63,rhythm=64-71; NAME alone: all columns; for a folder of "
           "tables: those to read; for .h5ad and .h5mu: X,pca=obsm/X_pca (a comma within a name is written "
           "\\,)")
      .metavar("NAME=A-B,...");
  options.add("id-column", id_column, "the column with the ids (name or number)").metavar("COLUMN");
  options.add("header", header, "whether CSV and TSV begin with column names").choices({"auto", "yes", "no"});
  options
      .add("empty", empty, "how to fill single empty cells of a row (mean: of the training rows)")
      .choices({"refuse", "zero", "mean"});
  options.add("columns", columns, "columns of a LIBSVM file (0: the largest that occurs)").range(0, 4e9);
  options.add("transpose", transpose, "items are the columns of the table, not its rows");
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

FlatTable read_table(const std::string& path, const std::string& format, const ReadOptions& options) {
  const FileFormat& file_format = format_of(path, format);
  if (file_format.read_table == nullptr) fail(Exit::data, "{}: the format '{}' has no table", path, file_format.name);
  return file_format.read_table(path, options);
}

Dataset read_dataset(const std::string& path, const ReadOptions& asked) {
  std::error_code error;
  if (!fs::exists(path, error)) fail(Exit::data, "{}: there is no such file or folder", path);
  const FileFormat& file_format = format_of(path, asked.format);
  if (!asked.allow_idle) refuse_idle(file_format, asked, path);
  ReadOptions options = asked;
  if (!options.needs_views) options.empty = "zero";
  if (options.allow_non_finite && options.empty == "refuse") options.empty = "mean";  // cells stay empty
  if (!options.needs_labels) options.label_code = "any";
  const bool folder = fs::is_directory(path, error), native = file_format.read == read_toml_dataset;
  Dataset data;
  if (native) {
    data = file_format.read(folder ? path + "/dataset.toml" : path, options);
  } else if (folder) {
    data = read_csv_folder(path, options);
  } else if (file_format.read != nullptr) {
    data = file_format.read(path, options);
    data.check(path, Dataset::Scan::shapes);  // before rows are looked at
    find_missing_rows(data);
  } else {
    ReadOptions own = options;
    if (names_table(options.label_file)) {
      own.label_columns.clear();
      own.class_column.clear();
      own.tags_column.clear();
    }
    FlatTable table = file_format.read_table(path, own);
    if (table.has_ids && table.id_name != "id")
      table.notes.push_back(table.row_numbers ? fmt::format("its ids are the numbers of its rows")
                            : table.id_name.empty()
                                ? "its unnamed first column contains ids"
                                : fmt::format("its column '{}' contains ids", table.id_name));
    if (options.transpose) table = transposed(std::move(table));
    const bool numbered = table.row_numbers;
    const std::string id_name = table.id_name;
    data = assemble(std::move(table), own, path);
    if (options.label_file.empty() || options.label_file.ends_with(".xml")) {
    } else if (data.labels.empty()) {
      read_label_file(options, numbered, id_name, data);
    } else {
      find_label_names(path, options, data);
    }
  }
  if (data.name.empty()) data.name = stem_of(path);
  data.name = utf8_or_latin1(data.name);  // file systems take any bytes
  if (!native)                            // a native folder was checked by its own rules
    data.check(path, options.allow_non_finite ? Dataset::Scan::shapes : Dataset::Scan::values);
  check_leaks(data, path, file_format.read == nullptr);
  return data;
}

namespace {

// .npx may be a slip of the pen; .5 is part of a name.
bool looks_like_ending(const std::string& ending) {
  return ending.size() > 1 && std::isalpha(static_cast<unsigned char>(ending[1])) != 0;
}

// The format that a path to be written asks for; null: a native folder.
const FileFormat* written_format(const std::string& path) {
  const std::string ending = fs::path(path).extension().string();
  std::vector<std::string> written;
  for (const FileFormat& file_format : file_formats())
    if (file_format.write != nullptr && file_format.name != "native") written.push_back(file_format.endings.front());
  const std::string choice = join(written, ", ") + " or a native folder (a name without extension, or with a final slash)";
  for (const FileFormat& file_format : file_formats()) {
    if (std::ranges::find(file_format.endings, ending) == file_format.endings.end()) continue;
    if (file_format.write == nullptr || ending == ".toml" || ending == ".tsv")
      fail(Exit::usage, "{}: {} files are only read; write {}", path, ending, choice);
    return &file_format;
  }
  std::error_code error;
  if (looks_like_ending(ending) && !fs::is_directory(path, error))
    fail(Exit::usage, "{}: no data set ends with {}; write {}{}", path, ending, choice, did_you_mean(ending, written));
  return nullptr;
}

}  // namespace

bool is_native_folder(const std::string& path) {
  return written_format(path) == nullptr;
}

void write_dataset(const Dataset& data, const std::string& path) {
  if (data.empty_cells)
    fail(Exit::data, "{}: a data set with empty cells is not written; fill them first", path);
  data.check("the data set to be written");  // what is written is marked as checked
  if (const FileFormat* file_format = written_format(path))
    file_format->write(data, path);
  else
    write_native_folder(data, path);
}

}  // namespace lacuna
