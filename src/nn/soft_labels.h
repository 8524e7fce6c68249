// Soft labels: a matrix Q of targets of the fused output for unknown entries, in training. They are the network's
// own predictions, renewed every few epochs, or predictions of teachers that come with the items (Items::Q).
// With --guess-links w the known labels of a row change them:
//   log-odds_j ← log-odds_j + w Σ_{k known} θ_jk (y_k - p_k)
// θ are the shrunk log odds ratios of the training labels (data/label_graph.h), p the soft labels of known entries.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/threads.h"
#include "data/label_graph.h"
#include "nn/mtd_options.h"
#include "nn/network.h"

namespace lacuna {

template <class T>
class SoftLabels {
 public:
  void keep(const Engine& engine, const MtdOptions& options, std::size_t rows, std::size_t labels) {
    if (options.guess_weight == 0 || !guesses_.empty()) return;
    guesses_ = EngineMatrix<T>(engine, rows, labels);
    epoch_ = EngineMatrix<T>(engine, 1, 1);
    set_epoch(engine, T(-1));
  }

  // Whether this step uses them. Called before the step: the network's own soft labels are then predicted for all
  // training rows, without masks, with the averaged parameters if these are kept.
  bool prepare(const Engine& engine, const MtdOptions& options, const Batch& batch,
               const BasicNetwork<T>& network) {
    if (options.guess_weight == 0 || batch.epoch < options.guess_from) return false;
    const std::int64_t since = batch.epoch - options.guess_from;
    const T due = static_cast<T>(batch.epoch - since % options.guess_every), made = epoch(engine);
    const bool own = batch.items->Q.empty();
    if (own ? made == due : made >= 0) return true;
    if (own && engine.on_host()) {  // where they stay
      network.predict(*batch.items, guesses_);
      link(*batch.items, options.guess_links, guesses_);
    } else {
      Matrix<T> fresh(guesses_.rows(), guesses_.cols());
      if (own) {
        network.predict(*batch.items, fresh);
      } else {
        std::ranges::copy(batch.items->Q.values(), fresh.values().begin());
      }
      link(*batch.items, options.guess_links, fresh);
      upload<T>(engine, fresh, guesses_);
    }
    set_epoch(engine, due);
    return true;
  }

  MatrixView<const T> view() const { return guesses_; }

  // What a resumed training needs, because own predictions of an earlier epoch cannot be repeated.
  void visit(typename BasicNetwork<T>::BufferVisitor visitor) {
    if (guesses_.empty()) return;
    visitor("guesses", guesses_, false);
    visitor("guesses.epoch", epoch_, false);
    known_epoch_.reset();  // the visitor may have written it
  }

 private:
  void link(const Items& items, double weight, MatrixView<T> guesses) {
    if (weight == 0) return;
    const std::size_t c = items.labels();
    if (couplings_.empty()) {
      const LabelGraph graph(truth_of(items));
      couplings_ = Matrix<float>(c, c);
      for (std::size_t k = 0; k < c; ++k)
        for (std::size_t j = 0; j < c; ++j)
          if (j != k) couplings_(k, j) = static_cast<float>(weight * graph.log_odds_ratio(j, k));
    }
    items.for_rows([&](std::size_t first, std::size_t last) {
      parallel_for(last - first, 16, [&](std::size_t begin, std::size_t end) {
        std::vector<float> shift(c);
        for (std::size_t i = first + begin; i < first + end; ++i) {
          std::ranges::fill(shift, 0.f);
          for (std::size_t k = 0; k < c; ++k) {
            if (items.G(i, k) == 0) continue;
            const float surprise = items.Y(i, k) - static_cast<float>(guesses(i, k));
            for (std::size_t j = 0; j < c; ++j) shift[j] += surprise * couplings_(k, j);
          }
          for (std::size_t j = 0; j < c; ++j) guesses(i, j) = moved(guesses(i, j), shift[j]);
        }
      });
    });
  }
  // The probability whose log-odds are larger by `shift`.
  static T moved(T p, float shift) {
    const T limit = T(1e-6), q = std::clamp(p, limit, 1 - limit);
    return 1 / (1 + (1 - q) / q * std::exp(-static_cast<T>(shift)));
  }
  void set_epoch(const Engine& engine, T epoch) {
    upload<T>(engine, {&epoch, 1, 1}, epoch_);
    known_epoch_ = epoch;
  }
  T epoch(const Engine& engine) {
    T value = 0;
    if (!known_epoch_) {
      download<T>(engine, epoch_, {&value, 1, 1});
      known_epoch_ = value;
    }
    return *known_epoch_;
  }

  Matrix<float> couplings_;       // w θ (c, c), if they are used
  EngineMatrix<T> guesses_;       // (n, c); empty if they are not used
  EngineMatrix<T> epoch_;         // (1, 1) when they were made, -1 = never
  std::optional<T> known_epoch_;  // the same, in the host's memory
};

}  // namespace lacuna
