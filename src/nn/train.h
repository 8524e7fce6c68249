// The epoch loop of all networks: mini-batches, schedule, validation, selection of the best epoch,
// divergence, snapshots. The network computes a step (nn/network.h); FitContext (nn/fit.h) handles progress,
// checkpoints and signals.
//
// Deterministic: the same items, options and seed give the same bits for any number of threads, and a run
// that continues from a snapshot ends with the bits of one that was never stopped.
#pragma once

#include <cstdint>
#include <string>

#include "base/options.h"
#include "base/tensors.h"
#include "data/items.h"
#include "data/metrics.h"
#include "nn/fit.h"
#include "nn/network.h"
#include "nn/schedule.h"

namespace lacuna {

inline std::vector<const char*> names_of(Optimiser) { return {"sgd", "adam", "adamw", "rmsprop"}; }
inline std::vector<const char*> names_of(Schedule) { return {"constant", "cosine"}; }

struct TrainOptions {
  std::int64_t epochs = 100;
  std::int64_t batch = 128;         // rows of a step
  bool shuffle = true;              // a new order each epoch; otherwise the order of the items
  std::int64_t window = 0;          // rows that are mixed; 0 = all, for mapped items kWindowBytes
  bool drop_last = false;           // leave out the last, smaller batch of an epoch
  Optimiser optimiser = Optimiser::adamw;
  double rate = 1e-3;               // η
  double momentum = .9;             // sgd, rmsprop: momentum; adam: β1
  double beta2 = .999;
  double epsilon = 1e-8;
  double weight_decay = 0;            // on matrices only where the network says so (ParameterView::decay)
  double decay_rows = 0;              // number of training rows for which weight_decay is meant; 0 = any
  Schedule schedule = Schedule::constant;
  double warm_up = 0;                 // epochs over which the rate rises from 0
  double average = 0;                 // decay of the running average of the parameters; 0 = none
  std::int64_t validate_every = 1;    // epochs; the last epoch is always validated
  std::int64_t patience = 0;          // epochs without a better one before stopping; 0 = never
  std::string select =
      "authors";  // authors = .5 AP + .25 (1-RL) + .5 AUC; a metric's name; last = no selection

  std::int64_t last_epoch =
      0;  // ends after this epoch, with the learning rates of `epochs`; not a setting; 0 = epochs
  std::uint64_t beside = 0;    // bytes of the model file besides the network; not a setting
  std::string precision = {};  // of the network's products; not a setting, only noted in snapshots

  void declare(Options& options);
};

// The default window of mapped items. A constant, so that no result depends on a memory limit.
constexpr std::size_t kWindowBytes = std::size_t{256} << 20;
// Rows that are mixed; 0 = all.
std::size_t window_rows(const TrainOptions& options, bool mapped, std::size_t row_bytes);

// The weight decay of a training on that many rows: fewer rows need more. The root was found by experiment
// (docs/best.md): constant decay is too weak on small sets, decay in proportion to 1/rows too strong.
double decay_for(const TrainOptions& options, std::size_t rows);

constexpr const char* kTrainPrecision = "precision";  // its key in the metadata of models and snapshots

// The number that selection maximises.
double selection_score(const Metrics& metrics, const std::string& select);

// Trains `network` on `train` and leaves the parameters of the best epoch in it (of the last one if `val` has
// no rows or select is "last"); returns the number of that epoch. If averaging is on, value and mean both end as the
// best mean. Throws Diverged naming the loss and the epoch; the network then has the best parameters before that, if
// there are any.
std::int64_t train_network(Network& network, const Items& train, const Items& val,
                           const TrainOptions& options, FitContext& context);

}  // namespace lacuna
