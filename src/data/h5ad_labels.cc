#include "data/h5ad_labels.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "data/labels.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr std::size_t kMostClasses = 1000;  // a column with more values is a measurement, not a label

// 1 and 0 for words that say yes and no, otherwise -1.
int yes_or_no(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::string_view kYes[] = {"yes", "true", "1"}, kNo[] = {"no", "false", "0"};
  if (std::ranges::find(kYes, text) != std::end(kYes)) return 1;
  return std::ranges::find(kNo, text) != std::end(kNo) ? 0 : -1;
}

LabelBlock one_label(const std::string& name, std::size_t rows) {
  return {{utf8_or_latin1(name)}, Matrix<std::int8_t>(rows, 1)};
}

LabelBlock one_each(const std::string& name, const std::vector<std::string>& values,
                    const std::vector<std::int32_t>& codes, bool prefixed) {
  LabelBlock block{{}, Matrix<std::int8_t>(codes.size(), values.size())};
  for (const auto& value : values)
    block.names.push_back(prefixed ? fmt::format("{}={}", utf8_or_latin1(name), value) : value);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::ranges::fill(block.values.row(i), codes[i] < 0 ? kUnknown : std::int8_t{0});
    if (codes[i] >= 0) block.values(i, static_cast<std::size_t>(codes[i])) = 1;
  }
  return block;
}

LabelBlock from_categories(const FrameColumn& column, const std::string& name, bool prefixed,
                           const std::string& where) {
  const auto& categories = column.categories;
  if (categories.empty()) fail(Exit::data, "{}: every value is missing", where);
  if (std::ranges::all_of(categories, [](const auto& text) { return yes_or_no(text) >= 0; })) {
    LabelBlock block = one_label(name, column.rows());
    for (std::size_t i = 0; i < column.rows(); ++i)
      block.values(i, 0) =
          column.codes[i] < 0
              ? kUnknown
              : static_cast<std::int8_t>(yes_or_no(categories[static_cast<std::size_t>(column.codes[i])]));
    return block;
  }
  if (categories.size() > kMostClasses)
    fail(Exit::data, "{}: has {} different values; at most {} become labels", where, categories.size(),
         kMostClasses);
  return one_each(name, categories, column.codes, prefixed);
}

// Whole numbers other than label codes are classes, in rising order.
LabelBlock from_classes(const FrameColumn& column, const std::string& name, bool prefixed,
                        const std::string& where) {
  std::map<float, std::int32_t> classes;
  for (const float x : column.values) {
    if (std::isnan(x)) continue;
    if (x != std::floor(x) || !std::isfinite(x))
      fail(Exit::data,
           "{}: contains {}, so it is a measurement; labels are categories, booleans, 0/1 or whole numbers",
           where, x);
    classes.emplace(x, 0);
    if (classes.size() > kMostClasses)
      fail(Exit::data, "{}: has more than {} different numbers, so it is a measurement, not a label", where,
           kMostClasses);
  }
  std::vector<std::string> values;
  for (auto& [number, code] : classes) {
    code = static_cast<std::int32_t>(values.size());
    values.push_back(fmt::format("{}", number));
  }
  std::vector<std::int32_t> codes;
  for (const float x : column.values) codes.push_back(std::isnan(x) ? -1 : classes.at(x));
  return one_each(name, values, codes, prefixed);
}

}  // namespace

LabelBlock labels_of(const FrameColumn& column, const std::string& name, bool prefixed,
                     const std::string& code, const std::string& where) {
  if (column.kind == FrameColumn::Kind::categories) return from_categories(column, name, prefixed, where);
  const bool coded = code != "auto" || std::ranges::all_of(column.values, [](float x) {
                       return std::isnan(x) || x == 0 || x == 1 || x == -1;
                     });
  if (!coded) return from_classes(column, name, prefixed, where);
  LabelBlock block = one_label(name, 0);
  block.values = decode_labels({column.values.data(), column.values.size(), 1}, code, where);
  return block;
}

LabelBlock labels_of(const FileMatrix& matrix, const std::string& name, const std::string& code,
                     const std::string& where) {
  const View view{name, matrix.features, {}};
  Matrix<float> values(view.rows(), view.columns());
  for (std::size_t i = 0; i < values.rows(); ++i) view.copy_row(i, values.row(i));
  LabelBlock block{matrix.column_names, decode_labels(values, code, where)};
  if (block.names.empty()) block.names = numbered_names(utf8_or_latin1(name), values.cols());
  return block;
}

}  // namespace lacuna
