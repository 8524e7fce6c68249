// Every method of the project, networks and closed forms alike, stands behind this one interface. A method
// sees prepared Items only; files, preparation, thresholds and label names are the business of Model
// (methods/model.h).
//
// To add a method: one file here, its maker in all.h, one line in the table of method.cc
// (docs/adding-a-method.md).
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

// What a method can do by itself, and where it comes from; `lacuna methods` prints it (the paper's table of
// methods).
struct Traits {
  std::string name, title, source;  // "naim3l", "NAIM3L", "TPAMI 2022"
  bool multi_view = true;           // false: runs once per view, best view by validation (PerView)
  bool missing_views = true;        // false: missing views are filled with the mean (FillMissing)
  bool missing_labels = true;       // false: unknown labels count as 0 (FillMissing)
  bool iterative = true;            // can be resumed
  bool divides = false;             // its training can be divided among ranks
  bool streams = false;             // it reads rows in batches, so that they need not be in memory
  bool probabilities = false;       // scores lie in [0, 1]
  bool reconstructed = false;       // no source was to be had: ours after descriptions
  std::string prepare = "zscore";   // default preparation
  std::int64_t components = 96;     // default number of directions of the pca kinds
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

// What a fit will see, known before it starts.
struct FitSize {
  std::size_t rows = 0, labels = 0;
  std::vector<std::size_t> columns, present;  // of each prepared view; rows that have it
  double positives = 0;                       // known ones, over all rows and labels
  bool mapped = false;                        // rows and labels are in files
};
// What it will take, by the method's own arithmetic; docs/experiments.md has how far that was off.
struct Cost {
  double core_seconds = 0, bytes = 0;  // 0: next to nothing
  double kept = 0;                     // of the bytes, what stays in memory after the fit
};

// One member of an ensemble: what it changes in the settings, of the method or of the preparation.
struct MemberPlan {
  std::vector<Setting> changes;
  bool teacher = false;     // fitted first, gives soft labels to the others, not part of the result
  std::string method = {};  // another method, with its own defaults; empty: the one whose plan it is
};

class Method {
 public:
  virtual ~Method() = default;
  virtual Traits traits() const = 0;
  virtual void declare(Options& options) = 0;  // its settings, bound to its members
  // Named sets of settings ("paper", "authors", ...), the default first. set_preset puts all settings of one in place,
  // those of the preparation included; single settings are applied after it. Where a method says nothing else, its
  // presets are `default` (the values it is made with) and its variants, and there are none without variants.
  virtual std::vector<std::string> presets() const;
  virtual void set_preset(const std::string& name, PrepareOptions& prepare);
  // What a variant changes in the defaults; `original` has the values of the method's own source.
  struct Variant {
    std::string name;
    std::vector<Setting> changes;
  };
  virtual std::vector<Variant> variants() const { return {}; }
  // The members of an ensemble of this preset, teachers first; 0 = as many as the preset has by itself.
  virtual std::vector<MemberPlan> plan(const std::string& preset, std::size_t members) const;
  // Whether members of this preset are candidates: fitted as far as --budget reaches, weighted or left out by how they
  // do on rows that they did not learn from (methods/blend.h). Otherwise all of them count alike.
  virtual bool chooses(const std::string& preset) const {
    (void)preset;
    return false;
  }

  // An estimate with the settings as they are; Model::fit refuses what memory cannot hold.
  virtual Cost cost(const FitSize& size) const {
    (void)size;
    return {};
  }

  // Of a fit that ranks divide: the views whose training rows this one reads; empty: all of them.
  virtual std::vector<bool> views_read(const ItemShape& shape, const Ranks& ranks) const {
    (void)shape, (void)ranks;
    return {};
  }
  // Learns from `train`; `val` (possibly without rows) serves selection only. Deterministic in context.seed.
  virtual void fit(const Items& train, const Items& val, FitContext& context) = 0;
  // What the fit that has just ended selected on validation rows, for a fit that follows it (FitContext::follows); null
  // where nothing is selected.
  virtual nlohmann::json selected() const;
  // scores (n, c), larger = more relevant. Const, re-entrant.
  virtual void predict(const Items& items, MatrixView<float> scores) const = 0;
  // Values (k, c) of items with fewer of their views: the log-odds of scores that are probabilities, other scores as
  // they are. By default through predict, in blocks. Const, re-entrant.
  virtual void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const;
  // The method's own decision of what is positive: decided (n, c). The default is scores > .5.
  virtual void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const;

  virtual void save(Tensors& file) const = 0;  // what fit learned; settings are saved by Model
  // Settings are already in place. The file is not trusted: every tensor's size is checked against `shape`
  // and the settings (Tensors::get does it), before memory is taken; what does not fit is Exit::data.
  virtual void load(const Tensors& file, const ItemShape& shape) = 0;
  virtual std::uint64_t parameters() const { return 0; }

 protected:
  [[noreturn]] void no_such_preset(
      const std::string& name) const;  // Exit::usage: the nearest, or whose it is
};

constexpr const char* kDefaultMethod = "lacuna";
float log_odds(float probability);  // of one within [1e-7, 1 - 1e-7]
// Of methods whose only named sets of settings are ours and `original`, those of their source.
constexpr const char* kDefaultPreset = "default";

const std::vector<std::string>& method_names();
std::unique_ptr<Method> make_method(const std::string& name);  // Exit::usage with the nearest name
std::vector<std::string> methods_with_preset(const std::string& preset);
// The one method that has a preset of this name; Exit::usage where none has, or several.
std::string method_of_preset(const std::string& preset);

// Scores and metrics of a fitted method on rows with labels; the way every method selects on validation.
Metrics evaluate_on(const Method& method, const Items& items);

}  // namespace lacuna
