// dataset.toml: a data set as a folder. The native format (.npy files, memory-mapped) and foreign files, one per
// view, joined by id, are the same schema; docs/dataset-toml.md explains every key.
#include <toml++/toml.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/arrays.h"
#include "data/formats.h"
#include "data/join.h"
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
      fail(Exit::data, "{}: line {}: '{}' is neither a string nor a list of strings", where_,
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

const std::vector<std::string> kTableKeys = {"name",      "file",    "format",    "variable",
                                             "transpose", "header",  "id_column", "ids",
                                             "use",       "columns", "empty",     "ignore"};

class TomlReader {
 public:
  TomlReader(std::string path, const ReadOptions& options)
      : path_(std::move(path)), options_(options), join_(path_, false) {}

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
    find_folder(keys);
    if (const toml::node* views = keys.node("views")) {
      if (!views->is_array_of_tables())
        fail(Exit::data, "{}: 'views' is not a list of tables; write [[views]]", path_);
      for (const auto& view : *views->as_array()) read_view(*view.as_table());
    }
    if (const toml::node* labels = keys.node("labels")) {
      if (!labels->is_table()) fail(Exit::data, "{}: 'labels' is not a table; write [labels]", path_);
      read_labels(*labels->as_table());
    }
    std::optional<std::uint64_t> numbers;
    if (const auto n = keys.get<std::int64_t>("row_numbers", -1); n >= 0)
      numbers = static_cast<std::uint64_t>(n);
    Dataset data = join_.finish(
        keys.has("ids") && !numbers ? read_names(file(keys.text("ids"))) : std::vector<std::string>(),
        numbers);
    data.name = keys.text("name");
    data.source = keys.text("source");
    data.licence = keys.text("licence");
    if (keys.has("present")) data.present = read_present(file(keys.text("present")));
    if (const auto rows = keys.get<std::int64_t>("rows", -1);
        rows >= 0 && static_cast<std::uint64_t>(rows) != data.rows)
      fail(Exit::data, "{}: says {} rows, the files have {}", path_, rows, data.rows);
    data.check(path_, Dataset::Scan::shapes);  // before rows are looked at
    if (keys.get<bool>("checked", false) && join_.arrays_only()) return data;
    find_missing_rows(data);
    if (!options_.allow_non_finite) data.check(path_, Dataset::Scan::values);
    return data;
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

  TableSpec spec(const Keys& keys) const {
    TableSpec spec;
    spec.name = keys.text("name");
    for (const auto& name : keys.texts("file")) spec.files.push_back(file(name));
    spec.transpose = keys.get<bool>("transpose", false);
    if (keys.has("ids")) spec.ids_file = file(keys.text("ids"));
    if (keys.has("columns")) spec.columns_file = file(keys.text("columns"));
    spec.use = keys.text("use");
    ReadOptions& read = spec.read;
    read.format = keys.has("format") ? keys.text("format") : "auto";
    read.variable = keys.text("variable");
    read.id_column = keys.text("id_column");
    read.ignore_columns = keys.texts("ignore");
    read.empty = keys.has("empty") ? keys.text("empty") : options_.empty;
    read.transpose = spec.transpose;
    read.lists = false;
    if (keys.has("header")) read.header = keys.get<bool>("header", true) ? "yes" : "no";
    return spec;
  }

  void read_view(const toml::table& table) {
    const Keys keys(table, path_, with(kTableKeys, {"type", "values", "index", "start", "width"}));
    const TableSpec view_spec = spec(keys);
    if (view_spec.name.empty())
      fail(Exit::data, "{}: line {}: a view has no name", path_, table.source().begin.line);
    if (!keys.has("values")) {
      join_.add_view(view_spec);
      if (keys.has("type")) join_.last_view().source_type = keys.text("type");
      return;
    }
    Csr csr;
    csr.start = mapped<std::uint64_t>(keys.text("start"), Element::u64);
    csr.index = mapped<std::uint32_t>(keys.text("index"), Element::u32);
    csr.value = mapped<float>(keys.text("values"), Element::f32);
    const auto width = keys.get<std::int64_t>("width", 0);
    if (width <= 0 || width > UINT32_MAX)
      fail(Exit::data, "{}: view '{}' has width {}", path_, view_spec.name, width);
    csr.columns = static_cast<std::size_t>(width);
    if (csr.start.cols() == 0) fail(Exit::data, "{}: view '{}' has no row starts", path_, view_spec.name);
    View view{view_spec.name, std::move(csr), {}, keys.has("type") ? keys.text("type") : "float32"};
    check_sparse(view, path_);  // before rows are joined
    if (!view_spec.columns_file.empty()) view.column_names = read_names(view_spec.columns_file);
    join_.add_view(std::move(view),
                   view_spec.ids_file.empty() ? std::vector<std::string>() : read_names(view_spec.ids_file));
  }

  void read_labels(const toml::table& table) {
    const Keys keys(table, path_, with(kTableKeys, {"class", "tags", "code", "blank_means", "names"}));
    TableSpec labels = spec(keys);
    labels.read.label_code = keys.has("code") ? keys.text("code") : options_.label_code;
    labels.read.blank_means = keys.has("blank_means") ? keys.text("blank_means") : options_.blank_means;
    labels.read.tags_column = keys.text("tags");
    labels.read.labels_table = true;
    if (const toml::node* column = keys.node("class")) {
      const auto number = column->value_exact<std::int64_t>();
      labels.read.class_column = number ? std::to_string(*number) : keys.text("class");
    }
    join_.add_labels(labels, keys.has("names") ? file(keys.text("names")) : "");
  }

  template <class T>
  Table<T> mapped(const std::string& name, Element type) const {
    const std::string where = file(name);
    const Array array = read_npy(where);
    if (array.type != type || array.shape.size() != 1)
      fail(Exit::data, "{}: contains {} of {}, expected a vector of {}", where, element_name(array.type),
           shape_text(array.shape), element_name(type));
    return {array.owner, {reinterpret_cast<const T*>(array.bytes.data()), 1, array.rows()}};
  }

  Table<std::uint8_t> read_present(const std::string& where) const {
    const Array array = read_npy(where);
    if (array.type != Element::u8 || array.shape.size() != 2 || array.column_major)
      fail(Exit::data, "{}: contains {} of {}, expected rows x views of uint8", where, element_name(array.type),
           shape_text(array.shape));
    return {array.owner,
            {reinterpret_cast<const std::uint8_t*>(array.bytes.data()), array.rows(), array.cols()}};
  }

  std::string path_;
  const ReadOptions& options_;
  fs::path folder_;
  Join join_;
};

}  // namespace

Dataset read_toml_dataset(const std::string& path, const ReadOptions& options) {
  return TomlReader(path, options).read(read_text(path, std::size_t{1} << 26));
}

}  // namespace lacuna
