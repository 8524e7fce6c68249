#include "data/learnable.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

struct Counts {
  std::size_t rows = 0;       // with a view and a known label
  std::size_t with_view = 0;  // with a view
  std::size_t labelled = 0;   // with a known label
  std::vector<std::size_t> positives, negatives;
  std::vector<std::size_t> views;  // rows that have it
};

Counts count(const Selection& selection) {
  const Dataset& data = *selection.data;
  Counts counts;
  counts.positives.resize(data.label_count());
  counts.negatives.resize(data.label_count());
  counts.views.resize(data.views.size());
  for (std::size_t i = 0; i < selection.rows.size(); ++i) {
    bool view = false, known = false;
    for (std::size_t v = 0; v < data.views.size(); ++v) {
      const bool has = selection.has(i, v);
      counts.views[v] += has;
      view = view || has;
    }
    for (std::size_t j = 0; j < data.label_count(); ++j) {
      const std::int8_t y = selection.label(i, j);
      known = known || y != kUnknown;
      if (!view) continue;
      counts.positives[j] += y == 1;
      counts.negatives[j] += y == 0;
    }
    counts.with_view += view;
    counts.labelled += known;
    counts.rows += view && known;
  }
  return counts;
}

}  // namespace

std::vector<std::string> check_learnable(const Selection& train, const Selection& val) {
  constexpr std::size_t kFewRows = 50, kFewToSelect = 20, kManyBare = 10;  // the last: one row in so many
  const Dataset& data = *train.data;
  if (data.views.empty() || data.labels.empty()) return {};  // Model::fit says so
  const Counts learn = count(train);
  if (learn.rows == 0)
    fail(Exit::data,
         "{}: nothing can be learned: of {} rows {} have a view and {} have known labels, but none has "
         "both; do the ids of views and labels agree, and are items rows (otherwise --transpose)?",
         data.name, train.rows.size(), learn.with_view, learn.labelled);
  std::vector<std::string> only_yes, only_no, told_apart;
  for (std::size_t j = 0; j < data.label_count(); ++j) {
    if (learn.positives[j] > 0 && learn.negatives[j] > 0) {
      told_apart.push_back(data.label_names[j]);
    } else {
      (learn.positives[j] > 0 ? only_yes : only_no).push_back(data.label_names[j]);
    }
  }
  if (told_apart.empty() && !val.rows.empty() && val.data->label_count() == data.label_count()) {
    const Counts held_out = count(val);
    for (std::size_t j = 0; j < data.label_count(); ++j)
      if (learn.positives[j] + held_out.positives[j] > 0 && learn.negatives[j] + held_out.negatives[j] > 0)
        fail(
            Exit::data,
            "{}: nothing can be learned: no label has both a known yes and a known no among the {} training rows. "
            "With the {} validation rows one has: --hold-out 0 trains on all rows; more rows are better",
            data.name, learn.rows, held_out.rows);
  }
  if (told_apart.empty() && !only_yes.empty())
    fail(Exit::data,
         "{}: nothing can be learned: {} known yes and nothing is known no, so that saying yes to everything "
         "is right; if a label that is not given means no, use --blank-means no",
         data.name,
         data.label_count() == 1 ? "the label is" : fmt::format("all {} labels are", only_yes.size()));
  if (told_apart.empty())
    fail(Exit::data,
         "{}: nothing can be learned: no row with a view has a known positive label (labels: {}); do the "
         "ids of views and labels agree, and is --label-code right?",
         data.name, some(quoted(only_no), 5));
  std::vector<std::string> notes, absent;
  for (std::size_t v = 0; v < data.views.size(); ++v)
    if (learn.views[v] == 0) absent.push_back(data.views[v].name);
  if (!absent.empty())
    notes.push_back(
        fmt::format("{} of {} views {} in no training row, so nothing is learned about {}: {}",
                    absent.size(), data.views.size(), absent.size() == 1 ? "is" : "are",
                    absent.size() == 1 ? "it" : "them", some(quoted(absent), 5)));
  if (!only_yes.empty())
    notes.push_back(
        fmt::format("{} of {} labels have no known negative and cannot be learned: {} (if blank means no, use "
                    "--blank-means no)",
                    only_yes.size(), data.label_count(), some(quoted(only_yes), 5)));
  if (!only_no.empty())
    notes.push_back(fmt::format("{} of {} labels have no known positive and cannot be learned: {}",
                                only_no.size(), data.label_count(), some(quoted(only_no), 5)));
  if (const std::size_t bare = learn.with_view - learn.rows;
      train.unlabelled == nullptr && kManyBare * bare >= learn.with_view)
    notes.push_back(fmt::format(
        "{} of {} training rows with a view have no known label: only their views are used", bare,
        learn.with_view));
  if (learn.rows < kFewRows)
    notes.push_back(
        fmt::format("only {} training rows with a view and a known label: expect poor results, and do not "
                    "trust any figure",
                    learn.rows));
  const std::size_t selecting = val.rows.empty() ? 0 : count(val).rows;
  if (!val.rows.empty() && selecting == 0)
    notes.push_back(fmt::format(
        "none of the {} validation rows has a known label: nothing is selected on them, and there are no "
        "thresholds and no calibration",
        val.rows.size()));
  else if (!val.rows.empty() && selecting < kFewToSelect)
    notes.push_back(fmt::format(
        "only {} validation row{}: the epoch, the thresholds of --labels and the calibration rest "
        "on {} and will be poor",
        selecting, selecting == 1 ? "" : "s", selecting == 1 ? "it" : "them"));
  return notes;
}

}  // namespace lacuna
