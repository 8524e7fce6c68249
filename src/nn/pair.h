// Two branches of one network (--fusion both), trained together: the mean of the views' embeddings (nn/mtd.h), and one
// encoder of the concatenated views (nn/early.h). They make different errors, so the mean of their logits is more
// accurate than either:
//   logits = (logits of the mean + logits of early fusion) / 2        Z = [Z of the mean, Z of early fusion]
// Each has its own losses, which are added; their joint prediction is the soft label of both.
#pragma once

#include <memory>

#include "nn/early.h"
#include "nn/mtd.h"

namespace lacuna {

template <class T>
class PairNetwork final : public BasicNetwork<T> {
 public:
  PairNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
              std::shared_ptr<Ops<T>> ops);

  void keep(OptimiserState state) override;
  Losses step(const Batch& batch, const UpdateRule& rule) override;
  void start(const Batch& batch, const UpdateRule& rule) override;
  Losses finish() override;
  const Engine& engine() const override { return mean_.engine(); }
  const Ranks& ranks() const override { return mean_.ranks(); }
  void predict(const Items& items, MatrixView<T> scores) const override;
  bool fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const override;
  std::size_t fused_size() const override { return mean_.fused_size() + early_.fused_size(); }
  void settle() override;
  void visit(typename BasicNetwork<T>::Visitor visitor) override;
  void visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) override;
  std::uint64_t parameters() const override { return mean_.parameters() + early_.parameters(); }
  std::uint64_t parameters_for_prediction() const override {
    return mean_.parameters_for_prediction() + early_.parameters_for_prediction();
  }

 private:
  void fused_piece(const Items& items, std::size_t first, typename BasicNetwork<T>::FusedSink sink) const;

  MtdNetwork<T> mean_;
  EarlyNetwork<T> early_;
  std::size_t labels_ = 0;
};

}  // namespace lacuna
