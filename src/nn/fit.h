// The interface between a running fit, of a network or of any other method, and its context.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "base/ranks.h"
#include "base/tensors.h"
#include "base/threads.h"
#include "data/metrics.h"

namespace lacuna {

// One line of a training history.
struct EpochRecord {
  std::int64_t epoch = 0;                // epochs, or iterations, done
  std::int64_t epochs = 0;               // planned (an upper bound)
  std::int64_t member = 0, members = 1;  // of an ensemble
  std::int64_t view = 0, views = 1;      // of the views that a method for one view tries, one after the other
  std::int64_t pass = 0, passes = 1;     // two if a fit on more rows follows (methods/refit.h)
  double seconds = 0;                    // of training since the start, without validation
  double rows_per_second = 0;
  std::map<std::string, double> losses;  // "total" and its parts, by name
  bool validated = false;
  Metrics validation;     // if validated
  std::int64_t kept = 0;  // the epoch that would be kept if this one were the last; 0 if nothing is selected

  // Position and number of fits over all passes, members and views, in the order in which they run.
  std::int64_t fit() const { return (pass * members + member) * views + view; }
  std::int64_t fits() const { return passes * members * views; }
  // The share of all work that is done: fits before this one, and epochs of this one.
  double share_done() const {
    const double part = epochs > 0 ? static_cast<double>(epoch) / static_cast<double>(epochs) : 0;
    return (static_cast<double>(fit()) + part) / static_cast<double>(fits() > 1 ? fits() : 1);
  }
};

// The context of a fit: what a running fit reports and asks. The command line (progress, checkpoints, signals),
// the experiments and the tests implement it; the default does nothing.
class FitContext {
 public:
  virtual ~FitContext() = default;
  std::uint64_t seed = 1;
  std::uint64_t memory_limit = 0;  // bytes that the fit may take; 0 = what the machine has

  // Called once before the first step, with the sizes in bytes of a snapshot and of the model file. May refuse
  // the fit if the result would not fit on the disk.
  virtual void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) {
    (void)snapshot_bytes, (void)model_bytes;
  }
  // Called between steps, for methods whose epochs may take minutes; as after_epoch, without a record.
  virtual void after_step(FunctionRef<void(Tensors&)> snapshot) { (void)snapshot; }
  // Called by the method after each epoch or iteration. `snapshot` fills a Tensors with the complete state
  // (everything that resume needs); it is called only when a checkpoint is due. May throw to stop
  // (interruption). Returns false if the fit should end here as if it were finished (a time budget).
  virtual bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) {
    (void)record, (void)snapshot;
    return true;
  }
  // As after_epoch, for a fit that ran at the same time as an earlier one (methods/fits_ahead.h). It is called later,
  // when the state of that epoch no longer exists.
  virtual void earlier_epoch(const EpochRecord& record) { (void)record; }
  // How many fits of this many bytes each may run at the same time, in threads of this process.
  virtual std::size_t fits_at_once(double bytes) const {
    (void)bytes;
    return 1;
  }
  // A remark for users of the result, in one sentence.
  virtual void remark(const std::string& text) { (void)text; }
  // Whether the fit should end as soon as possible with what it has learned so far. Called between steps,
  // iterations and members. A fit that has no complete epoch yet throws Exit::interrupted.
  virtual bool stopping() { return false; }
  // The state to continue from, or null for a fresh start. A method that gets one must end with the same bits
  // as an uninterrupted run.
  virtual const Tensors* resume_from() { return nullptr; }
  // What an earlier fit selected on validation rows (Method::selected). This fit has no validation rows and uses the
  // same; null: it selects for itself.
  virtual const nlohmann::json* follows() const { return nullptr; }
  // The ranks that fit together with this process: networks are divided among them.
  virtual const Ranks& ranks() const { return one_rank(); }
};

// Thrown by fit when a loss is no longer a number. If `kept`, the method has the best state before that, and can
// be used and saved as if the fit had ended there.
class Diverged : public Error {
 public:
  Diverged(const std::string& message, bool best_is_kept)
      : Error(Exit::diverged, message), kept(best_is_kept) {}
  const bool kept;
};

}  // namespace lacuna
