// The parts of a step, each forward beside its backward, and prediction.
#include <cmath>
#include <limits>
#include <numeric>

#include "base/threads.h"
#include "nn/mtd_memory.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kFusedDropoutLayer = 1u << 30, kViewDropoutLayer = kFusedDropoutLayer + 1;
constexpr std::size_t kPredictRows = 512;  // a prediction works on blocks of so many rows

}  // namespace

template <class T>
void MtdNetwork<T>::encode(const Batch& batch) {
  Memory& m = *memory_;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    auto& block = m.blocks[v];
    const MatrixView<T> X = m.X[v].take(block.total(), shape_.columns[v]);
    ops_->gather(batch.items->X[v], block.rows, block.fragments, X.top(block.rows.size()));
    if (block.missing > 0) ops_->zero(X.slice(block.rows.size(), 1));
    block.few.clear();
    if (!block.background.empty()) ops_->find_deviations(X, block.fragments, block.background, block.few);
    for (std::size_t c = 0; c < channels(); ++c) {
      const MatrixView<T> U = m.U[c].view().slice(block.offset, block.total());
      const Draws draws{batch.seed, batch.step, 0, block.rows};
      views_[v].encoders[c].forward(*ops_, parameters_, block.input(X), options_.hidden_dropout, draws,
                                    m.encoders[v][c], U);
      views_[v].norms[c].forward(*ops_, parameters_, U, block.missing, norm_,
                                 m.saved[c].view().slice(block.offset, block.total()),
                                 m.S[c].view().slice(block.offset, block.total()));
    }
  }
}

template <class T>
void MtdNetwork<T>::encode_backward(const UpdateRule& rule) {
  Memory& m = *memory_;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    const MatrixView<const T> X = m.X[v].take(block.total(), shape_.columns[v]);
    for (std::size_t c = 0; c < channels(); ++c) {
      const MatrixView<T> dS = m.dS[c].view().slice(block.offset, block.total());
      views_[v].norms[c].backward(*ops_, parameters_, m.U[c].view().slice(block.offset, block.total()),
                                  block.missing, m.saved[c].view().slice(block.offset, block.total()), rule,
                                  dS);
      views_[v].encoders[c].backward(*ops_, parameters_, block.input(X), dS, options_.hidden_dropout,
                                     block.rows.size(), m.encoders[v][c], rule, m.scratch, {});
    }
  }
}

template <class T>
void MtdNetwork<T>::fuse(const Batch& batch) {
  Memory& m = *memory_;
  const std::size_t b = batch.rows.size();
  const Slots slots = m.slots.view().top(b);
  const MatrixView<T> F = m.F.view().top(b), Z = m.Z.view().top(b), C = m.C.view().top(b);
  if (channels() == 1) {
    ops_->collect(m.S[0], slots, Share::mean, false, F);
  } else if (!options_.gate) {
    ops_->collect(m.S[0], slots, Share::mean, false, F);
    ops_->collect(m.S[1], slots, Share::mean, true, F);
  } else {
    for (std::size_t c = 0; c < 2; ++c)
      ops_->collect(m.S[c], slots, Share::mean, false, m.mean[c].view().top(b));
    ops_->gate_forward(m.mean[0].view().top(b), m.mean[1].view().top(b), F);
  }
  if (options_.fused_relu) {
    ops_->relu_forward(F, Z);
  } else {
    ops_->copy(F, false, Z);
  }
  if (options_.fused_dropout > 0) {
    ops_->copy(Z, false, C);
    ops_->dropout_forward(options_.fused_dropout, {batch.seed, batch.step, kFusedDropoutLayer, batch.rows},
                          m.keep_C.view().top(b), C);
  }
  classifier_.forward(*ops_, parameters_, options_.fused_dropout > 0 ? C : Z, false, m.logits.view().top(b));
}

// Decoders of the instances that are there: from S_v + O_v, from S_v alone, or from the fused vector. Forward, loss and
// backward of one view after the other, so that one view's reconstruction exists at a time.
template <class T>
double MtdNetwork<T>::decode(const Batch& batch, const UpdateRule& rule) {
  Memory& m = *memory_;
  const std::size_t b = batch.rows.size();
  const bool fused = options_.decoder_input == "fused";
  const std::size_t N = fused ? m.target_rows : m.stack_rows;
  const std::size_t decoded =
      options_.decoder_input == "shared" ? 1 : channels();  // channels that reach the decoder
  const MatrixView<T> D = m.D.view().top(N), dD = m.dD.view().top(N);
  if (fused) {
    ops_->spread(m.F.view().top(b), m.target_slots.view().top(b), Share::sum, false, D);
  } else {
    for (std::size_t c = 0; c < decoded; ++c) ops_->copy(m.S[c].view().top(N), c > 0, D);
    ops_->zero(dD);  // the rows that stand for missing instances are not decoded
  }
  double value = 0;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = fused ? m.targets[v] : m.blocks[v];
    const std::size_t r = block.rows.size(), d = shape_.columns[v];
    const MatrixView<T> input = D.slice(block.offset, r);
    const MatrixView<T> reconstruction = m.reconstruction.take(r, d);
    views_[v].decoder.forward(*ops_, parameters_, input, 0, {}, m.decoders[v], reconstruction);
    MatrixView<T> target = m.X[v].take(options_.reconstruction_target == "masked" ? r : 0, d);
    if (options_.reconstruction_target == "clean") {
      target = m.target.take(r, d);
      ops_->gather(batch.items->X[v], block.rows, {}, target);
    }
    value += ops_->reconstruction_loss(target, b, options_.gamma, reconstruction);
    views_[v].decoder.backward(*ops_, parameters_, input, reconstruction, 0, 0, m.decoders[v], rule,
                               m.scratch, dD.slice(block.offset, r));
  }
  if (fused) {
    ops_->collect(dD, m.target_slots.view().top(b), Share::sum, true, m.dF.view().top(b));
  } else {
    for (std::size_t c = 0; c < decoded; ++c) ops_->copy(dD, true, m.dS[c].view().top(N));
  }
  return value;
}

// One linear classifier a view on dropout(ReLU(S_v)), taught mostly by the fused probability.
template <class T>
double MtdNetwork<T>::classify_views(const Batch& batch, const UpdateRule& rule) {
  Memory& m = *memory_;
  const std::size_t N = m.stack_rows, b = batch.rows.size();
  const double rate = options_.fused_dropout;
  const auto part = [](auto& matrix, const auto& block) {
    return matrix.view().slice(block.offset, block.rows.size());
  };
  ops_->relu_forward(m.S[0].view().top(N), m.V.view().top(N));
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    if (rate > 0)
      ops_->dropout_forward(
          rate, {batch.seed, batch.step, kViewDropoutLayer + static_cast<std::uint32_t>(v), block.rows},
          part(m.keep_V, block), part(m.V, block));
    views_[v].classifier.forward(*ops_, parameters_, part(m.V, block), false, part(m.view_logits, block));
  }
  const double value =
      ops_->view_loss(m.logits.view().top(b), labels(batch), m.slots.view().top(b), options_.view_teacher,
                      options_.view_weight, m.view_logits.view().top(N));
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    views_[v].classifier.backward(*ops_, parameters_, part(m.V, block), part(m.view_logits, block), true,
                                  rule, part(m.dV, block));
    if (rate > 0) ops_->dropout_backward(rate, part(m.keep_V, block), part(m.dV, block));
    ops_->copy(part(m.dV, block), true, part(m.dS[0], block));
  }
  return value;
}

// Stacks and slots of a block of rows, and everything else that predicting them writes. Made once for many
// blocks.
template <class T>
struct MtdNetwork<T>::Embedding {
  Matrix<std::int32_t> slots;  // (rows, m)
  Matrix<T> S[2];              // stacks
  std::vector<std::uint32_t> rows;
  PingPong<T> scratch;
  Buffer<T> input;
  std::vector<Fragment> whole;  // nothing is hidden of any row
  Deviations few;
  PackedRows packed;
  Matrix<T> saved, fused[2];

  Embedding(const MtdNetwork& network, std::size_t most)
      : slots(most, network.views_.size()), saved(most, 2) {
    std::size_t widest = network.embedding_;
    for (const View& view : network.views_)
      for (const auto& encoder : view.encoders) widest = std::max(widest, encoder.widest());
    for (auto* buffer : {&scratch.first, &scratch.second, &input}) *buffer = Buffer<T>(most, widest);
    for (std::size_t c = 0; c < network.channels(); ++c) {
      S[c] = Matrix<T>(most * network.views_.size(), network.embedding_);
      fused[c] = Matrix<T>(most, network.embedding_);
    }
    rows.reserve(most);
    whole.resize(most);
  }
};

// Embeddings of some rows without masks and dropout, by the parameters that predict.
template <class T>
void MtdNetwork<T>::embed(const Items& items, std::size_t begin, std::size_t count,
                          Embedding& embedding) const {
  std::size_t offset = 0;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    auto& rows = embedding.rows;
    rows.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const bool there = items.W(begin + i, v) != 0;
      embedding.slots(i, v) = there ? static_cast<std::int32_t>(offset + rows.size()) : kNoRow;
      if (there) rows.push_back(static_cast<std::uint32_t>(begin + i));
    }
    const std::size_t r = rows.size();
    const MatrixView<T> X = embedding.input.take(r, shape_.columns[v]);
    ops_->gather(items.X[v], rows, {}, X);
    embedding.few.clear();
    if (const auto background = items.background(v); !background.empty())
      ops_->find_deviations(X, std::span(embedding.whole).first(r), background, embedding.few);
    LayerInput<T> input(X, embedding.few);
    if (input.few == nullptr && views_[v].encoders[0].packs(parameters_, r)) {
      ops_->pack_rows(X, embedding.packed);
      input = embedding.packed;
    }
    for (std::size_t c = 0; c < channels(); ++c) {
      const MatrixView<T> S = embedding.S[c].view().slice(offset, r);
      views_[v].encoders[c].predict(*ops_, parameters_, input, embedding.scratch, S);
      views_[v].norms[c].predict(*ops_, parameters_, norm_, embedding.saved.view().top(r), S);
    }
    offset += r;
  }
}

// S, O -> F -> Z -> logits of rows whose views are at the given slots of the stacks.
template <class T>
void MtdNetwork<T>::head(Slots slots, Embedding& embedding, MatrixView<T> logits) const {
  const std::size_t count = slots.rows;
  MatrixView<T> F = embedding.fused[0].view().top(count);
  ops_->collect(embedding.S[0], slots, Share::mean, false, F);
  if (channels() == 2) {
    const MatrixView<T> mean = embedding.fused[1].view().top(count);
    ops_->collect(embedding.S[1], slots, Share::mean, false, mean);
    if (options_.gate) {
      const MatrixView<T> gated = embedding.scratch.first.take(count, embedding_);
      ops_->gate_forward(F, mean, gated);
      F = gated;
    } else {
      ops_->copy(mean, true, F);
    }
  }
  if (options_.fused_relu) ops_->relu_forward(F, F);
  classifier_.predict(*ops_, parameters_, F, false, logits);
}

template <class T>
void MtdNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  const std::size_t n = items.rows(), blocks = (n + kPredictRows - 1) / kPredictRows;
  const auto workers = static_cast<std::size_t>(threads());
  // Many blocks: each thread takes its own through the whole network. Few: the threads share every product.
  const std::size_t grain = blocks < 2 * workers ? blocks : std::max<std::size_t>(1, blocks / (8 * workers));
  parallel_for(blocks, grain, [&](std::size_t first, std::size_t end) {
    Embedding embedding(*this, std::min(n, kPredictRows));
    for (std::size_t b = first; b < end; ++b) {
      const std::size_t begin = n * b / blocks, count = n * (b + 1) / blocks - begin;
      embed(items, begin, count, embedding);
      const MatrixView<T> out = scores.slice(begin, count);
      head(embedding.slots.view().top(count), embedding, out);
      ops_->sigmoid(out, out);
    }
  });
}

template <class T>
bool MtdNetwork<T>::predict_sets(const Items& items, const ViewSets& sets, MatrixView<T> logits) const {
  Embedding embedding(*this, kPredictRows);
  Matrix<std::int32_t> slots(kPredictRows, views_.size());
  std::size_t done = 0;
  for (std::size_t begin = 0; begin < items.rows() && done < sets.size(); begin += kPredictRows) {
    const std::size_t end = std::min(begin + kPredictRows, items.rows());
    embed(items, begin, end - begin, embedding);
    while (done < sets.size() && sets.rows[done] < end) {
      std::size_t count = 0;
      for (; count < kPredictRows && done + count < sets.size() && sets.rows[done + count] < end; ++count)
        for (std::size_t v = 0; v < views_.size(); ++v)
          slots(count, v) =
              sets.W(done + count, v) ? embedding.slots(sets.rows[done + count] - begin, v) : kNoRow;
      head(slots.view().top(count), embedding, logits.slice(done, count));
      done += count;
    }
  }
  return true;
}

template <class T>
void MtdNetwork<T>::channels(const Items& items, std::vector<Matrix<T>>& shared,
                             std::vector<Matrix<T>>& own) const {
  std::vector<Matrix<T>>* out[] = {&shared, &own};
  for (auto* matrices : out) matrices->clear();
  for (std::size_t c = 0; c < channels(); ++c)
    for (std::size_t v = 0; v < views_.size(); ++v) out[c]->emplace_back(items.rows(), embedding_);
  Embedding embedding(*this, std::min(items.rows(), kPredictRows));
  for (std::size_t begin = 0; begin < items.rows(); begin += kPredictRows) {
    const std::size_t count = std::min(kPredictRows, items.rows() - begin);
    embed(items, begin, count, embedding);
    for (std::size_t c = 0; c < channels(); ++c)
      for (std::size_t v = 0; v < views_.size(); ++v)
        for (std::size_t i = 0; i < count; ++i)
          if (const std::int32_t slot = embedding.slots(i, v); slot != kNoRow)
            std::ranges::copy(embedding.S[c].row(static_cast<std::size_t>(slot)),
                              (*out[c])[v].row(begin + i).begin());
  }
}

template <class T>
Matrix<T> MtdNetwork<T>::channel_similarity(const Items& items, std::size_t row) const {
  Embedding embedding(*this, 1);
  embed(items, row, 1, embedding);
  const std::size_t m = views_.size();
  Matrix<T> all(channels() * m, embedding_), similarity(channels() * m, channels() * m);
  for (std::size_t c = 0; c < channels(); ++c)
    for (std::size_t v = 0; v < m; ++v)
      if (embedding.slots(0, v) != kNoRow)
        std::ranges::copy(embedding.S[c].row(static_cast<std::size_t>(embedding.slots(0, v))),
                          all.row(c * m + v).begin());
  cosines<T>(all, similarity);
  return similarity;
}

// The class itself is instantiated in mtd.cc.
template void MtdNetwork<float>::encode(const Batch&);
template void MtdNetwork<float>::encode_backward(const UpdateRule&);
template void MtdNetwork<float>::fuse(const Batch&);
template double MtdNetwork<float>::decode(const Batch&, const UpdateRule&);
template double MtdNetwork<float>::classify_views(const Batch&, const UpdateRule&);
template void MtdNetwork<float>::predict(const Items&, MatrixView<float>) const;
template bool MtdNetwork<float>::predict_sets(const Items&, const ViewSets&, MatrixView<float>) const;
template void MtdNetwork<float>::channels(const Items&, std::vector<Matrix<float>>&,
                                          std::vector<Matrix<float>>&) const;
template Matrix<float> MtdNetwork<float>::channel_similarity(const Items&, std::size_t) const;
template void MtdNetwork<double>::encode(const Batch&);
template void MtdNetwork<double>::encode_backward(const UpdateRule&);
template void MtdNetwork<double>::fuse(const Batch&);
template double MtdNetwork<double>::decode(const Batch&, const UpdateRule&);
template double MtdNetwork<double>::classify_views(const Batch&, const UpdateRule&);
template void MtdNetwork<double>::predict(const Items&, MatrixView<double>) const;
template bool MtdNetwork<double>::predict_sets(const Items&, const ViewSets&, MatrixView<double>) const;
template void MtdNetwork<double>::channels(const Items&, std::vector<Matrix<double>>&,
                                           std::vector<Matrix<double>>&) const;
template Matrix<double> MtdNetwork<double>::channel_similarity(const Items&, std::size_t) const;

}  // namespace lacuna
