// What each view of a model contributes, on rows with known labels: its effect on each tag (mean absolute Shapley
// value), the AP that a tag loses without it, and the model's accuracy with the views that items really have and with
// each view alone. Intervals are percentiles of resampled rows (data/bootstrap.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/bootstrap.h"
#include "methods/explain.h"

namespace lacuna {

struct Estimate {
  double value = 0;  // NaN where undefined (a label without positives)
  Interval interval;
};

struct ViewImportance {
  std::string view;
  std::size_t items = 0;  // items that have the view; all figures are about these
  Estimate effect;        // mean |Shapley value| over items and labels
  Estimate ap_loss;       // AP (mean over items) with all their views, minus AP without this one
  // One per label: mean |Shapley value|; AP of the label (over items) with all views, minus AP without this one.
  std::vector<Estimate> label_effect, label_ap_loss;
};

// Items with a certain set of views.
struct ViewPattern {
  std::vector<std::string> views;
  std::size_t items = 0;  // with at least one known label
  Estimate ap;
};

struct ViewSummary {
  std::size_t items = 0;  // with a view and a known label
  std::size_t resamples = 0;
  std::string unit;  // of effects: log-odds, probability (calibrated) or score
  std::string base;  // the base of the explanations: prior or model
  Estimate ap;
  std::vector<std::string> label_names;
  std::vector<ViewImportance> views;
  std::vector<ViewPattern> patterns;  // the sets of views that items have, most frequent first
  std::vector<ViewPattern> alone;     // each view alone, on all items that have it
};

// Rows without a view or without a known label are left out; Exit::data if none is left.
ViewSummary summarise_views(const Model& model, const Selection& selection,
                            const ExplainOptions& options = {});
// {"items", "AP", "views": [{"view", "items", "effect", "effect_interval", "ap_loss", "ap_loss_interval", "labels":
// [...]}], "patterns": [...], "alone": [...]}; undefined values are null.
nlohmann::json to_json(const ViewSummary& summary);

}  // namespace lacuna
