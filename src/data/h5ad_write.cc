// Data sets as .h5ad (one view) and .h5mu (several): what anndata 0.8 and mudata 0.2 read. Labels are columns
// of obs, booleans if all are known, otherwise booleans with a mask. What these formats cannot express is in
// uns/lacuna.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "data/formats.h"
#include "data/hdf5_write.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr const char* kUserBlock = "MuData (format-version=0.1.0;creator=lacuna)";  // mudata looks for it
constexpr std::uint64_t kBlockSize = 512;

std::vector<std::string> numbers(std::size_t count) {
  return numbered_names("", count);
}

// Names as keys of a group: a name that cannot be one (a slash, a dot) is replaced by STEM and a number.
std::vector<std::string> keys_for(const std::vector<std::string>& names, const std::string& stem) {
  std::set<std::string> taken(names.begin(), names.end());
  std::vector<std::string> keys;
  for (std::size_t j = 0; j < names.size(); ++j) {
    std::string key = names[j];
    if (key.find('/') != std::string::npos || key == "." || key == "_index" || key == "__categories")
      for (std::size_t k = j; !taken.insert(key = stem + std::to_string(k)).second;) k += names.size();
    keys.push_back(std::move(key));
  }
  return keys;
}

class H5adWriter {
 public:
  H5adWriter(const Dataset& data, const AtomicFile& file, const std::string& path, std::uint64_t user_block)
      : data_(data), file_(file.temporary(), path, user_block) {}

  void h5ad() {
    encode("", "anndata", "0.1.0");
    for (std::size_t v = 0; v < data_.views.size(); ++v) matrix("X", data_.views[v]);
    observations("obs");
    frame("var", data_.views.empty() ? std::vector<std::string>() : columns(data_.views[0]));
    end_of("");
    ours();
    file_.close();
  }

  void h5mu() {
    encode("", "MuData", "0.1.0");
    file_.attribute("", "encoder", text_value("", "lacuna"));
    file_.attribute("", "encoder-version", text_value("", LACUNA_VERSION));
    const std::int64_t axis = 0;
    file_.attribute("", "axis", number(axis));
    observations("obs");
    std::vector<std::string> all;
    for (const auto& view : data_.views) {
      const auto names = columns(view);
      all.insert(all.end(), names.begin(), names.end());
    }
    frame("var", all);
    for (const char* group : {"obsm", "obsmap", "varm", "varmap", "obsp", "varp", "uns"}) dict(group);
    file_.group("mod");
    const auto keys = view_keys();
    file_.attribute("mod", "mod-order", text_array("", keys));
    std::size_t first = 0;
    for (std::size_t v = 0; v < data_.views.size(); ++v) {
      modality(v, keys[v]);
      map_columns(keys[v], first, data_.views[v].columns(), all.size());
      first += data_.views[v].columns();
    }
    ours();
    file_.close();
  }

 private:
  template <class T>
  static Array number(const T& value) {
    Array array;
    array.type = Element::i64;
    array.bytes = std::as_bytes(std::span(&value, 1));
    return array;
  }
  template <class T>
  static Array vector(Element type, const std::vector<T>& values) {
    Array array;
    array.type = type;
    array.shape = {values.size()};
    array.bytes = std::as_bytes(std::span(values));
    return array;
  }

  void encode(const std::string& at, const char* type, const char* version) {
    file_.attribute(at, "encoding-type", text_value("", type));
    file_.attribute(at, "encoding-version", text_value("", version));
  }
  void array(const std::string& at, const Array& values) {
    file_.dataset(at, values);
    const bool single = values.shape.empty();
    encode(at, values.type == Element::text ? (single ? "string" : "string-array") : "array", "0.2.0");
  }
  void dict(const std::string& at) {
    file_.group(at);
    encode(at, "dict", "0.1.0");
  }
  // The groups that AnnData objects have and data sets do not fill.
  void end_of(const std::string& at) {
    for (const char* group : {"obsm", "varm", "obsp", "varp", "layers", "uns"}) dict(at + group);
  }

  std::vector<std::string> columns(const View& view) const {
    return view.column_names.empty() ? numbers(view.columns()) : view.column_names;
  }
  std::vector<std::string> ids() const { return data_.ids.empty() ? numbers(data_.rows) : data_.ids; }
  std::vector<std::string> view_keys() const {
    std::vector<std::string> names;
    for (const auto& view : data_.views) names.push_back(view.name);
    return keys_for(names, "view");
  }

  void frame(const std::string& at, std::vector<std::string> names,
             const std::vector<std::string>& order = {}) {
    file_.group(at);
    encode(at, "dataframe", "0.2.0");
    file_.attribute(at, "_index", text_value("", "_index"));
    file_.attribute(at, "column-order", text_array("", order));
    array(at + "/_index", text_array("", std::move(names)));
  }

  void observations(const std::string& at) {
    const auto keys = keys_for(data_.label_names, "label");
    frame(at, ids(), keys);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      std::vector<std::uint8_t> values(data_.rows), mask(data_.rows);
      bool unknown = false;
      for (std::size_t i = 0; i < data_.rows; ++i) {
        values[i] = data_.labels(i, j) == 1 ? 1 : 0;
        mask[i] = data_.labels(i, j) == kUnknown ? 1 : 0;
        unknown = unknown || mask[i] != 0;
      }
      const std::string column = at + "/" + keys[j];
      if (!unknown) {
        array(column, vector(Element::boolean, values));
        continue;
      }
      file_.group(column);
      encode(column, "nullable-boolean", "0.1.0");
      array(column + "/values", vector(Element::boolean, values));
      array(column + "/mask", vector(Element::boolean, mask));
    }
  }

  void matrix(const std::string& at, const View& view) {
    if (const auto* dense = std::get_if<Table<float>>(&view.features)) {
      Matrix<float> copy;
      MatrixView<const float> values = *dense;
      if (values.stride != values.cols) {
        copy = Matrix<float>(values.rows, values.cols);
        copy.copy_from(values);
        values = std::as_const(copy).view();
      }
      return array(at, borrow("", values));
    }
    const Csr& csr = std::get<Csr>(view.features);
    file_.group(at);
    encode(at, "csr_matrix", "0.1.0");
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(view.rows()),
                                             static_cast<std::int64_t>(view.columns())};
    file_.attribute(at, "shape", vector(Element::i64, shape));
    const auto flat = [](Array parts) {
      parts.shape = {parts.count()};
      return parts;
    };
    Array values = flat(borrow("", csr.value.view())), index = flat(borrow("", csr.index.view())),
          start = flat(borrow("", csr.start.view()));
    file_.dataset(at + "/data", values);
    if (csr.value.cols() <= INT32_MAX && csr.columns <= INT32_MAX) {  // as SciPy likes them: both of 32 bits
      std::vector<std::int32_t> short_start(csr.start.cols());
      std::ranges::transform(csr.start.row(0), short_start.begin(),
                             [](std::uint64_t x) { return static_cast<std::int32_t>(x); });
      index.type = Element::i32;
      file_.dataset(at + "/indices", index);
      file_.dataset(at + "/indptr", vector(Element::i32, short_start));
      return;
    }
    std::vector<std::int64_t> wide(csr.index.row(0).begin(), csr.index.row(0).end());
    file_.dataset(at + "/indices", vector(Element::i64, wide));
    start.type = Element::i64;
    file_.dataset(at + "/indptr", start);
  }

  // The observations that have the view, and where they lie among all of them.
  void modality(std::size_t v, const std::string& key) {
    const View& view = data_.views[v];
    std::vector<std::int64_t> rows;
    std::vector<std::uint8_t> mask(data_.rows);
    std::vector<std::uint32_t> map(data_.rows);
    std::vector<std::string> names;
    const auto all = ids();
    for (std::size_t i = 0; i < data_.rows; ++i) {
      if (!data_.has(i, v)) continue;
      rows.push_back(static_cast<std::int64_t>(i));
      names.push_back(all[i]);
      mask[i] = 1;
      map[i] = static_cast<std::uint32_t>(rows.size());  // from 1 on; 0 = not there
    }
    array("obsm/" + key, vector(Element::boolean, mask));
    array("obsmap/" + key, vector(Element::u32, map));
    const std::string at = "mod/" + key;
    file_.group(at);
    encode(at, "anndata", "0.1.0");
    if (rows.size() == data_.rows) {
      matrix(at + "/X", view);
    } else {
      matrix(at + "/X", View{"", gather_rows(view, rows), {}, ""});
    }
    frame(at + "/obs", std::move(names));
    frame(at + "/var", columns(view));
    end_of(at + "/");
  }

  void map_columns(const std::string& key, std::size_t first, std::size_t count, std::size_t all) {
    std::vector<std::uint8_t> mask(all);
    std::vector<std::uint32_t> map(all);
    for (std::size_t j = 0; j < count; ++j) {
      mask[first + j] = 1;
      map[first + j] = static_cast<std::uint32_t>(j + 1);
    }
    array("varm/" + key, vector(Element::boolean, mask));
    array("varmap/" + key, vector(Element::u32, map));
  }

  void ours() {
    dict("uns/lacuna");
    std::vector<std::string> names;
    for (const auto& view : data_.views) names.push_back(view.name);
    array("uns/lacuna/view_names", text_array("", names));
    if (!data_.label_names.empty()) {
      array("uns/lacuna/labels", text_array("", keys_for(data_.label_names, "label")));
      array("uns/lacuna/label_names", text_array("", data_.label_names));
    }
    for (const auto& [key, text] :
         {std::pair{"name", &data_.name}, {"source", &data_.source}, {"licence", &data_.licence}})
      if (!text->empty()) array(fmt::format("uns/lacuna/{}", key), text_value("", *text));
  }

  const Dataset& data_;
  Hdf5Writer file_;
};

}  // namespace

void write_h5ad_dataset(const Dataset& data, const std::string& path) {
  if (data.views.size() > 1)
    fail(Exit::usage, "{}: .h5ad contains one view, the data set has {}; write .h5mu", path, data.views.size());
  for (std::size_t i = 0; i < data.rows && !data.views.empty(); ++i)
    if (!data.has(i, 0))
      fail(Exit::usage, "{}: item {} lacks the view '{}', and .h5ad has a row for every item; write .h5mu",
           path, i, data.views[0].name);
  AtomicFile file(path);
  H5adWriter(data, file, path, 0).h5ad();
  file.reopen();
  file.commit();
}

void write_h5mu_dataset(const Dataset& data, const std::string& path) {
  AtomicFile file(path);
  H5adWriter(data, file, path, kBlockSize).h5mu();
  file.reopen();
  file.write(kUserBlock);  // at its front
  file.commit();
}

}  // namespace lacuna
