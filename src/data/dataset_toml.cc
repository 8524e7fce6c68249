// dataset.toml: a data set as a folder. The native form (.npy files, memory-mapped) and foreign files, one a
// view, joined by id, are the same schema; docs/formats.md explains every key.
#include <toml++/toml.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/arrays.h"
#include "data/flat_table.h"
#include "data/forms.h"
#include "data/labels.h"
#include "data/names.h"
#include "data/npy.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// A table of the file with checked access: a misspelt or mistyped key is an error with its line.
class Keys {
 public:
  Keys(const toml::table& table, std::string where, std::vector<std::string> known)
      : table_(table), where_(std::move(where)), known_(std::move(known)) {
    for (const auto& [key, node] : table_) {
      const std::string name(key.str());
      if (std::ranges::find(known_, name) == known_.end())
        fail(Exit::data, "{}: line {}: there is no key '{}'{}", where_, node.source().begin.line, name,
             did_you_mean(name, known_));
    }
  }
  bool has(const char* key) const { return table_.contains(key); }
  template <class T>
  T get(const char* key, T otherwise) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<T>();
    if (!value)
      fail(Exit::data, "{}: line {}: '{}' has the wrong type", where_, node->source().begin.line, key);
    return *value;
  }
  std::string text(const char* key) const { return get<std::string>(key, ""); }
  // One text or a list of them.
  std::vector<std::string> texts(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (const auto one = node->value_exact<std::string>()) return {*one};
    std::vector<std::string> out;
    if (const toml::array* list = node->as_array())
      for (const auto& item : *list)
        if (const auto one = item.value_exact<std::string>()) out.push_back(*one);
    if (out.empty() || out.size() != node->as_array()->size())
      fail(Exit::data, "{}: line {}: '{}' is neither a text nor a list of texts", where_,
           node->source().begin.line, key);
    return out;
  }
  const toml::node* node(const char* key) const { return table_.get(key); }
  const std::string& where() const { return where_; }

 private:
  const toml::table& table_;
  std::string where_;
  std::vector<std::string> known_;
};

const std::vector<std::string> kTableKeys = {"file",      "format", "variable", "transpose", "header",
                                             "id_column", "ids",    "use",      "columns",   "empty"};

std::vector<std::string> with(std::vector<std::string> keys, std::initializer_list<const char*> more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

// One file's share of the data set: a view or the labels, with the ids of its rows.
struct Part {
  std::string name;
  std::size_t rows = 0;
  std::vector<std::string> ids;  // empty = joined by position
};

class TomlReader {
 public:
  TomlReader(std::string path, const ReadOptions& options) : path_(std::move(path)), options_(options) {}

  Dataset read(const std::string& text) {
    toml::table root;
    try {
      root = toml::parse(text, path_);
    } catch (const toml::parse_error& error) {
      fail(Exit::data, "{}: line {}, column {}: {}", path_, error.source().begin.line,
           error.source().begin.column, std::string(error.description()));
    }
    const Keys keys(root, path_,
                    {"schema", "name", "source", "licence", "folder", "rows", "checked", "ids", "row_numbers",
                     "present", "views", "labels"});
    if (const auto schema = keys.text("schema"); !schema.empty() && schema != kSchema)
      fail(Exit::data, "{}: schema '{}' is unknown; this program reads '{}'", path_, schema, kSchema);
    data_.name = keys.text("name");
    data_.source = keys.text("source");
    data_.licence = keys.text("licence");
    find_folder(keys);
    if (const toml::node* views = keys.node("views")) {
      if (!views->is_array_of_tables())
        fail(Exit::data, "{}: 'views' is no list of tables; write [[views]]", path_);
      for (const auto& view : *views->as_array()) read_view(*view.as_table());
    }
    if (const toml::node* labels = keys.node("labels")) {
      if (!labels->is_table()) fail(Exit::data, "{}: 'labels' is no table; write [labels]", path_);
      read_labels(*labels->as_table());
    }
    join(keys);
    if (keys.has("present")) read_present(file(keys.text("present")));
    if (const auto rows = keys.get<std::int64_t>("rows", -1);
        rows >= 0 && static_cast<std::uint64_t>(rows) != data_.rows)
      fail(Exit::data, "{}: says {} rows, the files have {}", path_, rows, data_.rows);
    const bool trusted = options_.allow_non_finite || (keys.get<bool>("checked", false) && native_);
    data_.check(path_, trusted ? Dataset::Scan::shapes : Dataset::Scan::values);
    return std::move(data_);
  }

 private:
  void find_folder(const Keys& keys) {
    std::string folder = keys.text("folder");
    for (std::size_t at; (at = folder.find("${")) != std::string::npos;) {
      const auto end = folder.find('}', at);
      if (end == std::string::npos) fail(Exit::data, "{}: '{}' has '${{' without '}}'", path_, folder);
      const std::string name = folder.substr(at + 2, end - at - 2);
      const char* value = std::getenv(name.c_str());
      if (value == nullptr || std::string_view(value).find("${") != std::string_view::npos)
        fail(Exit::data,
             "{}: the folder is '{}', but the environment has no {}; set it to where the files lie", path_,
             folder, name);
      folder.replace(at, end + 1 - at, value);
    }
    folder_ = fs::path(path_).parent_path() / folder;
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  ReadOptions table_options(const Keys& keys) const {
    ReadOptions options;
    options.variable = keys.text("variable");
    options.id_column = keys.text("id_column");
    options.empty = keys.has("empty") ? keys.text("empty") : options_.empty;
    options.lists = false;
    if (keys.has("header")) options.header = keys.get<bool>("header", true) ? "yes" : "no";
    return options;
  }

  // The files of one part as one table: rows of several files follow each other.
  FlatTable read_files(const Keys& keys, const ReadOptions& options, const std::string& name) const {
    const auto names = keys.texts("file");
    if (names.empty()) fail(Exit::data, "{}: {} names no file", keys.where(), name);
    std::vector<FlatTable> tables;
    for (const auto& one : names) {
      FlatTable table = read_table(file(one), keys.text("format"), options);
      tables.push_back(keys.get<bool>("transpose", false) ? transposed(std::move(table)) : std::move(table));
    }
    FlatTable table = stack(std::move(tables), names);
    if (keys.has("ids")) table.ids = names_file(keys.text("ids"));
    if (!table.ids.empty() && table.ids.size() != table.rows())
      fail(Exit::data, "{}: {} has {} rows but {} ids", keys.where(), name, table.rows(), table.ids.size());
    if (keys.has("columns")) {
      table.value_names = names_file(keys.text("columns"));
      if (table.value_names.size() != table.width())
        fail(Exit::data, "{}: {} has {} columns but {} column names", keys.where(), name, table.width(),
             table.value_names.size());
      table.columns.clear();
      for (std::size_t j = 0; j < table.width(); ++j) table.columns.push_back({table.value_names[j], j, 1});
    }
    return table;
  }

  FlatTable stack(std::vector<FlatTable>&& tables, const std::vector<std::string>& names) const {
    if (tables.size() == 1) return std::move(tables[0]);
    FlatTable out;
    out.columns = tables[0].columns;
    out.value_names = tables[0].value_names;
    out.source_type = tables[0].source_type;
    std::size_t rows = 0;
    for (std::size_t k = 0; k < tables.size(); ++k) {
      if (tables[k].width() != tables[0].width() || !std::holds_alternative<Table<float>>(tables[k].values))
        fail(Exit::data, "{}: {} has {} columns, {} has {}; dense tables of one width can follow each other",
             path_, names[k], tables[k].width(), names[0], tables[0].width());
      rows += tables[k].rows();
    }
    Matrix<float> values(rows, tables[0].width());
    std::size_t i = 0;
    for (auto& table : tables) {
      const auto& from = std::get<Table<float>>(table.values);
      for (std::size_t r = 0; r < from.rows(); ++r, ++i)
        std::ranges::copy(from.row(r), values.row(i).begin());
      out.ids.insert(out.ids.end(), table.ids.begin(), table.ids.end());
      out.classes.insert(out.classes.end(), table.classes.begin(), table.classes.end());
    }
    out.values = std::move(values);
    return out;
  }

  std::vector<std::string> names_file(const std::string& name) const {
    const std::string where = file(name);
    if (!name.ends_with(".npy")) return read_lines(where);
    const Array array = read_npy(where);
    if (array.type != Element::text)
      fail(Exit::data, "{}: holds {}, expected texts", where, element_name(array.type));
    return array.text;
  }

  void read_view(const toml::table& table) {
    const Keys keys(table, path_, with(kTableKeys, {"name", "type", "values", "index", "start", "width"}));
    View view;
    Part part;
    part.name = keys.text("name");
    if (part.name.empty())
      fail(Exit::data, "{}: line {}: a view has no name", path_, table.source().begin.line);
    std::vector<std::uint8_t> present;
    if (keys.has("values")) {
      Csr csr;
      csr.start = mapped<std::uint64_t>(keys.text("start"), Element::u64);
      csr.index = mapped<std::uint32_t>(keys.text("index"), Element::u32);
      csr.value = mapped<float>(keys.text("values"), Element::f32);
      const auto width = keys.get<std::int64_t>("width", 0);
      if (width <= 0 || width > UINT32_MAX)
        fail(Exit::data, "{}: view '{}' has width {}", path_, part.name, width);
      csr.columns = static_cast<std::size_t>(width);
      if (csr.start.cols() == 0) fail(Exit::data, "{}: view '{}' has no row starts", path_, part.name);
      part.rows = csr.start.cols() - 1;
      view.features = std::move(csr);
      view.name = part.name;
      check_sparse(view, path_);  // before rows are joined
      if (keys.has("columns")) view.column_names = names_file(keys.text("columns"));
      if (keys.has("ids")) part.ids = names_file(keys.text("ids"));
    } else {
      const ReadOptions options = table_options(keys);
      FlatTable flat = read_files(keys, options, fmt::format("view '{}'", part.name));
      native_ = native_ && keys.texts("file")[0].ends_with(".npy") && flat.source_type == "float32";
      part.rows = flat.rows();
      part.ids = std::move(flat.ids);
      std::vector<std::size_t> columns(flat.column_count());
      std::iota(columns.begin(), columns.end(), std::size_t{0});
      if (keys.has("use"))
        columns =
            parse_ranges(keys.text("use"), columns.size(), fmt::format("{}: view '{}'", path_, part.name));
      view = take_view(flat, columns);
      if (flat.source_type == "text") {
        view.name = part.name;
        present = settle_empty_cells(view, options.empty, keys.texts("file")[0]);
      }
    }
    view.name = part.name;
    if (keys.has("type")) view.source_type = keys.text("type");
    present_.push_back(std::move(present));
    parts_.push_back(std::move(part));
    data_.views.push_back(std::move(view));
  }

  void read_labels(const toml::table& table) {
    const Keys keys(table, path_, with(kTableKeys, {"class", "code", "names"}));
    ReadOptions options = table_options(keys);
    options.label_code = keys.has("code") ? keys.text("code") : options_.label_code;
    if (const toml::node* column = keys.node("class")) {
      const auto number = column->value_exact<std::int64_t>();
      options.class_column = number ? std::to_string(*number) : keys.text("class");
    }
    Part part;
    part.name = "labels";
    const auto files = keys.texts("file");
    if (files.size() == 1 && files[0].ends_with(".npy") && options.label_code == "01-unknown") {
      Array array = read_npy(file(files[0]));  // as we write it: used as it lies
      if (array.type == Element::i8 && array.shape.size() == 2 && !array.column_major) {
        data_.labels = {
            array.owner,
            {reinterpret_cast<const std::int8_t*>(array.bytes.data()), array.rows(), array.cols()}};
        data_.label_names = numbered_names("label", array.cols());
      }
    }
    if (data_.labels.empty()) {
      FlatTable flat = read_files(keys, options, "[labels]");
      part.ids = std::move(flat.ids);
      if (flat.labels.empty() && flat.classes.empty()) {
        flat.label_columns.resize(flat.column_count());
        std::iota(flat.label_columns.begin(), flat.label_columns.end(), std::size_t{0});
        if (keys.has("use"))
          flat.label_columns = parse_ranges(keys.text("use"), flat.column_count(), path_ + ": [labels]");
        if (flat.label_columns.empty()) fail(Exit::data, "{}: [labels] has no columns", path_);
      }
      take_labels(flat, options, path_, data_);
    }
    part.rows = data_.labels.rows();
    if (keys.has("names")) {
      auto names = names_file(keys.text("names"));
      if (names.size() != data_.labels.cols())
        fail(Exit::data, "{}: {} label names for {} labels", path_, names.size(), data_.labels.cols());
      data_.label_names = std::move(names);
    }
    parts_.push_back(std::move(part));
  }

  template <class T>
  Table<T> mapped(const std::string& name, Element type) const {
    const std::string where = file(name);
    const Array array = read_npy(where);
    if (array.type != type || array.shape.size() != 1)
      fail(Exit::data, "{}: holds {} of {}, expected a vector of {}", where, element_name(array.type),
           shape_text(array.shape), element_name(type));
    return {array.owner, {reinterpret_cast<const T*>(array.bytes.data()), 1, array.rows()}};
  }

  void read_present(const std::string& where) {
    const Array array = read_npy(where);
    if (array.type != Element::u8 || array.shape.size() != 2 || array.column_major)
      fail(Exit::data, "{}: holds {} of {}, expected rows x views of uint8", where, element_name(array.type),
           shape_text(array.shape));
    data_.present = {array.owner,
                     {reinterpret_cast<const std::uint8_t*>(array.bytes.data()), array.rows(), array.cols()}};
  }

  // Lays the parts side by side: by id where they have ids, by position where none has.
  void join(const Keys& keys) {
    std::vector<std::string> order;
    const auto numbers = keys.get<std::int64_t>("row_numbers", -1);
    if (numbers >= 0) {
      std::uint64_t rows = 0;
      for (const auto& part : parts_) rows += part.rows;
      check_backed(static_cast<std::uint64_t>(numbers), rows, "rows", path_);
      order = numbered_names("", static_cast<std::size_t>(numbers));
    } else if (keys.has("ids")) {
      order = names_file(keys.text("ids"));
    }
    const bool any_ids = std::ranges::any_of(parts_, [](const Part& p) { return !p.ids.empty(); });
    std::unordered_map<std::string_view, std::uint32_t> place;
    if (any_ids && order.empty()) {
      std::unordered_map<std::string_view, bool> seen;
      for (const auto& part : parts_)
        for (const auto& id : part.ids)
          if (seen.emplace(id, true).second) order.push_back(id);
    }
    data_.rows = !order.empty() ? order.size() : parts_.empty() ? 0 : parts_[0].rows;
    for (std::size_t i = 0; i < order.size(); ++i)
      if (!place.emplace(order[i], static_cast<std::uint32_t>(i)).second)
        fail(Exit::data, "{}: the id '{}' comes twice", path_, order[i]);
    bool gaps =
        std::ranges::any_of(present_, [](const auto& p) { return std::ranges::find(p, 0) != p.end(); });
    std::vector<std::vector<std::int64_t>> rows(parts_.size());  // of each item in each part; -1 = not there
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const Part& part = parts_[k];
      if (part.ids.empty()) {
        if (any_ids && order.size() != part.rows)
          fail(Exit::data,
               "{}: '{}' has {} rows and no ids, so it cannot be joined with the others ({} items)", path_,
               part.name, part.rows, order.size());
        if (part.rows != data_.rows)
          fail(Exit::data, "{}: '{}' has {} rows, '{}' has {}", path_, part.name, part.rows, parts_[0].name,
               data_.rows);
        continue;  // as it lies
      }
      rows[k].assign(data_.rows, -1);
      for (std::size_t i = 0; i < part.ids.size(); ++i) {
        const auto at = place.find(part.ids[i]);
        if (at == place.end())
          fail(Exit::data, "{}: the id '{}' of '{}' is not in the list of ids", path_, part.ids[i],
               part.name);
        if (rows[k][at->second] >= 0)
          fail(Exit::data, "{}: the id '{}' comes twice in '{}'", path_, part.ids[i], part.name);
        rows[k][at->second] = static_cast<std::int64_t>(i);
      }
      bool same = part.rows == data_.rows;
      for (std::size_t i = 0; i < data_.rows && same; ++i) same = rows[k][i] == static_cast<std::int64_t>(i);
      if (same) rows[k].clear();
    }
    const std::size_t m = data_.views.size();
    for (std::size_t v = 0; v < m; ++v) {
      gaps = gaps || std::ranges::find(rows[v], -1) != rows[v].end();
      if (!rows[v].empty()) data_.views[v].features = gather_rows(data_.views[v], rows[v]);
    }
    if (gaps) {
      Matrix<std::uint8_t> W(data_.rows, m);
      for (std::size_t v = 0; v < m; ++v)
        for (std::size_t i = 0; i < data_.rows; ++i) {
          const std::int64_t row = rows[v].empty() ? static_cast<std::int64_t>(i) : rows[v][i];
          W(i, v) =
              row >= 0 && (present_[v].empty() || present_[v][static_cast<std::size_t>(row)] != 0) ? 1 : 0;
        }
      data_.present = std::move(W);
    }
    if (!data_.labels.empty() && !rows.back().empty()) {
      Matrix<std::int8_t> labels(data_.rows, data_.labels.cols());
      for (std::size_t i = 0; i < data_.rows; ++i) {
        const std::int64_t row = rows.back()[i];
        if (row < 0)
          std::ranges::fill(labels.row(i), kUnknown);
        else
          std::ranges::copy(data_.labels.row(static_cast<std::size_t>(row)), labels.row(i).begin());
      }
      data_.labels = std::move(labels);
    }
    if (numbers < 0) data_.ids = std::move(order);
  }

  std::string path_;
  const ReadOptions& options_;
  fs::path folder_;
  Dataset data_;
  std::vector<Part> parts_;                         // the views, then the labels
  std::vector<std::vector<std::uint8_t>> present_;  // of each view's own rows; empty = all
  bool native_ = true;                              // every view is an array that can be used as it lies
};

}  // namespace

Dataset read_toml_text(const std::string& text, const std::string& path, const ReadOptions& options) {
  return TomlReader(path, options).read(text);
}

Dataset read_toml_dataset(const std::string& path, const ReadOptions& options) {
  return read_toml_text(read_text(path, std::size_t{1} << 26), path, options);
}

}  // namespace lacuna
