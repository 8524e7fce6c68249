// Soft labels for unknown entries, in training: a matrix Q that the fused output is taught with where nothing
// is known. Either the network's own predictions, renewed every few epochs, or given with the items
// (Items::Q), by teachers.
#pragma once

#include <algorithm>

#include "nn/mtd_options.h"
#include "nn/network.h"

namespace lacuna {

template <class T>
class SoftLabels {
 public:
  void keep(const MtdOptions& options, std::size_t rows, std::size_t labels) {
    if (options.guess_weight == 0 || !guesses_.empty()) return;
    guesses_ = Matrix<T>(rows, labels);
    epoch_ = Matrix<T>(1, 1);
    epoch_(0, 0) = T(-1);
  }

  // Whether this step uses them. Asked before the step, so that own ones are predictions for all training
  // rows, clean, by the averaged parameters where kept.
  bool prepare(const MtdOptions& options, const Batch& batch, const BasicNetwork<T>& network) {
    if (options.guess_weight == 0 || batch.epoch < options.guess_from) return false;
    const std::int64_t since = batch.epoch - options.guess_from;
    const T due = static_cast<T>(batch.epoch - since % options.guess_every);
    if (batch.items->Q.empty()) {
      if (epoch_(0, 0) != due) network.predict(*batch.items, guesses_);
      epoch_(0, 0) = due;
    } else if (epoch_(0, 0) < 0) {
      std::ranges::copy(batch.items->Q.values(), guesses_.values().begin());
      epoch_(0, 0) = due;
    }
    return true;
  }

  MatrixView<const T> view() const { return guesses_; }

  // What a resumed training needs: own predictions of an epoch cannot be made again later.
  void visit(typename BasicNetwork<T>::BufferVisitor visitor) {
    if (guesses_.empty()) return;
    visitor("guesses", guesses_);
    visitor("guesses.epoch", epoch_);
  }

 private:
  Matrix<T> guesses_;  // (n, c); empty where they are not used
  Matrix<T> epoch_;    // (1, 1) when they were made, -1 = never
};

}  // namespace lacuna
