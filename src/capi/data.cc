// Data sets from the caller's memory, from files and from the simulator.
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/threads.h"
#include "capi/handles.h"
#include "data/names.h"
#include "data/readers.h"
#include "data/simulate.h"

namespace lacuna::capi {
namespace {

constexpr std::size_t kRowGrain = 64;

// Memory of the caller: it lives long enough by contract.
template <class T>
Table<T> borrowed(const T* values, std::size_t rows, std::size_t columns, std::size_t stride) {
  return Table<T>(nullptr, MatrixView<const T>(values, rows, columns, stride));
}
template <class T>
Table<T> borrowed_row(const T* values, std::size_t count) {
  return borrowed(values, 1, count, count);
}

// A NaN in the first column is the sign to look at the whole row: most rows cost one look.
template <class T>
std::vector<std::uint8_t> presence(MatrixView<const T> values, const std::uint8_t* given) {
  std::vector<std::uint8_t> present(values.rows, 1);
  parallel_for(values.rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (given != nullptr) present[i] = given[i];
      if (present[i] == 1 && all_nan(values.row(i))) present[i] = 0;
    }
  });
  return present;
}

// Missing rows become zeros, which are never read.
Matrix<float> converted(MatrixView<const double> values, const std::vector<std::uint8_t>& present,
                        const std::string& view) {
  Matrix<float> result(values.rows, values.cols);
  parallel_for(values.rows, kRowGrain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; present[i] != 0 && j < values.cols; ++j) {
        result(i, j) = static_cast<float>(values(i, j));
        if (!std::isfinite(result(i, j)) && std::isfinite(values(i, j)))
          fail(Exit::data, "view '{}', row {}, column {}: {} is beyond the range of float32", view, i, j,
               values(i, j));
      }
  });
  return result;
}

// Adds a checked view; the mask W of all views is only made once some instance is missing.
void add(Dataset& set, View view, const std::vector<std::uint8_t>& present) {
  const bool gaps =
      std::find_if(present.begin(), present.end(), [](auto p) { return p != 1; }) != present.end();
  if (set.view_index(view.name) < set.views.size())
    fail(Exit::data, "there are two views called '{}'", view.name);
  const auto column = [&](std::size_t count) {
    Matrix<std::uint8_t> table(set.rows, count);
    for (std::size_t i = 0; i < set.rows; ++i) {
      for (std::size_t v = 0; v + 1 < count; ++v) table(i, v) = set.has(i, v) ? 1 : 0;
      table(i, count - 1) = present[i];
    }
    return table;
  };
  Dataset alone;
  alone.rows = set.rows;
  alone.views.push_back(view);
  if (gaps) alone.present = column(1);
  alone.check(set.name);
  Table<std::uint8_t> all =
      gaps || !set.present.empty() ? column(set.views.size() + 1) : Matrix<std::uint8_t>();
  set.views.push_back(std::move(view));
  set.present = std::move(all);
}

const View& view_at(const lacuna_data* data, std::size_t view) {
  const Dataset& set = need(data, "data").set;
  if (view >= set.views.size())
    fail(Exit::usage, "there is no view {}: the data set has {} (from 0)", view, set.views.size());
  return set.views[view];
}

}  // namespace
}  // namespace lacuna::capi

using namespace lacuna;
using capi::guarded;
using capi::need;

lacuna_status lacuna_data_new(size_t rows, lacuna_data** data, lacuna_error** error) {
  return guarded(error, [&] {
    need(data, "data") = nullptr;
    if (rows == 0) fail(Exit::data, "the data set has no rows");
    if (rows > std::numeric_limits<std::uint32_t>::max())
      fail(Exit::data, "the data set has {} rows, at most {} are supported", rows,
           std::numeric_limits<std::uint32_t>::max());
    auto fresh = std::make_unique<lacuna_data>();
    fresh->set.name = "data";
    fresh->set.rows = rows;
    *data = fresh.release();
  });
}

void lacuna_data_free(lacuna_data* data) {
  delete data;
}

lacuna_status lacuna_data_add_dense(lacuna_data* data, const char* name, lacuna_type type, const void* values,
                                    size_t columns, size_t stride, const uint8_t* present,
                                    lacuna_error** error) {
  return guarded(error, [&] {
    Dataset& set = need(data, "data").set;
    View view;
    view.name = capi::text_of(name, "name");
    need(static_cast<const char*>(values), "values");
    if (columns == 0) fail(Exit::data, "view '{}' has no columns", view.name);
    if (stride < columns)
      fail(Exit::usage, "view '{}': the stride of {} is less than the {} columns", view.name, stride,
           columns);
    if (std::size_t bytes = 0; __builtin_mul_overflow(stride, sizeof(double), &bytes) ||
                               __builtin_mul_overflow(bytes, set.rows, &bytes))
      fail(Exit::data, "view '{}': {} rows of {} values are more than any memory", view.name, set.rows,
           stride);
    std::vector<std::uint8_t> has;
    if (type == LACUNA_F32) {
      const auto* floats = static_cast<const float*>(values);
      view.features = capi::borrowed(floats, set.rows, columns, stride);
      has = capi::presence(MatrixView<const float>(floats, set.rows, columns, stride), present);
    } else if (type == LACUNA_F64) {
      const MatrixView<const double> doubles(static_cast<const double*>(values), set.rows, columns, stride);
      has = capi::presence(doubles, present);
      view.features = Table<float>(capi::converted(doubles, has, view.name));
      view.source_type = "float64";
    } else {
      fail(Exit::usage, "view '{}': there is no element type {}", view.name, static_cast<int>(type));
    }
    capi::add(set, std::move(view), has);
  });
}

lacuna_status lacuna_data_add_csr(lacuna_data* data, const char* name, const uint64_t* start,
                                  const uint32_t* index, const float* value, size_t columns,
                                  const uint8_t* present, lacuna_error** error) {
  return guarded(error, [&] {
    Dataset& set = need(data, "data").set;
    View view;
    view.name = capi::text_of(name, "name");
    need(start, "start");
    const std::size_t count = start[set.rows];
    if (count > 0) need(index, "index"), need(value, "value");
    view.features = Csr{capi::borrowed_row(start, set.rows + 1), capi::borrowed_row(index, count),
                        capi::borrowed_row(value, count), columns};
    std::vector<std::uint8_t> has(set.rows, 1);
    if (present != nullptr) has.assign(present, present + set.rows);
    capi::add(set, std::move(view), has);
  });
}

lacuna_status lacuna_data_set_columns(lacuna_data* data, size_t view, const char* const* names,
                                      lacuna_error** error) {
  return guarded(error, [&] {
    const std::size_t columns = capi::view_at(data, view).columns();
    Dataset alone;  // the names are checked without the values
    alone.rows = 1;
    View& named = alone.views.emplace_back();
    named.name = data->set.views[view].name;
    named.features = Table<float>(Matrix<float>(1, columns));
    named.column_names = capi::texts_of(names, columns, "names");
    alone.check(data->set.name);
    data->set.views[view].column_names = std::move(named.column_names);
  });
}

lacuna_status lacuna_data_set_labels(lacuna_data* data, const int8_t* labels, size_t count,
                                     const char* const* names, lacuna_error** error) {
  return guarded(error, [&] {
    Dataset& set = need(data, "data").set;
    need(labels, "labels");
    if (count == 0) fail(Exit::data, "there are no labels");
    Dataset alone;
    alone.rows = set.rows;
    alone.labels = capi::borrowed(labels, set.rows, count, count);
    alone.label_names =
        names == nullptr ? numbered_names("label", count) : capi::texts_of(names, count, "names");
    alone.check(set.name);
    set.labels = std::move(alone.labels);
    set.label_names = std::move(alone.label_names);
  });
}

lacuna_status lacuna_data_set_name(lacuna_data* data, const char* name, lacuna_error** error) {
  return guarded(error, [&] { need(data, "data").set.name = capi::text_of(name, "name"); });
}

lacuna_status lacuna_data_set_ids(lacuna_data* data, const char* const* ids, lacuna_error** error) {
  return guarded(error, [&] {
    Dataset& set = need(data, "data").set;
    Dataset changed = set;  // shares its tables
    changed.ids = capi::texts_of(ids, set.rows, "ids");
    if (changed.views.empty() && changed.labels.empty())
      fail(Exit::usage, "ids come after the first view or the labels");
    changed.check(set.name, Dataset::Scan::shapes);
    set = std::move(changed);
  });
}

lacuna_status lacuna_data_read(const char* path, const lacuna_setting* settings, size_t count,
                               lacuna_data** data, lacuna_error** error) {
  return guarded(error, [&] {
    need(data, "data") = nullptr;
    const auto read = capi::from_settings<ReadOptions>(settings, count, "reading");
    *data = new lacuna_data{read_dataset(capi::text_of(path, "path"), read)};
  });
}

lacuna_status lacuna_data_write(const lacuna_data* data, const char* path, lacuna_error** error) {
  return guarded(error, [&] {
    const Dataset& set = need(data, "data").set;
    set.check(set.name, Dataset::Scan::shapes);
    write_dataset(set, capi::text_of(path, "path"));
  });
}

lacuna_status lacuna_data_simulate(const lacuna_setting* settings, size_t count, lacuna_data** data,
                                   lacuna_error** error) {
  return guarded(error, [&] {
    need(data, "data") = nullptr;
    *data = new lacuna_data{
        simulate(capi::from_settings<SimulateOptions>(settings, count, "the simulator")).data};
  });
}

lacuna_status lacuna_data_describe(const lacuna_data* data, char** json, lacuna_error** error) {
  return guarded(error, [&] {
    need(json, "json") = nullptr;
    const Dataset& set = need(data, "data").set;
    nlohmann::json views = nlohmann::json::array();
    for (const View& view : set.views) {
      const auto* csr = std::get_if<Csr>(&view.features);
      views.push_back({{"name", view.name},
                       {"columns", view.columns()},
                       {"sparse", view.sparse()},
                       {"stored", csr != nullptr ? csr->value.cols() : view.columns() * set.rows},
                       {"column_names", view.column_names}});
    }
    *json = capi::copied(nlohmann::json{{"name", set.name},
                                        {"rows", set.rows},
                                        {"views", views},
                                        {"labels", set.label_names},
                                        {"ids", set.ids},
                                        {"notes", set.notes}});
  });
}

lacuna_status lacuna_data_dense(const lacuna_data* data, size_t view, const float** values, size_t* stride,
                                lacuna_error** error) {
  return guarded(error, [&] {
    need(values, "values") = nullptr;
    need(stride, "stride") = 0;
    if (const auto* table = std::get_if<Table<float>>(&capi::view_at(data, view).features)) {
      *values = table->view().data;
      *stride = table->view().stride;
    }
  });
}

lacuna_status lacuna_data_csr(const lacuna_data* data, size_t view, const uint64_t** start,
                              const uint32_t** index, const float** value, lacuna_error** error) {
  return guarded(error, [&] {
    need(start, "start") = nullptr;
    need(index, "index") = nullptr;
    need(value, "value") = nullptr;
    if (const auto* csr = std::get_if<Csr>(&capi::view_at(data, view).features)) {
      *start = csr->start.view().data;
      *index = csr->index.view().data;
      *value = csr->value.view().data;
    }
  });
}

const uint8_t* lacuna_data_present(const lacuna_data* data) {
  return data == nullptr ? nullptr : data->set.present.view().data;
}
const int8_t* lacuna_data_labels(const lacuna_data* data) {
  return data == nullptr ? nullptr : data->set.labels.view().data;
}
