#include "data/leaks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "data/release.h"

namespace lacuna {
namespace {

bool has_two_values(const Dataset& data, std::size_t v, std::size_t column) {
  std::vector<float> seen, row(data.views[v].columns());
  for (std::size_t i = 0; i < data.rows && seen.size() < 3; ++i) {
    if (!data.has(i, v)) continue;
    data.views[v].copy_row(i, row);
    if (!std::isnan(row[column]) && std::ranges::find(seen, row[column]) == seen.end())
      seen.push_back(row[column]);
  }
  return seen.size() < 3;
}

void note_twins(Dataset& data) {
  std::map<std::string, std::string> seen;
  std::vector<std::string> twins;
  for (const auto& name : data.label_names) {
    if (const auto [at, fresh] = seen.emplace(folded(name), name); !fresh)
      twins.push_back(fmt::format("'{}' and '{}'", at->second, name));
  }
  if (!twins.empty())
    data.notes.push_back(
        fmt::format("warning: {} differ only in case or blanks; if they mean the same, merge them into one "
                    "label",
                    join(twins, ", ")));
}

float value_at(const View& view, std::size_t i, std::uint32_t column) {
  if (const auto* table = std::get_if<Table<float>>(&view.features)) return (*table)(i, column);
  const Csr& csr = std::get<Csr>(view.features);
  const auto row = csr.index.row(0).subspan(csr.start(0, i), csr.start(0, i + 1) - csr.start(0, i));
  const auto at = std::ranges::lower_bound(row, column);
  if (at == row.end() || *at != column) return 0;
  return csr.value(0, csr.start(0, i) + static_cast<std::size_t>(at - row.begin()));
}

std::vector<std::uint32_t> ones_of_row(const View& view, std::size_t i) {
  std::vector<std::uint32_t> columns;
  if (const auto* table = std::get_if<Table<float>>(&view.features)) {
    for (std::uint32_t j = 0; j < table->cols(); ++j)
      if ((*table)(i, j) == 1) columns.push_back(j);
  } else {
    const Csr& csr = std::get<Csr>(view.features);
    for (std::uint64_t k = csr.start(0, i); k < csr.start(0, i + 1); ++k)
      if (csr.value(0, k) == 1) columns.push_back(csr.index(0, k));
  }
  return columns;
}

// Rows in which a label is known, some of each kind.
struct KnownRows {
  std::vector<std::uint32_t> positive, negative;
};

std::vector<KnownRows> known_rows(const Dataset& data) {
  constexpr std::size_t kMostLabels = 1000, kMostRows = 256;  // of each kind
  std::vector<KnownRows> known(std::min(data.labels.cols(), kMostLabels));
  for (std::size_t i = 0; i < data.labels.rows(); ++i)
    for (std::size_t j = 0; j < known.size(); ++j) {
      if (data.labels(i, j) == kUnknown) continue;
      auto& rows = data.labels(i, j) == 1 ? known[j].positive : known[j].negative;
      if (rows.size() < kMostRows) rows.push_back(static_cast<std::uint32_t>(i));
    }
  return known;
}

// The columns of a view that say what a label says, in enough rows for that not to be chance.
std::vector<std::uint32_t> copies_of_label(const Dataset& data, std::size_t v, const KnownRows& known) {
  constexpr std::size_t kFewestOfAKind = 10, kFewest = 40;
  const View& view = data.views[v];
  std::vector<std::uint32_t> columns;
  std::size_t positives = 0, negatives = 0;
  const auto keep_if = [&](std::uint32_t i, auto&& fits) {
    std::erase_if(columns, [&](std::uint32_t j) { return !fits(value_at(view, i, j)); });
    release_rows(view, i, 1);
    return !columns.empty();
  };
  for (const auto i : known.positive) {
    if (!data.has(i, v)) continue;
    if (positives++ == 0) columns = ones_of_row(view, i);
    if (!keep_if(i, [](float x) { return x == 1; })) return {};
  }
  for (const auto i : known.negative) {
    if (!data.has(i, v)) continue;
    ++negatives;
    if (!keep_if(i, [](float x) { return x == 0 || x == -1; })) return {};
  }
  if (std::min(positives, negatives) < kFewestOfAKind || positives + negatives < kFewest) columns.clear();
  return columns;
}

void note_copies(Dataset& data) {
  if (data.views.empty()) return;
  const std::vector<KnownRows> known = known_rows(data);
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const View& view = data.views[v];
    std::vector<std::string> copies;
    for (std::size_t j = 0; j < known.size(); ++j)
      for (const auto column : copies_of_label(data, v, known[j]))
        copies.push_back(fmt::format("{} (label '{}')",
                                     view.column_names.empty() ? std::to_string(column)
                                                               : "'" + view.column_names[column] + "'",
                                     data.label_names[j]));
    if (!copies.empty())
      data.notes.push_back(
          fmt::format("warning: view '{}' has columns with the values of labels: {}; if they are the labels, a "
                      "model reads the answer: leave them out",
                      view.name, some(copies, 5)));
  }
}

}  // namespace

std::string folded(std::string_view name) {
  std::string low(trim(name));
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low;
}

void check_leaks(Dataset& data, const std::string& where, bool refuse) {
  note_twins(data);
  note_copies(data);
  std::unordered_map<std::string, std::string> labels;  // by their folded names
  for (const auto& name : data.label_names) labels.emplace(folded(name), name);
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    std::vector<std::string> leaks, alike, flags;
    const auto& columns = data.views[v].column_names;
    const std::string& view = data.views[v].name;
    for (std::size_t j = 0; j < columns.size(); ++j) {
      const auto label = labels.find(folded(columns[j]));
      if (label == labels.end()) continue;
      const bool leaks_it = has_two_values(data, v, j);
      if (leaks_it) flags.push_back(view == kSingleView ? columns[j] : view + ":" + columns[j]);
      (leaks_it ? leaks : alike)
          .push_back(columns[j] == label->second
                         ? fmt::format("'{}'", columns[j])
                         : fmt::format("'{}' (as the label '{}')", columns[j], label->second));
    }
    if (!leaks.empty() && refuse)
      fail(Exit::data,
           "{}: view '{}' has {} among its features, which {} also: a model would read the answer; leave {} "
           "out of the "
           "features with --ignore-columns '{}', or give {} if features of that name are meant",
           where, view, some(leaks, 5), leaks.size() == 1 ? "is a label" : "are labels",
           leaks.size() == 1 ? "it" : "them", join_list(flags),
           leaks.size() == 1 ? "it another name" : "them other names");
    leaks.insert(leaks.end(), alike.begin(), alike.end());
    if (!leaks.empty())
      data.notes.push_back(
          fmt::format("warning: view '{}' has features that are called like labels: {}; if they contain the "
                      "labels, a model reads the answer",
                      view, some(leaks, 5)));
  }
}

}  // namespace lacuna
