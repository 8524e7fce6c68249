// The context of a fit that several ranks run together. Rank 0 asks its own context (progress, checkpoints, signals,
// clock); the others follow its decisions, so all ranks stop, write and continue at the same step.
#pragma once

#include "nn/fit.h"

namespace lacuna {

// Thrown on the other ranks if rank 0's context ends the fit; rank 0 reports the reason.
class EndedByLeader : public Error {
 public:
  explicit EndedByLeader(Exit code) : Error(code, "rank 0 has ended the run") {}
};

class RankedFit final : public FitContext {
 public:
  // `own`: on rank 0 used for everything, on the others only for the state to resume from.
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
  // The result of rank 0's `decide`, on every rank. All ranks take part in a snapshot.
  bool agree(Snapshot snapshot, FunctionRef<bool(Snapshot)> decide);

  const Ranks& ranks_;
  FitContext& own_;
};

}  // namespace lacuna
