// The early-fusion network (--fusion early): the views of a row are concatenated, u = [√(m/k) x_v or 0], if k of
// m views are present, and pass one encoder:
//   z = norm(Linear(... dropout(ReLU(Linear(u)))))       logits = Linear(dropout(ReLU(z)))
// In training every row passes twice with the same parameters: with its views, and with a random subset of
// them. The second pass is mostly taught by the first one's probability (Ops::view_loss with one slot per row),
// so the network learns to predict from few views what it predicts from many. Options, masks and losses are
// those of nn/mtd.h.
#pragma once

#include <memory>
#include <vector>

#include "nn/label_weights.h"
#include "nn/layers.h"
#include "nn/mtd_options.h"
#include "nn/network.h"
#include "nn/parameters.h"
#include "nn/soft_labels.h"
#include "nn/tally.h"
#include "ops/ops.h"

namespace lacuna {

template <class T>
class EarlyNetwork final : public BasicNetwork<T> {
 public:
  EarlyNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
               std::shared_ptr<Ops<T>> ops);

  // The network whose predictions become the soft labels; this one unless set.
  void listen_to(const BasicNetwork<T>& whole) { whole_ = &whole; }

  void keep(OptimiserState state) override;
  Losses step(const Batch& batch, const UpdateRule& rule) override;
  void start(const Batch& batch, const UpdateRule& rule) override;
  Losses finish() override { return tally_.read(); }
  const Engine& engine() const override { return *ops_; }
  void predict(const Items& items, MatrixView<T> scores) const override;
  bool fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const override;
  std::size_t fused_size() const override { return embedding_; }
  void settle() override { parameters_.settle(*ops_); }
  void visit(typename BasicNetwork<T>::Visitor visitor) override { parameters_.visit(visitor); }
  void visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) override;
  std::uint64_t parameters() const override { return parameters_.count(false); }
  std::uint64_t parameters_for_prediction() const override { return parameters_.count(true); }

 private:
  // How rows become rows of u, in a parcel: per view the hidden part of each row, and each row's factor.
  struct Joined {
    std::vector<Parcel::Piece<Fragment>> hidden;
    Parcel::Piece<float> factors;
  };
  // Everything a step writes besides parameters. With a second pass the stack has 2b rows: first all rows
  // with their views, then all rows with a subset of them.
  struct Memory {
    std::size_t capacity = 0;                // rows of the largest batch so far
    std::vector<std::uint8_t> left, subset;  // (b, m) flat
    std::vector<Fragment> fragments;         // (b, m) flat: drawn, the same for both passes
    std::vector<std::uint32_t> identities;   // of the stack's rows, for dropout
    std::vector<std::int32_t> slots;         // (b, 1): row i of the second pass
    Parcel parcel;
    Buffer<T> X;  // (2b, Σd_v): u
    ChainMemory<T> encoder;
    EngineMatrix<T> U, S, Z, dZ, saved;  // (2b, d_e): before and after the norm, after ReLU and dropout
    EngineMatrix<T> logits, dlogits;     // (2b, c)
    PingPong<T> scratch;
    std::vector<Fragment> hidden;  // of one view at a time: its fragment, or all of it
    std::vector<float> factors;    // √(m/k) of each row
    Joined joined[2];              // of the two passes
    std::vector<GatherJob<T>> gathers;
  };

  bool passes_twice() const { return options_.view_weight > 0; }
  void reserve(std::size_t rows);
  // Puts into the parcel how rows are joined, with the views that are left; `fragments` (b, m) flat or empty.
  // When it has been sent, join() computes u.
  void plan(std::span<const std::uint8_t> left, std::span<const Fragment> fragments, Memory& m,
            Joined& joined) const;
  void join(const Items& items, std::span<const std::uint32_t> rows, const Joined& joined, MatrixView<T> X,
            Memory& m) const;
  // Computes Z and logits in the engine's memory, block by block: body(first row, Z, logits).
  void for_blocks(const Items& items,
                  FunctionRef<void(std::size_t, MatrixView<T>, MatrixView<T>)> body) const;

  MtdOptions options_;
  NetworkShape shape_;
  std::size_t embedding_ = 0, columns_ = 0;
  BatchNormSettings norm_settings_;
  BceSettings bce_;
  std::shared_ptr<Ops<T>> ops_;  // one of both branches, where there are two
  Parameters<T> parameters_;
  Chain<T> encoder_;
  Norm<T> norm_;
  Linear<T> classifier_;
  SoftLabels<T> soft_labels_;
  const BasicNetwork<T>* whole_ = this;
  LabelWeights label_weights_;
  Memory memory_;
  Tally tally_;
};

}  // namespace lacuna
