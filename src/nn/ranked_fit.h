// The surroundings of a fit that several ranks do together. Rank 0 asks its own surroundings (progress, checkpoints,
// signals, a clock); the others do what it says, so that all ranks stop, write and go on at the same step.
#pragma once

#include "nn/fit.h"

namespace lacuna {

// Thrown on the other ranks where rank 0's surroundings end the fit: rank 0 says why.
class EndedByLeader : public Error {
 public:
  explicit EndedByLeader(Exit code) : Error(code, "rank 0 has ended the run") {}
};

class RankedFit final : public FitContext {
 public:
  // `own`: of rank 0 asked for everything, of the others only where to resume from.
  RankedFit(const Ranks& ranks, FitContext& own) : ranks_(ranks), own_(own) { seed = own.seed; }

  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override;
  void after_step(FunctionRef<void(Tensors&)> snapshot) override;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override;
  void remark(const std::string& text) override;
  bool stopping() override;
  const Tensors* resume_from() override { return own_.resume_from(); }
  const Ranks& ranks() const override { return ranks_; }

 private:
  using Snapshot = FunctionRef<void(Tensors&)>;
  // What rank 0's `decide` says, on every rank. A snapshot is taken by all of them.
  bool agree(Snapshot snapshot, FunctionRef<bool(Snapshot)> decide);

  const Ranks& ranks_;
  FitContext& own_;
};

}  // namespace lacuna
