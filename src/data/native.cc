// Writing data sets as folders: the native format (.npy files that are memory-mapped when read) and CSV.
#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/folder.h"
#include "data/formats.h"
#include "data/id_columns.h"
#include "data/names.h"
#include "data/native_toml.h"
#include "data/native_writer.h"

namespace lacuna {
namespace {

// A CSV cell, quoted where it must be.
std::string cell(const std::string& text) {
  const bool plain = text.find_first_of(",;\t\"\r\n") == std::string::npos &&
                     trim(text).size() == text.size() && !text.empty();
  if (plain) return text;
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

void write_lines(const std::string& path, const std::vector<std::string>& names) {
  AtomicFile file(path);
  for (const auto& name : names) file.write(cell(name) + "\n");
  file.commit();
}

// A column called like ids would be taken for them, or refused beside them: then all names stand in a file of their own.
bool names_stand_apart(const std::vector<std::string>& names, const std::vector<std::string>& keys) {
  for (std::size_t j = 0; j < names.size(); ++j)
    if (may_hold_ids(names[j], keys.empty() ? j : j + 1)) return true;
  return false;
}

void write_csv_view(const Dataset& data, std::size_t v, const std::vector<std::string>& keys, bool header,
                    const std::string& path) {
  const View& view = data.views[v];
  const auto& table = std::get<Table<float>>(view.features);
  AtomicFile file(path);
  std::string line;
  if (header) {
    line = keys.empty() ? "" : "id";
    for (std::size_t j = 0; j < view.column_names.size(); ++j)
      line += (line.empty() && j == 0 ? "" : ",") + cell(view.column_names[j]);
    file.write(line + "\n");
  }
  for (std::size_t i = 0; i < data.rows; ++i) {
    if (!data.has(i, v)) continue;
    line = keys.empty() ? "" : cell(keys[i]);
    for (std::size_t j = 0; j < table.cols(); ++j) {
      if (j > 0 || !keys.empty()) line += ',';
      line += fmt::format("{}", table(i, j));
    }
    file.write(line + "\n");
  }
  file.commit();
}

// Sparse views go to Matrix Market files: a CSV of mostly zeros would be useless.
void write_matrix_market(const Dataset& data, std::size_t v, const std::string& path) {
  const Csr& csr = std::get<Csr>(data.views[v].features);
  std::size_t rows = 0, count = 0;
  for (std::size_t i = 0; i < data.rows; ++i)
    if (data.has(i, v)) {
      ++rows;
      count += csr.start(0, i + 1) - csr.start(0, i);
    }
  AtomicFile file(path);
  file.write(
      fmt::format("%%MatrixMarket matrix coordinate real general\n{} {} {}\n", rows, csr.columns, count));
  std::size_t row = 0;
  for (std::size_t i = 0; i < data.rows; ++i) {
    if (!data.has(i, v)) continue;
    ++row;
    for (std::uint64_t k = csr.start(0, i); k < csr.start(0, i + 1); ++k)
      file.write(fmt::format("{} {} {}\n", row, csr.index(0, k) + 1, csr.value(0, k)));
  }
  file.commit();
}

void write_csv_labels(const Dataset& data, const std::vector<std::string>& keys, bool header,
                      const std::string& path) {
  AtomicFile file(path);
  std::string line = keys.empty() ? "" : "id";
  for (std::size_t j = 0; j < data.label_count(); ++j)
    line += (j == 0 && keys.empty() ? "" : ",") + cell(data.label_names[j]);
  if (header) file.write(line + "\n");
  for (std::size_t i = 0; i < data.rows; ++i) {
    line = keys.empty() ? "" : cell(keys[i]);
    for (std::size_t j = 0; j < data.label_count(); ++j) {
      if (j > 0 || !keys.empty()) line += ',';
      const std::int8_t y = data.labels(i, j);
      line += y == kUnknown ? "?" : y == 1 ? "1" : "0";
    }
    file.write(line + "\n");
  }
  file.commit();
}

// By its name where the table has names: another column may be called "0".
std::string id_column(bool header) {
  return fmt::format("id_column = \"{}\"\n", header ? "id" : "0");
}

}  // namespace

void write_native_folder(const Dataset& data, const std::string& path) {
  NativeWriter writer(path);
  writer.append(data, path);
  writer.commit();
}

void write_csv_folder(const Dataset& data, const std::string& path) {
  AtomicFolder folder(path);
  std::string toml = toml_top(data);
  // Rows are joined by id; without ids but with gaps, by their numbers.
  std::vector<std::string> keys = data.ids;
  if (keys.empty() && !data.present.empty()) {
    keys = numbered_names("", data.rows);
    toml += fmt::format("row_numbers = {}\n", data.rows);
  } else if (!keys.empty()) {
    write_lines(folder.file("ids.csv"), keys);
    toml += "ids = \"ids.csv\"\n";
  }
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const View& view = data.views[v];
    const std::string stem = fmt::format("view{}", v);
    std::vector<std::string> here;
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (data.has(i, v)) here.push_back(keys[i]);
    if (!keys.empty() && here.empty()) {  // a view that no item has: only its width is kept
      fail(Exit::data, "{}: no item has the view '{}'; CSV cannot hold such a view", path, view.name);
    }
    toml += fmt::format("\n[[views]]\nname = {}\n", toml_text(view.name));
    if (view.sparse()) {
      write_matrix_market(data, v, folder.file(stem + ".mtx"));
      toml += fmt::format("file = \"{}.mtx\"\n", stem);
      if (!keys.empty()) {
        write_lines(folder.file(stem + ".ids.csv"), here);
        toml += fmt::format("ids = \"{}.ids.csv\"\n", stem);
      }
      if (!view.column_names.empty()) {
        write_lines(folder.file(stem + ".columns.csv"), view.column_names);
        toml += fmt::format("columns = \"{}.columns.csv\"\n", stem);
      }
    } else {
      const bool apart = names_stand_apart(view.column_names, keys),
                 header = !view.column_names.empty() && !apart;
      write_csv_view(data, v, keys, header, folder.file(stem + ".csv"));
      toml += fmt::format("file = \"{}.csv\"\nheader = {}\n", stem, header);
      if (!keys.empty()) toml += id_column(header);
      if (apart) {
        write_lines(folder.file(stem + ".columns.csv"), view.column_names);
        toml += fmt::format("columns = \"{}.columns.csv\"\n", stem);
      }
    }
  }
  if (!data.labels.empty()) {
    const bool apart = names_stand_apart(data.label_names, keys);
    write_csv_labels(data, keys, !apart, folder.file("labels.csv"));
    toml += fmt::format("\n[labels]\nfile = \"labels.csv\"\nheader = {}\ncode = \"01\"\n", !apart);
    if (!keys.empty()) toml += id_column(!apart);
    if (apart) {
      write_lines(folder.file("label_names.csv"), data.label_names);
      toml += "names = \"label_names.csv\"\n";
    }
  }
  folder.commit(toml);
}

}  // namespace lacuna
