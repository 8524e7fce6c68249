#include "nn/train.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "nn/best_copy.h"
#include "nn/read_ahead.h"
#include "nn/row_order.h"
#include "nn/stored.h"

namespace lacuna {
namespace {

constexpr const char* kState = "train";  // key of the loop's own numbers in a snapshot's metadata

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

// The loop with all of its state; everything that a later step depends on is in snapshot().
class Training {
 public:
  Training(Network& network, const Items& train, const Items& val, const TrainOptions& options,
           FitContext& context)
      : network_(network),
        train_(train),
        val_(val),
        options_(options),
        context_(context),
        selecting_(val.rows() > 0 && options.select != "last"),
        epochs_(options.last_epoch > 0 ? std::min(options.last_epoch, options.epochs) : options.epochs),
        ahead_(train, network.engine().on_host()),
        best_(network) {
    const auto n = static_cast<std::int64_t>(train.rows());
    batch_ = std::min(options.batch, n);
    steps_per_epoch_ = options.drop_last ? n / batch_ : (n + batch_ - 1) / batch_;
    rule_.optimiser = options.optimiser;
    rule_.momentum = options.momentum;
    rule_.beta2 = options.beta2;
    rule_.epsilon = options.epsilon;
    rule_.weight_decay = decay_for(options, train.rows());
    if (val.rows() > 0) {
      truth_ = truth_of(val);
      scores_ = Matrix<float>(val.rows(), val.labels());
    }
  }

  std::int64_t run() {
    network_.keep({.second = rule_.optimiser != Optimiser::sgd, .mean = options_.average > 0});
    if (const Tensors* state = context_.resume_from()) restore(*state);
    announce_sizes();
    while (epoch_ < epochs_ && !finished_ && !context_.stopping()) run_epoch();
    if (epoch_ == 0 && epochs_ > 0)
      fail(Exit::interrupted, "stopped within the first epoch: nothing is learned yet");
    const bool selected = selecting_ && best_epoch_ > 0;
    if (selected) best_.put_back();
    check_parameters();
    return selected ? best_epoch_ : epoch_;
  }

 private:
  void run_epoch() {
    ahead_.leave();
    order_ = row_order(train_.rows(), window_rows(options_, train_.mapped, train_.row_bytes()),
                       options_.shuffle, context_.seed, static_cast<std::uint32_t>(epoch_));
    double begun = steady_seconds();
    for (; next_ < steps_per_epoch_; ++next_) {
      if (next_ > 0) {
        seconds_ += steady_seconds() - begun;
        context_.after_step([this](Tensors& file) {
          finish_steps();
          snapshot(file);
        });
        if (context_.stopping()) {  // a part of an epoch is in no record
          finish_steps();
          return;
        }
        begun = steady_seconds();
      }
      one_step();
    }
    finish_steps();
    ahead_.leave();
    seconds_ += steady_seconds() - begun;
    const double epoch_seconds = seconds_ - epoch_began_;
    ++epoch_;
    EpochRecord record;
    record.epoch = epoch_;
    record.epochs = epochs_;
    record.seconds = seconds_;
    record.rows_per_second = epoch_seconds > 0 ? rows_done_ / epoch_seconds : 0;
    for (const auto& [name, sum] : sums_) record.losses[name] = sum / rows_done_;
    next_ = 0;
    sums_.clear();
    rows_done_ = 0;
    epoch_began_ = seconds_;
    const bool last = epoch_ == epochs_;
    if (val_.rows() > 0 && (last || epoch_ % options_.validate_every == 0)) validate(record);
    record.kept = best_epoch_;
    if (options_.patience > 0 && best_epoch_ > 0 && epoch_ - best_epoch_ >= options_.patience)
      finished_ = true;
    if (!context_.after_epoch(record, [this](Tensors& file) { snapshot(file); })) finished_ = true;
  }

  void one_step() {
    const std::size_t begin = static_cast<std::size_t>(next_ * batch_);
    const std::size_t count = std::min(static_cast<std::size_t>(batch_), order_.rows.size() - begin);
    ahead_.reach(order_, begin);
    const Batch batch{&train_, std::span(order_.rows).subspan(begin, count), context_.seed,
                      static_cast<std::uint32_t>(epoch_), static_cast<std::uint32_t>(step_)};
    const auto steps = static_cast<double>(steps_per_epoch_);
    rule_.rate = options_.rate * rate_factor(options_.schedule, step_, options_.warm_up * steps,
                                             options_.epochs * steps_per_epoch_);
    rule_.step = ++step_;
    rule_.average = options_.average > 0 ? average_decay(options_.average, step_) : 0;
    network_.start(batch, rule_);
    under_way_.push_back({step_, epoch_ + 1, count});
    if (under_way_.size() >= network_.engine().steps_ahead()) finish_step();
  }

  // Waits for the oldest step under way and adds its losses up.
  void finish_step() {
    const Started step = under_way_.front();
    under_way_.erase(under_way_.begin());
    const Losses losses = network_.finish();
    const char* broken = nullptr;  // a part says more than the total, which comes first
    for (const auto& loss : losses) {
      if (!std::isfinite(loss.value)) broken = loss.name;
      sums_[loss.name] += loss.value * static_cast<double>(step.rows);
    }
    if (broken != nullptr) {
      step_ = step.step;
      diverged(fmt::format("the loss '{}' is no longer a number", broken), step.epoch);
    }
    rows_done_ += static_cast<double>(step.rows);
  }
  void finish_steps() {
    while (!under_way_.empty()) finish_step();
  }

  void validate(EpochRecord& record) {
    network_.predict(val_, scores_);
    if (!all_finite(scores_.values())) diverged("validation scores are no longer numbers", epoch_);
    record.validated = true;
    record.validation = evaluate(scores_, truth_);
    if (!selecting_) return;
    double score = selection_score(record.validation, options_.select);
    if (std::isnan(score))
      score = std::numeric_limits<double>::lowest();     // a metric that is undefined on these rows
    if (best_epoch_ > 0 && score < best_score_) return;  // of equal epochs the later one is kept
    best_epoch_ = epoch_;
    best_score_ = score;
    best_.take();
  }

  [[noreturn]] void diverged(const std::string& what, std::int64_t epoch) {
    const bool kept = selecting_ && best_epoch_ > 0;
    if (kept) best_.put_back();
    throw Diverged(
        fmt::format(
            "training diverged: {} in epoch {} of {} (step {}); a smaller --rate (now {}) often helps", what,
            epoch, epochs_, step_, options_.rate),
        kept);
  }

  // Ranks find out together: each sees parameters of its own only.
  void check_parameters() {
    std::string broken;
    network_.visit([&](const std::string& name, ParameterView<float> p, bool) {
      const HostCopy value(network_.engine(), p.value);
      for (std::size_t i = 0; i < value.view().rows && broken.empty(); ++i)
        if (!all_finite(value.view().row(i))) broken = name;
    });
    for (const auto& name : all_gather(network_.ranks(), broken))
      if (!name.empty()) diverged(fmt::format("parameter '{}' is no longer a number", name), epoch_);
  }

  // Of the whole network on rank 0, whatever the number of ranks.
  void snapshot(Tensors& file) {
    const auto put = [&](const std::string& name, MatrixView<const float> from) {
      put_tensor(network_.engine(), from, name, file);
    };
    network_.visit([&](const std::string& name, ParameterView<float> p, bool) {
      put(name, p.value);
      if (!p.first.empty()) put(name + ".first", p.first);
      if (!p.second.empty()) put(name + ".second", p.second);
      if (!p.mean.empty()) put(name + ".mean", p.mean);
    });
    network_.visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool) { put(name, buffer); });
    best_.save(file);
    nlohmann::json sums = nlohmann::json::object();
    for (const auto& [name, sum] : sums_) sums[name] = sum;
    file.metadata[kTrainPrecision] = options_.precision;
    file.metadata[kState] = {{"epoch", epoch_},
                             {"next", next_},
                             {"step", step_},
                             {"best_epoch", best_epoch_},
                             {"best_score", best_score_},
                             {"finished", finished_},
                             {"seconds", seconds_},
                             {"epoch_began", epoch_began_},
                             {"rows", rows_done_},
                             {"sums", sums}};
    gather(network_.ranks(), Wanted::by_leader, file);
  }

  void restore(const Tensors& file) {
    try {
      const auto& state = file.metadata.at(kState);
      epoch_ = state.at("epoch").get<std::int64_t>();
      next_ = state.at("next").get<std::int64_t>();
      step_ = state.at("step").get<std::int64_t>();
      best_epoch_ = state.at("best_epoch").get<std::int64_t>();
      best_score_ = state.at("best_score").get<double>();
      finished_ = state.at("finished").get<bool>();
      seconds_ = state.at("seconds").get<double>();
      epoch_began_ = state.at("epoch_began").get<double>();
      rows_done_ = state.at("rows").get<double>();
      for (const auto& [name, sum] : state.at("sums").items()) sums_[name] = sum.get<double>();
    } catch (const nlohmann::json::exception& error) {
      fail(Exit::data, "{}: broken checkpoint: {}", file.path(), error.what());
    }
    if (epoch_ < 0 || epoch_ > epochs_ || next_ < 0 || next_ > steps_per_epoch_ || best_epoch_ > epoch_)
      fail(Exit::data, "{}: broken checkpoint: epoch {}, step {}, best epoch {}", file.path(), epoch_, next_,
           best_epoch_);
    const auto get = [&](const std::string& name, MatrixView<float> to) {
      get_tensor(network_.engine(), file, name, to);
    };
    network_.visit([&](const std::string& name, ParameterView<float> p, bool) {
      get(name, p.value);
      if (!p.first.empty()) get(name + ".first", p.first);
      if (!p.second.empty()) get(name + ".second", p.second);
      if (!p.mean.empty()) get(name + ".mean", p.mean);
    });
    network_.visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool) { get(name, buffer); });
    if (best_epoch_ == 0) return;
    best_.load(file);
  }

  void announce_sizes() {
    struct {
      std::uint64_t snapshot = 0, model = 0;
    } own, floats;
    network_.visit([&](const std::string&, ParameterView<float> p, bool for_prediction) {
      own.snapshot += p.value.size() + p.first.size() + p.second.size() + p.mean.size();
      if (for_prediction) own.model += p.value.size();
    });
    for (const auto& part : all_gather(network_.ranks(), own)) {  // what all ranks have is small
      floats.snapshot += part.snapshot + (selecting_ ? part.model : 0);
      floats.model += part.model;
    }
    constexpr std::uint64_t kHeader = 1 << 20;
    context_.before_training(floats.snapshot * sizeof(float) + kHeader,
                             floats.model * sizeof(float) + options_.beside + kHeader);
  }

  Network& network_;
  const Items &train_, &val_;
  const TrainOptions& options_;
  FitContext& context_;
  const bool selecting_;
  const std::int64_t epochs_;  // of this training
  UpdateRule rule_;
  std::int64_t batch_ = 1, steps_per_epoch_ = 1;
  Matrix<std::int8_t> truth_;  // of the validation rows
  Matrix<float> scores_;
  RowOrder order_;  // of this epoch's rows
  ReadAhead ahead_;

  struct Started {
    std::int64_t step, epoch;
    std::size_t rows;
  };
  std::vector<Started> under_way_;  // steps that have not been finished

  // State.
  std::int64_t epoch_ = 0;       // epochs done
  std::int64_t next_ = 0;        // steps done in the running epoch
  std::int64_t step_ = 0;        // steps done
  std::int64_t best_epoch_ = 0;  // 0 = none yet
  double best_score_ = 0;
  bool finished_ = false;
  double seconds_ = 0, epoch_began_ = 0;  // of training alone
  double rows_done_ = 0;                  // in the running epoch
  std::map<std::string, double> sums_;    // losses times rows in the running epoch
  BestCopy best_;
};

}  // namespace

void TrainOptions::declare(Options& o) {
  constexpr double kMany = 1e9;
  o.add("epochs", epochs, "passes over the training rows").range(1, kMany).common();
  o.add("batch", batch, "rows per step").range(1, kMany);
  o.add("shuffle", shuffle, "shuffle the rows in each epoch");
  o.add("shuffle-window", window,
        "shuffle window in rows: blocks of neighbouring rows come in random order, and the rows of 32 blocks "
        "are mixed; 0 = all rows, with --memory-limit those of 256 MiB")
      .range(0, kMany);
  o.add("drop-last", drop_last, "drop the last, smaller batch of an epoch");
  o.add("optimiser", optimiser, "the optimiser").choices({"sgd", "adam", "adamw", "rmsprop"});
  o.add("rate", rate, "learning rate").range(0, 1e3).symbol("η");
  o.add("momentum", momentum, "momentum of sgd and rmsprop, β1 of adam").range(0, .999999);
  o.add("beta2", beta2, "β2 of adam and rmsprop").range(0, .9999999);
  o.add("epsilon", epsilon, "ε of adam and rmsprop").range(1e-30, 1);
  o.add("weight-decay", weight_decay, "weight decay; decoupled with adamw").range(0, 1e3);
  o.add("decay-rows", decay_rows,
        "training rows for which weight-decay is meant; with n rows it is multiplied by √(decay-rows / n); 0 "
        "= unchanged")
      .range(0, 1e12);
  o.add("schedule", schedule, "schedule of the learning rate after the warm-up")
      .choices({"constant", "cosine"});
  o.add("warm-up", warm_up, "epochs over which the learning rate rises from 0").range(0, kMany);
  o.add("average", average,
        "decay of the running average of the parameters, which is used in prediction; 0 = "
        "none")
      .range(0, .999999);
  o.add("validate-every", validate_every, "epochs between validations").range(1, kMany);
  o.add("patience", patience, "stop after this many epochs without improvement; 0 = never").range(0, kMany);
  std::vector<std::string> selections = {"authors", "last", "dicnet", "F1"};
  selections.insert(selections.end(), metric_names().begin(), metric_names().end());
  o.add("select", select,
        "which epoch to keep: authors = best .5 AP + .25 (1-RL) + .5 AUC, dicnet = with .25 AUC, F1 = "
        "micro-F1 + macro-F1, a metric, or the last")
      .choices(selections);
}

std::size_t window_rows(const TrainOptions& options, bool mapped, std::size_t row_bytes) {
  if (options.window > 0) return static_cast<std::size_t>(options.window);
  return mapped ? std::max<std::size_t>(1, kWindowBytes / std::max<std::size_t>(1, row_bytes)) : 0;
}

double decay_for(const TrainOptions& options, std::size_t rows) {
  const double ratio = options.decay_rows > 0 ? options.decay_rows / static_cast<double>(rows) : 1;
  return options.weight_decay * std::sqrt(ratio);
}

double selection_score(const Metrics& metrics, const std::string& select) {
  if (select == "authors") return .5 * metrics.ap + .25 * metrics.rl + .5 * metrics.auc;
  if (select == "dicnet") return .5 * metrics.ap + .25 * metrics.rl + .25 * metrics.auc;
  if (select == "F1") return metrics.micro_f1 + metrics.macro_f1;
  return metrics.by_name(select);
}

std::int64_t train_network(Network& network, const Items& train, const Items& val,
                           const TrainOptions& options, FitContext& context) {
  if (train.rows() == 0) fail(Exit::data, "there are no rows to train on");
  return Training(network, train, val, options, context).run();
}

}  // namespace lacuna
