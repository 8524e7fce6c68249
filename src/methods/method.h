// Every method of the project, networks and classical methods alike, implements this one interface. A method
// sees prepared Items only; Model (methods/model.h) handles files, preparation, thresholds and label names.
//
// To add a method: one file here, its maker in all.h, one line in the table of method.cc (docs/extending.md).
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/tensors.h"
#include "data/items.h"
#include "data/metrics.h"
#include "data/prepare.h"
#include "nn/fit.h"

namespace lacuna {

// What a method can do, and its source; `lacuna methods` prints it (the paper's table of methods).
struct Traits {
  std::string name, title, source;  // "naim3l", "NAIM3L", "TPAMI 2022"
  bool multi_view = true;      // false: fitted once per view; the best on validation rows is kept (PerView)
  bool missing_views = true;   // false: missing views are filled with the mean (FillMissing)
  bool missing_labels = true;  // false: unknown labels count as 0 (FillMissing)
  bool iterative = true;       // can be resumed
  bool divides = false;        // its training can be divided among ranks
  bool streams = false;        // reads rows in batches, so they need not fit into memory
  bool probabilities = false;  // scores lie in [0, 1]
  bool reconstructed = false;  // no program was available: implemented from descriptions
  std::string prepare = "zscore";  // default preparation
  std::int64_t components = 96;    // default number of directions of the pca kinds
};

// The sizes of the items that a method was fitted on: prepared columns of each view, and labels.
struct ItemShape {
  std::vector<std::size_t> columns;
  std::size_t labels = 0;
  std::vector<std::vector<std::size_t>> others = {};  // columns in other preparations (Items::others)
};

// A setting by its name, as on the command line.
struct Setting {
  std::string name, value;
};

// The size of a fit, known before it starts.
struct FitSize {
  std::size_t rows = 0, labels = 0;
  std::vector<std::size_t> columns, present;  // of each prepared view: columns, and rows that have it
  double positives = 0;                       // known positives, over all rows and labels
  bool mapped = false;                        // rows and labels are in files
};
// The estimated cost of a fit, by the method itself; docs/results/five-sets.md compares it with measurements.
struct Cost {
  double core_seconds = 0, bytes = 0;  // 0: negligible
  double kept = 0;                     // of the bytes, what stays in memory after the fit
};

// One member of an ensemble: its changes to the settings of the method or of the preparation.
struct MemberPlan {
  std::vector<Setting> changes;
  bool teacher = false;     // fitted first, gives soft labels to the others, not part of the result
  std::string method = {};  // another method, with its own defaults; empty: the method of the plan
};

class Method {
 public:
  virtual ~Method() = default;
  virtual Traits traits() const = 0;
  virtual void declare(Options& options) = 0;  // its settings, bound to its members
  // Named sets of settings ("paper", "authors", ...), the default first. set_preset applies all settings of one, those
  // of the preparation included; single settings are applied after it. Unless a method overrides this, its presets are
  // `default` (the values it is constructed with) and its variants; without variants it has no presets.
  virtual std::vector<std::string> presets() const;
  virtual void set_preset(const std::string& name, PrepareOptions& prepare);
  // The changes of each variant to the defaults; `original` has the values of the method's own source.
  struct Variant {
    std::string name;
    std::vector<Setting> changes;
  };
  virtual std::vector<Variant> variants() const { return {}; }
  // The members of an ensemble of this preset, teachers first; 0 = as many as the preset defines.
  virtual std::vector<MemberPlan> plan(const std::string& preset, std::size_t members) const;
  // Whether members of this preset are candidates: fitted as far as --budget allows, and weighted or left out by their
  // accuracy on rows that they did not learn from (methods/blend.h). Otherwise all members have the same weight.
  virtual bool chooses(const std::string& preset) const {
    (void)preset;
    return false;
  }

  // An estimate for the present settings; Model::fit refuses a fit that does not fit into memory.
  virtual Cost cost(const FitSize& size) const {
    (void)size;
    return {};
  }

  // In a fit that is divided among ranks: the views whose training rows this rank reads; empty: all of them.
  virtual std::vector<bool> views_read(const ItemShape& shape, const Ranks& ranks) const {
    (void)shape, (void)ranks;
    return {};
  }
  // Learns from `train`; `val` (possibly without rows) is used for selection only. Deterministic in context.seed.
  virtual void fit(const Items& train, const Items& val, FitContext& context) = 0;
  // What the last fit selected on validation rows, for a fit that follows it (FitContext::follows); null if nothing was
  // selected.
  virtual nlohmann::json selected() const;
  // scores (n, c), larger = more relevant. Const, re-entrant.
  virtual void predict(const Items& items, MatrixView<float> scores) const = 0;
  // Values (k, c) of items with some of their views removed: log-odds of scores that are probabilities, other scores
  // unchanged. By default through predict, in blocks. Const, re-entrant.
  virtual void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const;
  // The method's own decision which labels are positive: decided (n, c). The default is scores > .5.
  virtual void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const;

  virtual void save(Tensors& file) const = 0;  // what fit learned; settings are saved by Model
  // Settings have been applied before. The file is not trusted: every tensor's size is checked against `shape`
  // and the settings (by Tensors::get) before memory is allocated; a mismatch is Exit::data.
  virtual void load(const Tensors& file, const ItemShape& shape) = 0;
  virtual std::uint64_t parameters() const { return 0; }

 protected:
  [[noreturn]] void no_such_preset(
      const std::string& name) const;  // Exit::usage suggests the nearest name, or the method that has it
};

constexpr const char* kDefaultMethod = "lacuna";
float log_odds(float probability);  // after clipping it to [1e-7, 1 - 1e-7]
// The preset with our settings, of methods whose other preset is `original` (the settings of their source).
constexpr const char* kDefaultPreset = "default";

const std::vector<std::string>& method_names();
std::unique_ptr<Method> make_method(const std::string& name);  // Exit::usage with the nearest name
std::vector<std::string> methods_with_preset(const std::string& preset);
// The only method that has a preset of this name; Exit::usage if there is none, or more than one.
std::string method_of_preset(const std::string& preset);

// Scores and metrics of a fitted method on rows with labels; every method selects on validation rows by this.
Metrics evaluate_on(const Method& method, const Items& items);

}  // namespace lacuna
