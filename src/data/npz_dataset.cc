// .npz as a data set: every two-dimensional array of numbers is a view named by its key, except
//   label (n, c)                             1, 0, NaN = unknown
//   G (n, c), W (n, m)                       1 = known, 1 = present
//   ids (n), label_names (c)
//   view_names (m)                           where a key cannot be the name
//   V.columns (d)                            column names of view V
//   V.data, V.indices, V.indptr, V.shape     a sparse view V; the parts are named as in SciPy's csr_matrix
//   name, source, licence                    one text each
//   difficult                                ignored: the cells that Pascal VOC leaves open
// A single .npy is a data set with one view.
#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/labels.h"
#include "data/names.h"
#include "data/npy.h"

namespace lacuna {
namespace {

constexpr const char* kReserved[] = {"label", "labels",      "W",          "G",
                                     "ids",   "label_names", "view_names", "difficult"};

bool reserved(const std::string& name) {
  return std::ranges::any_of(kReserved, [&](const char* r) { return name == r; });
}

// A key that is written and read back as the same view name.
bool plain_key(const std::string& name) {
  return !reserved(name) && !name.ends_with(".data") && name != "name" && name != "source" &&
         name != "licence" && name.size() < 1000;
}

Csr read_csr(std::span<const Array> arrays, const std::string& name, const std::string& where) {
  const auto part = [&](const char* suffix) -> const Array& {
    const Array* array = find_array(arrays, name + suffix);
    if (array == nullptr || array->shape.size() != 1)
      fail(Exit::data, "{}: sparse view '{}' lacks the vector '{}{}'", where, name, name, suffix);
    return *array;
  };
  const auto shape = to_integers<std::uint64_t>(part(".shape"), where);
  if (shape.rows() != 2)
    fail(Exit::data, "{}: '{}.shape' has {} values, expected 2", where, name, shape.rows());
  Csr csr;
  csr.columns = shape(1, 0);
  if (csr.columns > UINT32_MAX)
    fail(Exit::data, "{}: sparse view '{}' has {} columns", where, name, csr.columns);
  csr.start = as_row(to_integers<std::uint64_t>(part(".indptr"), where));
  csr.index = as_row(to_integers<std::uint32_t>(part(".indices"), where));
  const Table<float> values = to_floats(part(".data"), where);
  csr.value = Table<float>(std::make_shared<Table<float>>(values), {values.view().data, 1, values.rows()});
  if (csr.start.cols() != shape(0, 0) + 1)
    fail(Exit::data, "{}: sparse view '{}' has {} rows but {} row starts", where, name, shape(0, 0),
         csr.start.cols());
  return csr;
}

std::string single_text(std::span<const Array> arrays, const char* key) {
  const Array* array = find_array(arrays, key);
  return array != nullptr && array->type == Element::text && array->text.size() == 1 ? array->text[0] : "";
}

std::vector<std::string> texts(const Array& array, const std::string& where) {
  if (array.type == Element::text) return array.text;
  std::vector<std::string> names;  // ids are often numbers
  const auto numbers = to_integers<std::uint64_t>(array, where);
  for (auto number : numbers.values()) names.push_back(std::to_string(number));
  return names;
}

// The arrays that nothing is made of, as "'time' (60 values of float32)". Views are still called as their keys.
std::vector<std::string> unread(std::span<const Array> arrays, const Dataset& data) {
  std::unordered_set<std::string> read(std::begin(kReserved), std::end(kReserved));
  read.insert({"name", "source", "licence"});
  for (const View& view : data.views)
    for (const char* part : {"", ".columns", ".data", ".indices", ".indptr", ".shape"}) read.insert(view.name + part);
  std::vector<std::string> names;
  for (const Array& array : arrays)
    if (!read.contains(array.name))
      names.push_back(fmt::format("'{}' ({} of {})", array.name, shape_text(array.shape), element_name(array.type)));
  return names;
}

}  // namespace

Dataset read_npz_dataset(const std::string& path, const ReadOptions& options) {
  std::vector<Array> arrays;
  const bool single = path.ends_with(".npy");
  if (single) {
    arrays.push_back(read_npy(path));
    arrays[0].name = std::filesystem::path(path).stem().string();
    if (arrays[0].shape.size() == 1) arrays[0].shape.push_back(1);
  } else {
    arrays = read_npz(path);
  }
  Dataset data;
  for (auto& array : arrays) {
    const std::string where = fmt::format("{}[{}]", path, array.name);
    if (!single && reserved(array.name)) {
      if (array.name == "difficult") data.notes.push_back("the array 'difficult' is ignored");
      continue;
    }
    View view;
    view.name = array.name;
    if (array.name.ends_with(".data") && array.shape.size() == 1) {
      view.name.resize(view.name.size() - 5);
      view.features = read_csr(arrays, view.name, path);
    } else if (array.type != Element::text && array.shape.size() == 2) {
      view.features = to_floats(array, where);
    } else {
      continue;
    }
    view.source_type = element_name(array.type);
    if (const Array* names = find_array(arrays, view.name + ".columns"))
      view.column_names = texts(*names, path);
    data.rows = view.rows();
    data.views.push_back(std::move(view));
    array.owner.reset();  // a view that was converted lets its source go
    array.bytes = {};
  }
  constexpr std::size_t kShown = 6;
  const std::vector<std::string> left = unread(arrays, data);
  if (!left.empty() && !data.views.empty())
    data.notes.push_back(fmt::format("not read: {} (views have two dimensions; ids are called 'ids', names of labels "
                                     "'label_names', names of columns 'VIEW.columns')",
                                     some(left, kShown)));
  if (const Array* names = find_array(arrays, "view_names")) {
    const std::vector<std::string> all = texts(*names, path);
    if (all.size() != data.views.size())
      fail(Exit::data, "{}: {} view names for {} views", path, all.size(), data.views.size());
    for (std::size_t v = 0; v < data.views.size(); ++v) data.views[v].name = all[v];
  }
  const Array* label = single ? nullptr : find_array(arrays, "label");
  const Array* labels = single ? nullptr : find_array(arrays, "labels");
  if (label != nullptr && labels != nullptr)
    data.notes.push_back("labels are taken from the array 'label'; 'labels' is ignored");
  if (label == nullptr) label = labels;
  if (label == nullptr && data.views.empty())
    fail(Exit::data, "{}: has neither a view (rows x columns of numbers) nor 'label'; its arrays: {}", path,
         some(left, kShown));
  if (label != nullptr) {
    if (label->shape.size() != 2)
      fail(Exit::data, "{}: '{}' has shape {}, expected rows x labels{}", path, label->name,
           shape_text(label->shape),
           label->shape.size() == 1 ? "; write a single label as rows x 1, a class per row as one column per class"
                                    : "");
    data.labels = decode_labels(to_floats(*label, path), options.label_code, path);
    if (data.views.empty()) data.rows = data.labels.rows();
    data.label_names = numbered_names("label", data.labels.cols());
  }
  if (const Array* names = find_array(arrays, "label_names")) data.label_names = texts(*names, path);
  if (const Array* known = find_array(arrays, "G"))
    hide_unknown(to_integers<std::uint8_t>(*known, path), data, path);
  if (const Array* present = find_array(arrays, "W"))
    data.present = to_integers<std::uint8_t>(*present, path);
  if (const Array* ids = find_array(arrays, "ids")) data.ids = texts(*ids, path);
  data.name = single_text(arrays, "name");
  data.source = single_text(arrays, "source");
  data.licence = single_text(arrays, "licence");
  if (!single && label != nullptr && find_array(arrays, "label_names") == nullptr)
    find_label_names(path, options, data);
  return data;
}

void write_npz_dataset(const Dataset& data, const std::string& path) {
  std::vector<Array> arrays;
  std::vector<std::shared_ptr<const void>> keep;  // what the arrays borrow
  const auto hold = [&](auto table) {
    auto kept = std::make_shared<decltype(table)>(std::move(table));
    keep.push_back(kept);
    return kept->view();
  };
  const auto vector = [](Array array) {
    array.shape = {array.count()};
    return array;
  };
  const bool renamed = !std::ranges::all_of(data.views, [](const View& v) { return plain_key(v.name); });
  std::vector<std::string> names;
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const View& view = data.views[v];
    names.push_back(view.name);
    const std::string key = renamed ? fmt::format("view{}", v) : view.name;
    if (const auto* csr = std::get_if<Csr>(&view.features)) {
      Matrix<std::uint64_t> shape(1, 2);
      shape(0, 0) = data.rows;
      shape(0, 1) = csr->columns;
      arrays.push_back(vector(borrow(key + ".data", csr->value.view())));
      arrays.push_back(vector(borrow(key + ".indices", csr->index.view())));
      arrays.push_back(vector(borrow(key + ".indptr", csr->start.view())));
      arrays.push_back(vector(borrow(key + ".shape", hold(Table<std::uint64_t>(std::move(shape))))));
    } else {
      arrays.push_back(borrow(key, hold(without_missing(data, v))));
    }
    if (!view.column_names.empty()) arrays.push_back(text_array(key + ".columns", view.column_names));
  }
  if (renamed) arrays.push_back(text_array("view_names", names));
  if (!data.labels.empty()) {
    if (has_unknown_labels(data)) {
      arrays.push_back(borrow("label", hold(labels_as_floats(data))));
    } else {
      arrays.push_back(borrow("label", data.labels.view()));
    }
    arrays.push_back(text_array("label_names", data.label_names));
  }
  if (!data.present.empty()) arrays.push_back(borrow("W", data.present.view()));
  if (!data.ids.empty()) arrays.push_back(text_array("ids", data.ids));
  for (const auto& [key, value] :
       {std::pair{"name", &data.name}, {"source", &data.source}, {"licence", &data.licence}})
    if (!value->empty()) arrays.push_back(text_value(key, *value));
  write_npz(path, arrays);
}

}  // namespace lacuna
