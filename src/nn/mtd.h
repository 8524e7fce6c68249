// The masked two-channel decoupling network, in all its variants (nn/mtd_options.h). Symbols are the paper's:
//   X'_v masked input · S_v, O_v shared and proprietary embedding of view v · S̄, Ō their means over present
//   views · F = σ(Ō) ⊙ S̄ fused · Z = ReLU(F) · P = σ(Z A + a) · X̄_v reconstruction.
// docs/math.md has every equation with its gradient.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/division.h"
#include "nn/label_weights.h"
#include "nn/layers.h"
#include "nn/mtd_options.h"
#include "nn/network.h"
#include "nn/parameters.h"
#include "nn/soft_labels.h"
#include "nn/tally.h"
#include "ops/ops.h"

namespace lacuna {

// The views whose rows this rank of shape.ranks reads while it trains.
std::vector<bool> views_read(const MtdOptions& options, const NetworkShape& shape);

template <class T>
class MtdNetwork final : public BasicNetwork<T> {
 public:
  MtdNetwork(const MtdOptions& options, const NetworkShape& shape, std::uint64_t seed,
             std::shared_ptr<Ops<T>> ops);
  ~MtdNetwork() override;

  // The network whose predictions become the soft labels; this one unless set.
  void listen_to(const BasicNetwork<T>& whole) { whole_ = &whole; }

  void keep(OptimiserState state) override;
  Losses step(const Batch& batch, const UpdateRule& rule) override;
  void start(const Batch& batch, const UpdateRule& rule) override;
  Losses finish() override { return tally_.read(); }
  const Engine& engine() const override { return *ops_; }
  const Ranks& ranks() const override { return division_.ranks(); }
  void predict(const Items& items, MatrixView<T> scores) const override;
  bool predict_sets(const Items& items, const ViewSets& sets, MatrixView<T> logits) const override;
  bool fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const override;
  bool fused_sets(const Items& items, const ViewSets& sets,
                  typename BasicNetwork<T>::FusedSink sink) const override;
  std::size_t fused_size() const override { return embedding_; }
  void settle() override { parameters_.settle(*ops_); }
  void visit(typename BasicNetwork<T>::Visitor visitor) override { parameters_.visit(visitor); }
  void visit_buffers(typename BasicNetwork<T>::BufferVisitor visitor) override;
  std::uint64_t parameters() const override { return parameters_.count(false); }
  std::uint64_t parameters_for_prediction() const override { return parameters_.count(true); }

  // Cosines between the embeddings of one item, (h, h) with h = channels x views: shared ones first, then
  // proprietary. Rows and columns of views that the item lacks are 0.
  Matrix<T> channel_similarity(const Items& items, std::size_t row) const;
  // Embeddings of all items, per view (n, d_e), without masks and dropout; rows of missing instances are 0.
  void channels(const Items& items, std::vector<Matrix<T>>& shared, std::vector<Matrix<T>>& own) const;

 private:
  struct View {
    std::vector<Chain<T>> encoders;  // one per channel
    std::vector<Norm<T>> norms;
    Chain<T> decoder;
    Linear<T> classifier;
  };
  // Chains by number: the encoders of all views and channels, then the decoders. The classifier of a view goes with its
  // first encoder.
  std::size_t encoder(std::size_t v, std::size_t c) const { return v * channels() + c; }
  std::size_t decoder(std::size_t v) const { return views_.size() * channels() + v; }
  bool classifies_here(std::size_t v) const { return classifies_views() && division_.mine(encoder(v, 0)); }
  bool encodes_here(std::size_t v) const;  // in any channel
  bool decodes_here(std::size_t v) const { return decodes() && division_.mine(decoder(v)); }
  bool reads_here(std::size_t v) const;  // the masked rows of the view
  // A part of a stack that a chain computes, for all ranks or for one.
  Ranks::Part part_of(std::size_t chain, MatrixView<T> rows, int reader = Ranks::kEveryone) const;
  struct Memory;     // everything a step writes besides parameters
  struct Embedding;  // what a prediction writes

  void reserve(std::size_t rows);
  void plan(const Batch& batch);    // hides views and fragments, numbers the stack's rows
  void encode(const Batch& batch);  // X' -> S, O
  void gather_noise();              // rows of noise in place of missing instances, for batch norm
  void fuse(const Batch& batch);    // S, O -> F -> Z -> logits
  void decode(const Batch& batch, const UpdateRule& rule, double* values);  // both ways; adds to dS, dO or dF
  void classify_views(const Batch& batch, const UpdateRule& rule, double* value);  // both ways; adds to dS
  void encode_backward(const UpdateRule& rule);
  LabelRows labels(const Batch& batch) const;
  Draws fused_draws(const Batch& batch) const;  // of the dropout before the classifier
  void embed(const Items& items, std::size_t begin, std::size_t count, Embedding& embedding) const;
  MatrixView<T> head(Slots slots, Embedding& embedding,
                     MatrixView<T> logits) const;  // S, O -> F -> Z -> logits
  // Computes Z and logits in the engine's memory, block by block: body(first row, Z, logits).
  using Body = FunctionRef<void(std::size_t, MatrixView<T>, MatrixView<T>)>;
  void for_blocks(const Items& items, Body body) const;
  void for_sets(const Items& items, const ViewSets& sets, Body body) const;
  bool decodes() const { return options_.gamma > 0 && !shape_.prediction_only; }
  bool classifies_views() const { return options_.view_weight > 0 && !shape_.prediction_only; }
  std::size_t channels() const { return static_cast<std::size_t>(options_.channels); }

  MtdOptions options_;
  NetworkShape shape_;
  Division division_;
  std::size_t embedding_ = 0;
  EndNorm end_norm_ = EndNorm::none;
  std::uint64_t seed_ = 0;
  BatchNormSettings norm_;
  BceSettings bce_;
  GraphSettings graph_;
  ContrastSettings contrast_;
  std::shared_ptr<Ops<T>> ops_;  // one of both branches, where there are two
  Parameters<T> parameters_;
  std::vector<View> views_;
  Linear<T> classifier_;
  SoftLabels<T> soft_labels_;
  const BasicNetwork<T>* whole_ = this;
  mutable LabelWeights label_weights_;  // made with the first batch
  std::unique_ptr<Memory> memory_;
  Tally tally_;
};

}  // namespace lacuna
