#include "data/score_join.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "data/ids.h"

namespace lacuna {
namespace {

std::string id_of(const Selection& selection, std::size_t i) {
  const std::uint32_t at = selection.rows[i];
  return selection.data->ids.empty() ? std::to_string(at) : selection.data->ids[at];
}

std::string examples(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t k = 0; k < names.size() && k < 3; ++k) text += (k > 0 ? ", '" : "'") + names[k] + "'";
  return text + (names.size() > 3 ? ", ..." : "");
}

using IdPlaces = std::unordered_map<std::string, std::uint32_t>;

IdPlaces places_of(const std::vector<std::string>& names, const char* what, const std::string& path) {
  IdPlaces places;
  for (std::uint32_t k = 0; k < names.size(); ++k)
    if (!places.emplace(names[k], k).second)
      fail(Exit::data, "{}: {} '{}' occurs twice", path, what, names[k]);
  return places;
}

// Positions that match by name: (theirs, ours) in our order, and what is only theirs or only ours.
void match(const std::vector<std::string>& theirs, const std::vector<std::string>& ours, const char* what,
           const std::string& path, std::vector<std::uint32_t>& their_places,
           std::vector<std::uint32_t>& our_places, std::vector<std::string>& only_theirs,
           std::vector<std::string>& only_ours) {
  const IdPlaces places = places_of(theirs, what, path);
  std::vector<std::uint8_t> used(theirs.size());
  for (std::uint32_t k = 0; k < ours.size(); ++k) {
    const auto found = places.find(ours[k]);
    if (found == places.end()) {
      only_ours.push_back(ours[k]);
      continue;
    }
    used[found->second] = 1;
    their_places.push_back(found->second);
    our_places.push_back(k);
  }
  for (std::size_t k = 0; k < theirs.size(); ++k)
    if (used[k] == 0) only_theirs.push_back(theirs[k]);
}

void in_order(std::size_t count, std::vector<std::uint32_t>& theirs, std::vector<std::uint32_t>& ours) {
  for (std::uint32_t k = 0; k < count; ++k) theirs.push_back(k), ours.push_back(k);
}

}  // namespace

ScoreJoin join_scores(const Scores& scores, const Selection& selection, const std::string& path) {
  const Dataset& data = *selection.data;
  ScoreJoin join;
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < selection.rows.size(); ++i) ids.push_back(id_of(selection, i));
  if (!scores.ids.empty()) {
    match(scores.ids, ids, "item", path, join.score_rows, join.data_rows, join.unknown_items,
          join.unscored_items);
    join.row_numbers = scores.ids != ids && are_row_numbers(scores.ids) && are_row_numbers(ids);
    if (join.score_rows.empty())
      fail(Exit::mismatch, "{}: none of its {} items ({}) is among the {} of {} ({}){}", path,
           scores.ids.size(), examples(scores.ids), ids.size(), data.name, examples(ids),
           ids.size() < data.rows ? "; are --fold and --part those of the scores?"
                                  : likely_partner(scores.ids[0], ids));
  } else {
    if (scores.values.rows() != ids.size())
      fail(Exit::mismatch,
           "{} has {} rows and no ids, {} has {} to compare with (see --folds, --fold and --part; .npz and "
           ".csv hold ids)",
           path, scores.values.rows(), data.name, ids.size());
    join.by_order = true;
    in_order(ids.size(), join.score_rows, join.data_rows);
  }
  if (!scores.label_names.empty()) {
    match(scores.label_names, data.label_names, "label", path, join.score_labels, join.data_labels,
          join.unknown_labels, join.unscored_labels);
    if (join.score_labels.empty())
      fail(Exit::mismatch, "{}: none of its {} labels ({}) is among the {} of {} ({})", path,
           scores.label_names.size(), examples(scores.label_names), data.label_count(), data.name,
           examples(data.label_names));
  } else {
    if (scores.values.cols() != data.label_count())
      fail(Exit::mismatch, "{} has {} labels without names, {} has {}", path, scores.values.cols(), data.name,
           data.label_count());
    in_order(data.label_count(), join.score_labels, join.data_labels);
  }
  // Items without any view were scored as nothing.
  std::size_t kept = 0;
  for (std::size_t k = 0; k < join.score_rows.size(); ++k) {
    const auto row = scores.values.row(join.score_rows[k]);
    if (!row.empty() && std::ranges::all_of(row, [](float x) { return std::isnan(x); })) {
      join.empty_items.push_back(ids[join.data_rows[k]]);
      continue;
    }
    join.score_rows[kept] = join.score_rows[k];
    join.data_rows[kept++] = join.data_rows[k];
  }
  join.score_rows.resize(kept);
  join.data_rows.resize(kept);
  if (kept == 0) fail(Exit::mismatch, "{}: no item of {} has scores", path, data.name);
  return join;
}

std::vector<std::string> ScoreJoin::told() const {
  std::vector<std::string> lines;
  if (by_order)
    lines.push_back(fmt::format("joined by position: the scores have no ids; {} rows each",
                                data_rows.size() + empty_items.size()));
  const std::size_t joined = score_rows.size() + empty_items.size(), scored = joined + unknown_items.size(),
                    there = joined + unscored_items.size();
  if (row_numbers)
    lines.push_back(fmt::format(
        "warning: both sides have only row numbers as ids ({} scored, {} in the data): rows of one number are "
        "compared, whatever they hold",
        scored, there));
  if (!unknown_items.empty() && !unscored_items.empty()) {
    std::string partners;
    for (std::size_t k = 0; k < std::min<std::size_t>(3, unknown_items.size()); ++k)
      partners += likely_partner(unknown_items[k], unscored_items);
    lines.push_back(
        fmt::format("{}joined by id: {} of {} scored items, of {} in the data{}",
                    2 * joined < std::min(scored, there) ? "warning: few items are " : "items are ", joined,
                    scored, there, partners));
  }
  const auto tell = [&](const std::vector<std::string>& names, const char* one, const char* many) {
    if (!names.empty())
      lines.push_back(
          fmt::format("left out: {} {} ({})", names.size(), names.size() == 1 ? one : many, examples(names)));
  };
  tell(unknown_items, "scored item that the data does not have", "scored items that the data does not have");
  tell(unscored_items, "item of the data without scores", "items of the data without scores");
  tell(empty_items, "item without any view, scored as nothing", "items without any view, scored as nothing");
  tell(unknown_labels, "scored label that the data does not have",
       "scored labels that the data does not have");
  tell(unscored_labels, "label of the data without scores", "labels of the data without scores");
  return lines;
}

}  // namespace lacuna
