#include "data/leaks.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

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

}  // namespace

std::string folded(std::string_view name) {
  std::string low(trim(name));
  for (char& c : low) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return low;
}

void check_leaks(Dataset& data, const std::string& where, bool refuse) {
  note_twins(data);
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
