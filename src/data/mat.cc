#include "data/mat.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "data/mat5.h"

namespace lacuna {

std::vector<MatValue> read_mat(const std::string& path, const std::vector<std::string>& names) {
  const auto file = MappedFile::open(path);
  const auto text = file->text();
  if (text.size() < mat5::kFileHeader)
    fail(Exit::data, "{}: {} bytes are too few for a MATLAB file", path, text.size());
  const auto order = text.substr(126, 2);
  if (order != "IM" && order != "MI")
    fail(Exit::data,
         "{}: is not a MATLAB file of level 5 or 7.3 (bytes 126 and 127 are not IM or MI); files of level 4 "
         "must be saved again in one of these",
         path);
  const int major = static_cast<unsigned char>(order == "IM" ? text[125] : text[124]);
  if (major == 1) return read_mat5(file, names);
  if (major == 2) return read_mat73(path, names);
  fail(Exit::data, "{}: MATLAB file version {} is unknown (1 = level 5 and 2 = level 7.3 are)", path, major);
}

const MatValue* find_value(std::span<const MatValue> values, const std::string& name) {
  const auto at = std::ranges::find(values, name, &MatValue::name);
  return at == values.end() ? nullptr : &*at;
}

MatValue mat_matrix(std::string name, Table<float> values, std::string type) {
  MatValue value{.name = std::move(name), .type = std::move(type), .shape = {values.rows(), values.cols()}};
  value.values = std::move(values);
  return value;
}

MatValue mat_cell(std::string name, std::vector<MatValue> cells) {
  MatValue value{.name = std::move(name), .type = "cell", .shape = {1, cells.size()}};
  value.cells = std::move(cells);
  return value;
}

MatValue mat_text(std::string name, std::string text) {
  return {.name = std::move(name), .type = "char", .shape = {1, text.size()}, .text = {std::move(text)}};
}

MatValue mat_texts(std::string name, const std::vector<std::string>& texts) {
  std::vector<MatValue> cells;
  for (const auto& text : texts) cells.push_back(mat_text("", text));
  return mat_cell(std::move(name), std::move(cells));
}

}  // namespace lacuna
