// The parts of a step, each forward beside its backward, and prediction.
#include <cmath>
#include <limits>
#include <numeric>

#include "base/threads.h"
#include "nn/mtd_memory.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kViewDropoutLayer = kFusedDropoutLayer + 1;

}  // namespace

template <class T>
void MtdNetwork<T>::encode(const Batch& batch) {
  Memory& m = *memory_;
  m.gathers.clear();
  m.forwards.clear();
  m.norms.clear();
  m.parts.clear();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    for (std::size_t c = 0; c < channels(); ++c)
      m.parts.push_back(part_of(encoder(v, c), m.S[c].view().slice(block.offset, block.rows.size())));
    if (!reads_here(v)) continue;
    const MatrixView<T> X = m.X[v].take(block.total(), shape_.columns[v]);
    m.gathers.push_back({.source = batch.items->rows_on(*ops_, v),
                         .rows = m.rows(block),
                         .hidden = m.fragments_of(block),
                         .background = batch.items->background_on(*ops_, v),
                         .out = X,
                         .form = m.X_forms[v].get()});
    for (std::size_t c = 0; c < channels(); ++c) {
      if (!division_.mine(encoder(v, c))) continue;
      const auto part = [&](EngineMatrix<T>& stack) {
        return stack.view().slice(block.offset, block.total());
      };
      m.forwards.push_back(
          {&views_[v].encoders[c], X, m.X_forms[v].get(), &m.encoders[v][c], m.rows(block), part(m.U[c])});
      m.norms.push_back(views_[v].norms[c].forward(parameters_, part(m.U[c]), block.missing, part(m.saved[c]),
                                                   part(m.S[c])));
    }
  }
  ops_->gather(m.gathers);
  gather_noise();
  forward<T>(*ops_, parameters_, m.forwards, options_.hidden_dropout, {batch.seed, batch.step, 0, {}});
  norm_forward<T>(*ops_, end_norm_, m.norms, norm_);
  ranks().exchange(m.parts, Ranks::embeddings);  // from here on every rank has all of them
}

// The k-th missing instance of a view in the batch gets row k of the view's noise, which is drawn once.
template <class T>
void MtdNetwork<T>::gather_noise() {
  Memory& m = *memory_;
  m.gathers.clear();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    if (block.noise == 0 || !reads_here(v)) continue;
    const MatrixView<T> X = m.X[v].take(block.total(), shape_.columns[v]);
    m.gathers.push_back({.source = RowSource(m.noise[v].view()),
                         .rows = m.parcel.at(m.noise_piece).first(block.noise),
                         .out = X.slice(block.rows.size(), block.noise)});
  }
  if (!m.gathers.empty()) ops_->gather(m.gathers);
}

template <class T>
void MtdNetwork<T>::encode_backward(const UpdateRule& rule) {
  Memory& m = *memory_;
  m.backwards.clear();
  m.norms_back.clear();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    if (!encodes_here(v)) continue;
    const auto& block = m.blocks[v];
    const MatrixView<const T> X = m.X[v].take(block.total(), shape_.columns[v]);
    for (std::size_t c = 0; c < channels(); ++c) {
      if (!division_.mine(encoder(v, c))) continue;
      const auto part = [&](EngineMatrix<T>& stack) {
        return stack.view().slice(block.offset, block.total());
      };
      m.norms_back.push_back(views_[v].norms[c].backward(parameters_, part(m.U[c]), block.missing,
                                                         part(m.saved[c]), part(m.dS[c])));
      m.backwards.push_back({&views_[v].encoders[c],
                             X,
                             m.X_forms[v].get(),
                             &m.encoders[v][c],
                             block.rows.size(),
                             part(m.dS[c]),
                             &m.scratch[v * channels() + c],
                             {}});
    }
  }
  norm_backward<T>(*ops_, end_norm_, m.norms_back, rule);
  backward<T>(*ops_, parameters_, m.backwards, options_.hidden_dropout, rule);
}

template <class T>
Draws MtdNetwork<T>::fused_draws(const Batch& batch) const {
  return {batch.seed, batch.step, kFusedDropoutLayer, memory_->rows()};
}

template <class T>
void MtdNetwork<T>::fuse(const Batch& batch) {
  Memory& m = *memory_;
  const std::size_t b = batch.rows.size();
  const Slots slots = m.slots_of(m.slots_piece);
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
    ops_->activate_forward(Activation::relu, F, Z);
  } else {
    ops_->copy(F, false, Z);
  }
  if (options_.fused_dropout > 0) {
    ops_->copy(Z, false, C);
    const DropoutJob<T> dropout{fused_draws(batch), C};
    ops_->dropout(options_.fused_dropout, {&dropout, 1});
  }
  const ForwardJob<T> job =
      classifier_.forward(parameters_, options_.fused_dropout > 0 ? C : Z, false, m.logits.view().top(b));
  ops_->linear_forward({&job, 1});
}

// Decoders of the instances that are there: from S_v + O_v, from S_v alone, or from the fused vector. Forward, loss and
// backward.
template <class T>
void MtdNetwork<T>::decode(const Batch& batch, const UpdateRule& rule, double* values) {
  Memory& m = *memory_;
  const std::size_t b = batch.rows.size();
  const bool fused = options_.decoder_input == DecoderInput::fused;
  const bool clean = options_.reconstruction_target == ReconstructionTarget::clean;
  const std::size_t N = fused ? m.target_rows : m.stack_rows;
  const std::size_t decoded =
      options_.decoder_input == DecoderInput::shared ? 1 : channels();  // channels that reach the decoder
  const MatrixView<T> D = m.D.view().top(N), dD = m.dD.view().top(N);
  const Slots target_slots = m.slots_of(m.target_slots_piece);
  if (fused) {
    ops_->spread(m.F.view().top(b), target_slots, Share::sum, false, D);
  } else {
    for (std::size_t c = 0; c < decoded; ++c) ops_->copy(m.S[c].view().top(N), c > 0, D);
    ops_->zero(dD);  // the rows that stand for missing instances are not decoded
  }
  m.gathers.clear();
  m.forwards.clear();
  m.backwards.clear();
  m.reconstructions.clear();
  m.parts.clear();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = fused ? m.targets[v] : m.blocks[v];
    const std::size_t r = block.rows.size(), d = shape_.columns[v];
    // Gradients go to all who fuse, or to those that encode the view; losses to everybody.
    m.parts.push_back({values + v, sizeof(double), division_.owner(decoder(v))});
    for (std::size_t c = 0; c < (fused ? 1 : decoded); ++c)
      if (c == 0 || division_.owner(encoder(v, c)) != division_.owner(encoder(v, 0)))
        m.parts.push_back(part_of(decoder(v), dD.slice(block.offset, r),
                                  fused ? Ranks::kEveryone : division_.owner(encoder(v, c))));
    if (!decodes_here(v)) continue;
    const MatrixView<T> input = D.slice(block.offset, r), reconstruction = m.reconstruction[v].take(r, d);
    const MatrixView<T> target = clean ? m.target[v].take(r, d) : m.X[v].take(r, d);
    if (clean)
      m.gathers.push_back({.source = batch.items->rows_on(*ops_, v), .rows = m.rows(block), .out = target});
    m.forwards.push_back({&views_[v].decoder, input, nullptr, &m.decoders[v], {}, reconstruction});
    m.reconstructions.push_back({target, reconstruction, values + v});
    m.backwards.push_back({&views_[v].decoder, input, nullptr, &m.decoders[v], 0, reconstruction,
                           &m.scratch[v * channels()], dD.slice(block.offset, r)});
  }
  if (clean) ops_->gather(m.gathers);
  forward<T>(*ops_, parameters_, m.forwards, 0, {});
  ops_->reconstruction_loss(m.reconstructions, b, options_.gamma);
  backward<T>(*ops_, parameters_, m.backwards, 0, rule);
  ranks().exchange(m.parts, Ranks::gradients);
  if (fused) {
    ops_->collect(dD, target_slots, Share::sum, true, m.dF.view().top(b));
  } else {
    for (std::size_t c = 0; c < decoded; ++c) ops_->copy(dD, true, m.dS[c].view().top(N));
  }
}

// One linear classifier a view on dropout(ReLU(S_v)), taught mostly by the fused probability.
template <class T>
void MtdNetwork<T>::classify_views(const Batch& batch, const UpdateRule& rule, double* value) {
  Memory& m = *memory_;
  const std::size_t N = m.stack_rows, b = batch.rows.size();
  const double rate = options_.fused_dropout;
  const auto part = [](auto& matrix, const auto& block) {
    return matrix.view().slice(block.offset, block.rows.size());
  };
  ops_->activate_forward(Activation::relu, m.S[0].view().top(N), m.V.view().top(N));
  if (end_norm_ == EndNorm::batch || end_norm_ == EndNorm::batch_noise)
    ops_->zero(m.dV.view().top(N));  // rows that stand for missing instances
  m.classifiers.clear();
  m.classifiers_back.clear();
  m.dropouts.clear();
  m.parts.clear();
  for (std::size_t v = 0; v < views_.size(); ++v) {
    const auto& block = m.blocks[v];
    m.parts.push_back(part_of(encoder(v, 0), part(m.view_logits, block)));
    if (!classifies_here(v)) continue;
    m.dropouts.push_back(
        {{batch.seed, batch.step, kViewDropoutLayer + static_cast<std::uint32_t>(v), m.rows(block)},
         part(m.V, block)});
    m.classifiers.push_back(
        views_[v].classifier.forward(parameters_, part(m.V, block), false, part(m.view_logits, block)));
    auto& back = m.classifiers_back.emplace_back(views_[v].classifier.backward(
        parameters_, part(m.V, block), part(m.view_logits, block), true, part(m.dV, block)));
    back.dropout = rate;
    back.dropped = block.rows.size();
  }
  if (rate > 0) ops_->dropout(rate, m.dropouts);
  ops_->linear_forward(m.classifiers);
  ranks().exchange(m.parts, Ranks::logits);  // the loss is one number over all views
  ops_->view_loss(m.logits.view().top(b), labels(batch), m.slots_of(m.slots_piece), options_.view_teacher,
                  options_.view_weight, m.view_logits.view().top(N), value);
  ops_->linear_backward(m.classifiers_back, rule);
  ops_->copy(m.dV.view().top(N), true, m.dS[0].view().top(N));
}

// Stacks and slots of a block of rows, and everything else that predicting them writes. Made once for many
// blocks.
template <class T>
struct MtdNetwork<T>::Embedding {
  Matrix<std::int32_t> slots_here;                   // (rows, m)
  std::vector<std::vector<std::uint32_t>> rows;      // per view
  std::vector<Parcel::Piece<std::uint32_t>> pieces;  // the same in the parcel
  Parcel parcel;
  Slots slots;           // in the engine's memory
  EngineMatrix<T> S[2];  // stacks
  // Per view (and channel), or one for all where they go one after the other.
  const bool together;
  std::vector<PingPong<T>> scratch;
  std::vector<Buffer<T>> input;
  std::vector<FormPointer> forms;
  EngineMatrix<T> saved, fused[2], gated, out;
  std::vector<GatherJob<T>> gathers;
  std::vector<ChainPrediction<T>> chains;
  std::vector<NormForward<T>> norms;
  std::vector<Ranks::Part> parts;  // what ranks exchange

  Embedding(const MtdNetwork& network, std::size_t most)
      : slots_here(most, network.views_.size()),
        rows(network.views_.size()),
        together(network.ops_->blocks().together),
        saved(*network.ops_, most * network.views_.size(), 2),
        gated(*network.ops_, most, network.embedding_),
        out(*network.ops_, most, network.shape_.labels) {
    const Ops<T>& ops = *network.ops_;
    std::size_t widest = 0, broadest = 0;
    for (const View& view : network.views_) widest = std::max(widest, view.encoders[0].widest());
    for (const std::size_t d : network.shape_.columns) broadest = std::max(broadest, d);
    const auto add = [&](std::size_t columns, std::size_t width, std::size_t channels) {
      input.emplace_back(ops, most, columns);
      forms.push_back(ops.input_form(most, columns));
      for (std::size_t c = 0; c < channels; ++c) scratch.emplace_back(ops, most, width);
    };
    if (!together) add(broadest, widest, 1);
    for (std::size_t v = 0; v < rows.size(); ++v) {
      rows[v].reserve(most);
      if (together)
        add(network.shape_.columns[v], network.views_[v].encoders[0].widest(), network.channels());
    }
    for (std::size_t c = 0; c < network.channels(); ++c) {
      S[c] = EngineMatrix<T>(ops, most * rows.size(), network.embedding_);
      fused[c] = EngineMatrix<T>(ops, most, network.embedding_);
    }
  }
};

// Embeddings of some rows without masks and dropout, by the parameters that predict.
template <class T>
void MtdNetwork<T>::embed(const Items& items, std::size_t begin, std::size_t count, Embedding& e) const {
  const std::size_t m = views_.size();
  std::size_t offset = 0;
  e.parcel.clear();
  e.pieces.clear();
  for (std::size_t v = 0; v < m; ++v) {
    auto& rows = e.rows[v];
    rows.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const bool there = items.W(begin + i, v) != 0;
      e.slots_here(i, v) = there ? static_cast<std::int32_t>(offset + rows.size()) : kNoRow;
      if (there) rows.push_back(static_cast<std::uint32_t>(begin + i));
    }
    offset += rows.size();
    e.pieces.push_back(e.parcel.put(std::span<const std::uint32_t>(rows)));
  }
  const auto slots = e.parcel.put(std::span<const std::int32_t>(e.slots_here.values()).first(count * m));
  e.parcel.send(*ops_);
  e.slots = {e.parcel.at(slots).data(), count, m};

  const auto hand_out = [&] {
    ops_->gather(e.gathers);
    if (e.together) {
      lacuna::predict<T>(*ops_, parameters_, e.chains);
    } else {
      for (const auto& chain : e.chains) lacuna::predict<T>(*ops_, parameters_, {&chain, 1});
    }
    norm_predict<T>(*ops_, end_norm_, e.norms, norm_);
    e.gathers.clear();
    e.chains.clear();
    e.norms.clear();
  };
  e.parts.clear();
  offset = 0;
  for (std::size_t v = 0; v < m; offset += e.rows[v].size(), ++v) {
    const std::size_t r = e.rows[v].size(), at = e.together ? v : 0;
    for (std::size_t c = 0; c < channels(); ++c)
      e.parts.push_back(part_of(encoder(v, c), e.S[c].view().slice(offset, r)));
    if (!encodes_here(v)) continue;
    const MatrixView<T> X = e.input[at].take(r, shape_.columns[v]);
    e.gathers.push_back({.source = items.rows_on(*ops_, v),
                         .rows = e.parcel.at(e.pieces[v]),
                         .background = items.background_on(*ops_, v),
                         .out = X,
                         .form = e.forms[at].get(),
                         .reader = parameters_.settled(views_[v].encoders[0].linear(0).W)});
    for (std::size_t c = 0; c < channels(); ++c) {
      if (!division_.mine(encoder(v, c))) continue;
      const MatrixView<T> S = e.S[c].view().slice(offset, r);
      PingPong<T>& scratch = e.scratch[e.together ? v * channels() + c : 0];
      e.chains.push_back({&views_[v].encoders[c], X, e.forms[at].get(), &scratch, S});
      e.norms.push_back(views_[v].norms[c].predict(parameters_, e.saved.view().slice(offset, r), S));
    }
    if (!e.together) hand_out();
  }
  if (e.together) hand_out();
  ranks().exchange(e.parts, Ranks::validation);
}

// S, O -> F -> Z -> logits of rows whose views are at the given slots of the stacks. Returns Z.
template <class T>
MatrixView<T> MtdNetwork<T>::head(Slots slots, Embedding& embedding, MatrixView<T> logits) const {
  const std::size_t count = slots.rows;
  MatrixView<T> F = embedding.fused[0].view().top(count);
  ops_->collect(embedding.S[0], slots, Share::mean, false, F);
  if (channels() == 2) {
    const MatrixView<T> mean = embedding.fused[1].view().top(count);
    ops_->collect(embedding.S[1], slots, Share::mean, false, mean);
    if (options_.gate) {
      const MatrixView<T> gated = embedding.gated.view().top(count);
      ops_->gate_forward(F, mean, gated);
      F = gated;
    } else {
      ops_->copy(mean, true, F);
    }
  }
  if (options_.fused_relu) ops_->activate_forward(Activation::relu, F, F);
  const ForwardJob<T> job = classifier_.predict(parameters_, F, false, logits);
  ops_->linear_forward({&job, 1});
  return F;
}

template <class T>
void MtdNetwork<T>::for_blocks(const Items& items, Body body) const {
  const auto turn = ops_->turn();
  const std::size_t block_rows = ops_->blocks().rows;
  const bool threaded = ops_->blocks().threads;
  const std::size_t n = items.rows(), blocks = (n + block_rows - 1) / block_rows;
  const auto workers = threaded ? static_cast<std::size_t>(threads()) : 1;
  // Many blocks: each thread takes its own through the whole network. Few: the threads share every product. Ranks take
  // one block after the other, together.
  const std::size_t grain = !threaded || blocks < 2 * workers || !ranks().alone()
                                ? blocks
                                : std::max<std::size_t>(1, blocks / (8 * workers));
  parallel_for(blocks, grain, [&](std::size_t first, std::size_t end) {
    Embedding embedding(*this, std::min(n, block_rows));
    for (std::size_t b = first; b < end; ++b) {
      const std::size_t begin = n * b / blocks, count = n * (b + 1) / blocks - begin;
      embed(items, begin, count, embedding);
      const MatrixView<T> out = embedding.out.view().top(count);
      body(begin, head(embedding.slots, embedding, out), out);
      items.leave(begin, count);
    }
  });
}

template <class T>
void MtdNetwork<T>::for_sets(const Items& items, const ViewSets& sets, Body body) const {
  const auto turn = ops_->turn();
  const std::size_t block = ops_->blocks().rows, m = views_.size();
  Embedding embedding(*this, block);
  Matrix<std::int32_t> slots(block, m);
  Parcel parcel;
  std::size_t done = 0;
  for (std::size_t begin = 0; begin < items.rows() && done < sets.size(); begin += block) {
    const std::size_t end = std::min(begin + block, items.rows());
    embed(items, begin, end - begin, embedding);
    while (done < sets.size() && sets.rows[done] < end) {
      std::size_t count = 0;
      for (; count < block && done + count < sets.size() && sets.rows[done + count] < end; ++count)
        for (std::size_t v = 0; v < m; ++v)
          slots(count, v) =
              sets.W(done + count, v) ? embedding.slots_here(sets.rows[done + count] - begin, v) : kNoRow;
      parcel.clear();
      const auto piece = parcel.put(std::span<const std::int32_t>(slots.values()).first(count * m));
      parcel.send(*ops_);
      const MatrixView<T> out = embedding.out.view().top(count);
      body(done, head({parcel.at(piece).data(), count, m}, embedding, out), out);
      done += count;
    }
  }
}

template <class T>
void MtdNetwork<T>::predict(const Items& items, MatrixView<T> scores) const {
  for_blocks(items, [&](std::size_t begin, MatrixView<T>, MatrixView<T> out) {
    ops_->activate_forward(Activation::sigmoid, out, out);
    download<T>(*ops_, out, scores.slice(begin, out.rows));
  });
}

template <class T>
bool MtdNetwork<T>::predict_sets(const Items& items, const ViewSets& sets, MatrixView<T> logits) const {
  for_sets(items, sets, [&](std::size_t begin, MatrixView<T>, MatrixView<T> out) {
    download<T>(*ops_, out, logits.slice(begin, out.rows));
  });
  return true;
}

template <class T>
bool MtdNetwork<T>::fused(const Items& items, typename BasicNetwork<T>::FusedSink sink) const {
  for_blocks(items, [&](std::size_t begin, MatrixView<T> Z, MatrixView<T> out) {
    give_host<T>(*ops_, begin, Z, out, sink);
  });
  return true;
}

template <class T>
bool MtdNetwork<T>::fused_sets(const Items& items, const ViewSets& sets,
                               typename BasicNetwork<T>::FusedSink sink) const {
  for_sets(items, sets, [&](std::size_t begin, MatrixView<T> Z, MatrixView<T> out) {
    give_host<T>(*ops_, begin, Z, out, sink);
  });
  return true;
}

template <class T>
void MtdNetwork<T>::channels(const Items& items, std::vector<Matrix<T>>& shared,
                             std::vector<Matrix<T>>& own) const {
  const auto turn = ops_->turn();
  std::vector<Matrix<T>>* out[] = {&shared, &own};
  for (auto* matrices : out) matrices->clear();
  for (std::size_t c = 0; c < channels(); ++c)
    for (std::size_t v = 0; v < views_.size(); ++v) out[c]->emplace_back(items.rows(), embedding_);
  const std::size_t block_rows = std::max<std::size_t>(1, std::min(items.rows(), ops_->blocks().rows));
  Embedding embedding(*this, block_rows);
  Matrix<T> stack(block_rows * views_.size(), embedding_);
  for (std::size_t begin = 0; begin < items.rows(); begin += block_rows) {
    const std::size_t count = std::min(block_rows, items.rows() - begin);
    embed(items, begin, count, embedding);
    for (std::size_t c = 0; c < channels(); ++c) {
      download<T>(*ops_, embedding.S[c], stack);
      for (std::size_t v = 0; v < views_.size(); ++v)
        for (std::size_t i = 0; i < count; ++i)
          if (const std::int32_t slot = embedding.slots_here(i, v); slot != kNoRow)
            std::ranges::copy(stack.row(static_cast<std::size_t>(slot)), (*out[c])[v].row(begin + i).begin());
    }
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
      if (const std::int32_t slot = embedding.slots_here(0, v); slot != kNoRow)
        download<T>(*ops_, embedding.S[c].view().slice(static_cast<std::size_t>(slot), 1),
                    all.view().slice(c * m + v, 1));
  cosines<T>(all, similarity);
  return similarity;
}

// The class itself is instantiated in mtd.cc.
template void MtdNetwork<float>::encode(const Batch&);
template void MtdNetwork<float>::encode_backward(const UpdateRule&);
template void MtdNetwork<float>::fuse(const Batch&);
template void MtdNetwork<float>::decode(const Batch&, const UpdateRule&, double*);
template Draws MtdNetwork<float>::fused_draws(const Batch&) const;
template void MtdNetwork<float>::classify_views(const Batch&, const UpdateRule&, double*);
template void MtdNetwork<float>::predict(const Items&, MatrixView<float>) const;
template bool MtdNetwork<float>::predict_sets(const Items&, const ViewSets&, MatrixView<float>) const;
template bool MtdNetwork<float>::fused(const Items&, BasicNetwork<float>::FusedSink) const;
template bool MtdNetwork<float>::fused_sets(const Items&, const ViewSets&,
                                            BasicNetwork<float>::FusedSink) const;
template void MtdNetwork<float>::channels(const Items&, std::vector<Matrix<float>>&,
                                          std::vector<Matrix<float>>&) const;
template Matrix<float> MtdNetwork<float>::channel_similarity(const Items&, std::size_t) const;
template void MtdNetwork<double>::encode(const Batch&);
template void MtdNetwork<double>::encode_backward(const UpdateRule&);
template void MtdNetwork<double>::fuse(const Batch&);
template void MtdNetwork<double>::decode(const Batch&, const UpdateRule&, double*);
template Draws MtdNetwork<double>::fused_draws(const Batch&) const;
template void MtdNetwork<double>::classify_views(const Batch&, const UpdateRule&, double*);
template void MtdNetwork<double>::predict(const Items&, MatrixView<double>) const;
template bool MtdNetwork<double>::predict_sets(const Items&, const ViewSets&, MatrixView<double>) const;
template bool MtdNetwork<double>::fused(const Items&, BasicNetwork<double>::FusedSink) const;
template bool MtdNetwork<double>::fused_sets(const Items&, const ViewSets&,
                                             BasicNetwork<double>::FusedSink) const;
template void MtdNetwork<double>::channels(const Items&, std::vector<Matrix<double>>&,
                                           std::vector<Matrix<double>>&) const;
template Matrix<double> MtdNetwork<double>::channel_similarity(const Items&, std::size_t) const;

}  // namespace lacuna
