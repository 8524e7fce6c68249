// The context of a fit that is started from the command line: progress, checkpoints, signals, history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ranks.h"
#include "cli/member_folder.h"
#include "cli/progress.h"
#include "methods/method.h"
#include "ops/device.h"

namespace lacuna::cli {

struct RunOptions {
  bool resume = false;           // continue from the checkpoint beside the model
  double checkpoint_every = 30;  // seconds; 0 = after every step and epoch
  double time_limit = 0;         // seconds of training after which it ends as if finished; 0 = none
  bool share = false;            // the members of an ensemble with other processes
  void declare(Options& options);
};

class TrainingRun final : public SharedFit {
 public:
  // `fingerprint` contains everything that determines the result, by name: a checkpoint with a different one is
  // refused, and so are ranks with a different one. Only rank 0 writes files.
  TrainingRun(const RunOptions& options, std::string model_path, nlohmann::json fingerprint,
              Progress& progress, Ranks& ranks);
  ~TrainingRun() override;

  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override;
  void after_step(FunctionRef<void(Tensors&)> snapshot) override;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override;
  void earlier_epoch(const EpochRecord& record) override;
  // A time limit applies to each fit, so with a limit fits run one after the other.
  std::size_t fits_at_once(double bytes) const override {
    return options_.time_limit > 0 || !ranks_.alone() ? 1 : trainings_at_once(bytes);
  }
  const Tensors* resume_from() override { return resumed_ ? &*resumed_ : nullptr; }
  MemberShare* shared_members() override { return members_ ? &*members_ : nullptr; }
  void remark(const std::string& text) override;

  const std::vector<std::string>& remarks() const { return remarks_; }

  const nlohmann::json& history() const { return history_; }
  void catch_signals();      // from now on SIGINT and SIGTERM stop the fit after the step, with a checkpoint
  void remove_checkpoint();  // after the model is saved

 private:
  void read_checkpoint();
  void check_ranks() const;
  void check_waiting();  // ends a run whose other ranks no longer answer
  void checkpoint(FunctionRef<void(Tensors&)> snapshot);
  void checkpoint_if_due(FunctionRef<void(Tensors&)> snapshot);

  RunOptions options_;
  std::string model_path_, path_;
  nlohmann::json fingerprint_, history_ = nlohmann::json::array();
  std::vector<std::string> remarks_;
  Progress& progress_;
  Ranks& ranks_;
  std::optional<Tensors> resumed_;
  std::optional<MemberFolder> members_;
  double last_checkpoint_, checkpoint_seconds_ = 0;  // when it was written, and how long that took
  bool catching_ = false;
  double silence_since_ = 0;  // when a signal was first seen while other ranks were waited for
};

}  // namespace lacuna::cli
