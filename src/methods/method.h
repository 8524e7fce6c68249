// Every method of the project, networks and closed forms alike, stands behind this one interface. A method sees prepared
// Items only; files, preparation, thresholds and label names are the business of Model (methods/model.h).
//
// To add a method: one file here, one line in MethodName, one case in make_method (docs/adding-a-method.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "base/tensors.h"
#include "base/threads.h"
#include "data/items.h"
#include "data/metrics.h"
#include "data/prepare.h"

namespace lacuna {

// What a method can do by itself, and where it comes from; `lacuna methods` prints it (the paper's table of methods).
struct Traits {
  std::string name, title, source;   // "naim3l", "NAIM3L", "TPAMI 2022"
  bool multi_view = true;            // false: runs once per view, best view by validation (PerView)
  bool missing_views = true;         // false: missing views are filled with the mean (FillMissing)
  bool missing_labels = true;        // false: unknown labels count as 0 (FillMissing)
  bool iterative = true;             // can be resumed
  bool probabilities = false;        // scores lie in [0, 1]
  bool reconstructed = false;        // no source was to be had: ours after descriptions
  std::string prepare = "zscore";    // default preparation
  std::int64_t components = 96;      // default number of directions where prepare is pca or log-pca
};

// One line of a training history.
struct EpochRecord {
  std::int64_t epoch = 0;                      // epochs, or iterations, done
  std::int64_t epochs = 0;                     // of so many (an upper bound)
  std::int64_t member = 0, members = 1;        // of an ensemble
  double seconds = 0;                          // training alone, since the start, without validation
  double rows_per_second = 0;
  std::map<std::string, double> losses;        // "total" and its parts, by name
  bool validated = false;
  Metrics validation;                          // if validated
};

// What a running fit tells its surroundings and asks of them. Implementations are the command line (progress,
// checkpoints, signals), the experiments, and the tests; the default does nothing.
class FitContext {
 public:
  virtual ~FitContext() = default;
  std::uint64_t seed = 1;

  // Called once before the first step, with the bytes of a snapshot and of the model file: the place to refuse work
  // whose result would not fit on the disk.
  virtual void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) {
    (void)snapshot_bytes, (void)model_bytes;
  }
  // Called between steps, for methods whose epochs may take minutes; as after_epoch, without a record.
  virtual void after_step(FunctionRef<void(Tensors&)> snapshot) { (void)snapshot; }
  // Called by the method after each epoch or iteration. `snapshot` fills a Tensors with the complete state (everything
  // that resume needs); it is called only when a checkpoint is due. May throw to stop (interruption).
  // Returns false if the fit should end here as if it were finished (a time budget).
  virtual bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) {
    (void)record, (void)snapshot;
    return true;
  }
  // The state to continue from, or null for a fresh start. A method that gets one must end with the same bits as an
  // uninterrupted run.
  virtual const Tensors* resume_from() { return nullptr; }
};

// Thrown by fit when a loss is no longer a number. `kept` says that the best state before it is in place, so that the
// method can be used and saved as if the fit had ended there.
class Diverged : public Error {
 public:
  Diverged(const std::string& message, bool best_is_kept) : Error(Exit::diverged, message), kept(best_is_kept) {}
  const bool kept;
};

class Method {
 public:
  virtual ~Method() = default;
  virtual Traits traits() const = 0;
  virtual void declare(Options& options) = 0;  // its settings, bound to its members
  // Named sets of settings ("paper", "authors", ...), the default first; none for most methods. set_preset puts all
  // settings of one in place, those of the preparation included; single settings are applied after it.
  virtual std::vector<std::string> presets() const { return {}; }
  virtual void set_preset(const std::string& name, PrepareOptions& prepare);

  // Learns from `train`; `val` (possibly without rows) serves selection only. Deterministic in context.seed.
  virtual void fit(const Items& train, const Items& val, FitContext& context) = 0;
  // scores (n, c), larger = more relevant. Const, re-entrant.
  virtual void predict(const Items& items, MatrixView<float> scores) const = 0;
  // The method's own decision of what is positive: decided (n, c). The default is scores > .5.
  virtual void decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const;

  virtual void save(Tensors& file) const = 0;  // what fit learned; settings are saved by Model
  virtual void load(const Tensors& file) = 0;  // settings are already in place
  virtual std::uint64_t parameters() const { return 0; }
};

const std::vector<std::string>& method_names();
std::unique_ptr<Method> make_method(const std::string& name);  // Exit::usage with the nearest name

// Scores and metrics of a fitted method on rows with labels; the way every method selects on validation.
Metrics evaluate_on(const Method& method, const Items& items);

}  // namespace lacuna
