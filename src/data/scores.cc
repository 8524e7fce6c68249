#include "data/scores.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/flat_table.h"
#include "data/npy.h"

namespace lacuna {
namespace {

Table<float> matrix_of(const Array& array, const std::string& path) {
  if (array.type == Element::text || array.shape.size() != 2)
    fail(Exit::data, "{}: scores are a matrix of rows x labels, this is {} of {}", path,
         shape_text(array.shape), element_name(array.type));
  return to_floats(array, path);
}

Scores read_npz_scores(const std::string& path) {
  const auto arrays = read_npz(path);
  const Array* values = find_array(arrays, "scores");
  std::size_t matrices = 0;
  if (values == nullptr)
    for (const auto& array : arrays)
      if (array.type != Element::text && array.shape.size() == 2) ++matrices, values = &array;
  if (values == nullptr || matrices > 1)
    fail(Exit::data, "{}: has no array 'scores' and {} other matrices; name the right one 'scores'", path,
         matrices);
  Scores scores;
  scores.values = matrix_of(*values, path);
  if (const Array* ids = find_array(arrays, "ids"); ids != nullptr) scores.ids = ids->text;
  if (const Array* names = find_array(arrays, "label_names"); names != nullptr)
    scores.label_names = names->text;
  return scores;
}

// What predict writes for people to read has no score for every label.
void refuse_tags(const std::string& path) {
  const auto file = MappedFile::open(path);
  const std::string_view text = file->text();
  std::string header(text.substr(0, text.find_first_of("\r\n")));
  std::ranges::replace(header, '\t', ',');
  if (header.starts_with("id,labels,scores") || header.starts_with("id,rank,label"))
    fail(Exit::data,
         "{}: contains the tags of each item ('{}'), not a score for every label; evaluate reads what predict "
         "writes without --top, --labels and --format long",
         path, header);
}

Scores read_csv_scores(const std::string& path) {
  refuse_tags(path);
  FlatTable table = read_csv(path, {});
  Scores scores;
  scores.values = std::get<Table<float>>(table.values);
  scores.ids = std::move(table.ids);
  scores.label_names = std::move(table.value_names);
  return scores;
}

}  // namespace

Scores read_scores(const std::string& path) {
  if (path.ends_with(".npy")) return {matrix_of(read_npy(path), path), {}, {}};
  if (path.ends_with(".npz")) return read_npz_scores(path);
  if (path.ends_with(".csv") || path.ends_with(".tsv")) return read_csv_scores(path);
  fail(Exit::usage, "{}: scores are read from .npy, .npz, .csv or .tsv", path);
}

}  // namespace lacuna
