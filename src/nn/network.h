// The interface between a network and the loop that trains it (nn/train.h). A network owns its parameters, their
// optimiser state and its work space; it computes one step at a time. It knows nothing about the order of rows,
// schedules, validation, files or progress.
//
// A template on the number type, so that tests compute finite differences of whole models in double; the program
// trains Network = BasicNetwork<float>.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "base/ranks.h"
#include "base/threads.h"
#include "data/items.h"
#include "ops/engine.h"
#include "ops/update.h"

namespace lacuna {

// The rows of one step, in the order given. Random numbers of the step (fragment masks, dropout, view
// dropout) are pure functions of seed, epoch, step and the row's position in items, never of threads or of
// earlier calls.
struct Batch {
  const Items* items = nullptr;
  std::span<const std::uint32_t> rows;  // positions in items
  std::uint64_t seed = 1;
  std::uint32_t epoch = 0;  // 0, 1, ...
  std::uint32_t step = 0;   // 0, 1, ... over the whole training, never reset
};

// The losses of a step: "total" first, then its parts before weighting, in the network's own order. The names
// are string literals. A loss may be NaN or infinite; the loop handles that.
struct Losses {
  struct Entry {
    const char* name = "";
    double value = 0;
  };
  static constexpr std::size_t kMost = 12;
  std::array<Entry, kMost> entries{};
  std::size_t count = 0;

  void add(const char* name, double value) {
    if (count == kMost) throw std::length_error("a step reports more losses than Losses holds");
    entries[count++] = {name, value};
  }
  double total() const { return count == 0 ? 0 : entries[0].value; }
  const Entry* begin() const { return entries.data(); }
  const Entry* end() const { return entries.data() + count; }
};

// The sizes that a network is made for.
struct NetworkShape {
  std::vector<std::size_t> columns;  // per view
  std::size_t labels = 0;
  std::size_t training_rows = 0;      // how many items there are to learn from; only soft labels need it
  bool prediction_only = false;       // leave out what only training needs; step() is then not allowed
  std::uint64_t most_parameters = 0;  // more are Exit::data, before memory is allocated; 0 = no limit
  const Ranks* ranks = nullptr;       // the ranks that train it together; null = this process alone
};

// The optimiser state that a network keeps for each parameter; decided once, before the first step.
struct OptimiserState {
  bool second = false;  // second moment: every optimiser except sgd
  bool mean = false;    // running average of the parameters
};

template <class T>
class BasicNetwork {
 public:
  virtual ~BasicNetwork() = default;

  // Called once, before the first step and before a checkpoint is restored. `mean` starts as a copy of the
  // value.
  virtual void keep(OptimiserState state) = 0;

  // Forward, backward and update of every parameter. Allocates nothing after the first call with the largest
  // batch. The returned losses are those before the update.
  virtual Losses step(const Batch& batch, const UpdateRule& rule) = 0;
  // The same in two parts, for engines that compute while the host prepares the next step: at most
  // engine().steps_ahead() steps are started before the first of them is finished.
  virtual void start(const Batch& batch, const UpdateRule& rule) { done_ = step(batch, rule); }
  virtual Losses finish() { return done_; }

  // The engine in whose memory the views of visit() and visit_buffers() lie.
  virtual const Engine& engine() const { return host_engine(); }

  // The ranks among which the network is divided. They step and predict together; on each rank visit() and
  // visit_buffers() show the rank's own part and the parts that all ranks have.
  virtual const Ranks& ranks() const { return one_rank(); }

  // Sigmoid scores (n, c) without masks and dropout, with running statistics, and with the running average of
  // the parameters where it is kept. Const and re-entrant.
  virtual void predict(const Items& items, MatrixView<T> scores) const = 0;

  // Logits (k, c) of items with some of their views removed. Only for networks that encode each view once and not once
  // for every set of views; others return false and do nothing. Const and re-entrant.
  virtual bool predict_sets(const Items&, const ViewSets&, MatrixView<T> /*logits*/) const { return false; }

  // Input and output of the classifier, in blocks of rows: the fused vectors Z (k, d_e), after the ReLU if there is
  // one, and the logits (k, c), in the host's memory. Row `begin` of the items, or of the sets, is the first of a
  // block. Blocks may come from several threads at once. Const and re-entrant.
  using FusedSink = FunctionRef<void(std::size_t begin, MatrixView<const T> Z, MatrixView<T> logits)>;
  // Returns false and does nothing if the network has no such vectors.
  virtual bool fused(const Items&, FusedSink) const { return false; }
  // The same for items with some of their views removed; false if predict_sets returns false.
  virtual bool fused_sets(const Items&, const ViewSets&, FusedSink) const { return false; }
  virtual std::size_t fused_size() const { return 0; }  // d_e

  // Declares that the parameters no longer change, as in a loaded model: predictions may store them in another form
  // as well.
  virtual void settle() {}

  // Every learned tensor with its optimiser state, always in the same order and with the same names. The views
  // point into the network, in its engine's memory: upload to them to restore a checkpoint. `for_prediction` is
  // false for parts that only training needs (decoders, view classifiers): they are in checkpoints, but not in model
  // files.
  using Visitor = FunctionRef<void(const std::string& name, ParameterView<T> parameter, bool for_prediction)>;
  virtual void visit(Visitor visitor) = 0;
  // Everything else that a step changes and a later step or a prediction reads: running statistics of batch norm, which
  // are `for_prediction`, and soft labels, which are not.
  using BufferVisitor = FunctionRef<void(const std::string& name, MatrixView<T> buffer, bool for_prediction)>;
  virtual void visit_buffers(BufferVisitor visitor) = 0;

  virtual std::uint64_t parameters() const = 0;                 // in training
  virtual std::uint64_t parameters_for_prediction() const = 0;  // those of them that a model file contains

 private:
  Losses done_;
};

// Passes a block to such a sink, after downloading it if the engine's memory is not the host's.
template <class T>
void give_host(const Engine& engine, std::size_t begin, MatrixView<T> Z, MatrixView<T> logits,
               typename BasicNetwork<T>::FusedSink sink) {
  if (engine.on_host()) return sink(begin, Z, logits);
  Matrix<T> Z_here(Z.rows, Z.cols), logits_here(logits.rows, logits.cols);
  download<T>(engine, Z, Z_here);
  download<T>(engine, logits, logits_here);
  sink(begin, Z_here, logits_here);
}

using Network = BasicNetwork<float>;

}  // namespace lacuna
