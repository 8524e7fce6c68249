// The measured gaps in the repetitions of an experiment: those of the data and those that were hidden. Every caption,
// table and page takes its rates and its wording from here.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "data/protocol.h"

namespace lacuna {

// Shares, or for rows numbers, as means over the repetitions.
struct GapFacts {
  double own_views = 0, own_labels = 0;      // shares of all instances, of all labels that the data lack
  double views = 0;                          // share of all instances that is missing, own gaps included
  double train_views = 0, train_labels = 0;  // the same among training rows
  double hidden_views = 0,
         hidden_labels = 0;  // hidden of the existing instances, of the training rows' known labels
  double held_hidden = 0;    // hidden of the existing instances of validation and test rows
  double test_labels = 0;    // unknown share of the scored rows' labels
  double bare_rows = 0;      // rows without any view
  double test_rows = 0, bare_test_rows = 0;  // rows of the test; those without any view, which are not scored

  bool none() const { return views == 0 && train_labels == 0; }
  bool added() const { return hidden_views > 0 || hidden_labels > 0; }
  // Only training rows lose views.
  bool only_training() const { return hidden_views > 0 && held_hidden == 0; }
  nlohmann::json json() const;
  static GapFacts from_json(const nlohmann::json& from);
  static GapFacts asked(const nlohmann::json& mask);  // for files of versions that measured nothing
};

GapFacts measure_gaps(const Dataset& data, const Folds& folds, std::size_t repetitions, Protocol protocol);

// "50 %"; "49.8 to 50 %" if several differ.
std::string percent(double part);
std::string percent_range(std::span<const GapFacts> sets, double GapFacts::*what);

// "50 % of the views and 50 % of the training labels missing", with what is particular about them; "without gaps".
// `header` is that of the experiment.
std::string gap_words(std::span<const GapFacts> sets, const nlohmann::json& header);
// "views hidden by their values (mnar, strength 2), rows split by stratification"; empty for the plain draw.
std::string draw_words(const nlohmann::json& header, bool hides_views);
// Sentences for the page: how the repetitions of an experiment are made, and which rows are scored against which
// labels.
std::string protocol_sentences(std::span<const GapFacts> sets, const nlohmann::json& header);

}  // namespace lacuna
