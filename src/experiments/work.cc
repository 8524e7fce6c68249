#include "experiments/work.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "experiments/machine.h"
#include "experiments/results.h"
#include "ops/device.h"

namespace lacuna {

using nlohmann::json;

std::string epoch_text(const EpochRecord& record) {
  return (record.members > 1 ? fmt::format("member {} of {}, ", record.member + 1, record.members) : "") +
         (record.views > 1 ? fmt::format("view {} of {}, ", record.view + 1, record.views) : "") +
         fmt::format("epoch {} of {}", record.epoch, record.epochs);
}

std::string BenchProgress::text() const {
  std::string line = fmt::format("{} of {} done", done, total);
  if (failed > 0) line += fmt::format(", {} failed", failed);
  if (elsewhere > 0) line += fmt::format(", {} more running", elsewhere);
  if (seconds_left > 0) line += fmt::format(", about {} left", duration_text(seconds_left));
  if (untimed > 0)
    line += fmt::format("{} {} {} of methods not timed yet", seconds_left > 0 ? " and" : ",", untimed,
                        untimed == 1 ? "cell" : "cells");
  return line + "; " + note;
}

std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch) {
  std::string error;
  Exit code = Exit::failed;
  try {
    const CellFiles files = run_cell(spec, shelf, watch);
    store.finish(claim, files.text(options.keep_scores));
    if (!files.result.contains("metrics")) return "";
    const double value = files.result["metrics"].value(options.metric, 0.);
    return fmt::format(": {} {}", options.metric, std::isnan(value) ? "-" : fmt::format("{:.4f}", value));
  } catch (const DeviceLost&) {  // no fault of the cell: it stays open
    throw;
  } catch (const Error& caught) {
    if (caught.code() == Exit::interrupted) throw;
    error = caught.what();
    code = caught.code();
  } catch (const std::bad_alloc&) {
    error = "not enough memory; --resume --retry-failed runs it again";
  } catch (const std::exception& caught) {
    error = caught.what();
  }
  store.fail(claim, {{"schema", "lacuna.failure.1"},
                     {"spec", spec.json()},
                     {"error", error},
                     {"code", static_cast<int>(code)}});
  return " failed: " + error;
}

namespace {

// Networks do not fill a GPU: threads of this process work on cells as other processes do, by claims.
class Helpers {
 public:
  Helpers(std::span<const PlannedCell* const> cells, const BenchOptions& options, CellStore& store,
          Shelf& shelf) {
    std::vector<const PlannedCell*> some;
    double bytes = 0;
    for (const auto* cell : cells) {
      if (cell->spec.task == Task::timing || !is_network(cell->spec.method)) continue;
      some.push_back(cell);
      if (current_device().cuda) bytes = std::max(bytes, estimate_cell(cell->spec, shelf).bytes);
    }
    const std::size_t most = options.at_once > 0 ? options.at_once : trainings_at_once(bytes);
    const std::size_t threads = std::min(some.size(), most);
    for (std::size_t k = 1; k < threads; ++k)
      threads_.emplace_back([this, some, &options, &store, &shelf] { help(some, options, store, shelf); });
  }
  ~Helpers() { ending_ = true; }  // and waits for them
  std::size_t ran() const { return ran_; }
  // Throws what ended one of them, such as a lost GPU.
  void check() const {
    const std::lock_guard lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void help(std::span<const PlannedCell* const> cells, const BenchOptions& options, CellStore& store,
            Shelf& shelf) {
    try {
      for (const auto* cell : cells) {
        if (stop_requested || ending_) return;
        const auto claim = store.claim(cell->id);
        if (claim == nullptr) continue;
        run_claimed(*claim, cell->spec, options, store, shelf);
        ++ran_;
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      ending_ = true;
    }
  }

  std::atomic<std::size_t> ran_{0};
  std::atomic<bool> ending_{false};
  mutable std::mutex mutex_;
  std::exception_ptr error_;
  std::vector<std::jthread> threads_;
};

// Seconds that cells took, by method and data set: the others of the group are expected to take as long.
class CellTimes {
 public:
  void add(const PlannedCell& cell, double seconds) {
    Sum& sum = sums_[group(cell)];
    sum.seconds += seconds;
    ++sum.cells;
  }
  std::optional<double> mean(const PlannedCell& cell) const {
    const auto at = sums_.find(group(cell));
    if (at == sums_.end()) return std::nullopt;
    return at->second.seconds / static_cast<double>(at->second.cells);
  }

 private:
  struct Sum {
    double seconds = 0;
    std::size_t cells = 0;
  };
  static std::string group(const PlannedCell& cell) {
    return cell.spec.method.text() + "\n" + cell.spec.data.path;
  }
  std::map<std::string, Sum> sums_;
};

// Takes free cells, one after the other, until all have ended, here or elsewhere.
class CellWorker {
 public:
  CellWorker(std::span<const PlannedCell* const> cells, const BenchOptions& options, CellStore& store,
             Shelf& shelf, const Helpers& helpers, const std::function<void(const BenchProgress&)>& tell,
             const std::function<void(const PlannedCell&)>& apart)
      : cells_(cells),
        options_(options),
        store_(store),
        shelf_(shelf),
        helpers_(helpers),
        tell_(tell),
        apart_(apart),
        states_(cells.size(), State::open) {
    for (const auto* cell : cells)  // an earlier run has timed some already
      if (const json run = store.read(cell->id, "run.json"); run.is_object())
        times_.add(*cell, run.at("seconds").value("total", 0.));
  }

  void work() {
    for (;;) {
      const std::size_t before = ran_;
      bool waiting = false;
      for (std::size_t i = 0; i < cells_.size(); ++i)
        if (!ended(i)) waiting = !try_cell(i) || waiting;
      helpers_.check();
      if (!waiting) return;
      if (stop_requested) fail(Exit::interrupted, "interrupted");
      if (ran_ == before) {
        report("waiting for running cells", false);
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
  }

  BenchOutcome outcome() const {
    BenchOutcome outcome{.ran = ran_};
    for (const State state : states_) {
      outcome.done += state == State::done;
      outcome.failed += state == State::failed;
    }
    return outcome;
  }

 private:
  using State = CellStore::State;
  bool ended(std::size_t i) const { return states_[i] == State::done || states_[i] == State::failed; }

  // A cell is timed when all that are not to be timed have ended, and no other process times one.
  bool quiet() const {
    for (std::size_t k = 0; k < cells_.size(); ++k) {
      if (ended(k)) continue;
      if (cells_[k]->spec.task != Task::timing || store_.state(cells_[k]->id) == State::running) return false;
    }
    return true;
  }

  // Runs the cell if it is free. False if it has to be waited for.
  bool try_cell(std::size_t i) {
    const PlannedCell& cell = *cells_[i];
    const bool timing = cell.spec.task == Task::timing, alone = timing && apart_;
    if (timing && !quiet()) return false;
    auto claim = alone ? nullptr : store_.claim(cell.id);
    states_[i] = store_.state(cell.id);
    if (alone ? states_[i] != State::open : claim == nullptr) return ended(i);
    run(i, std::move(claim));
    return true;
  }

  // Runs a cell that was claimed; without a claim in a process of its own, which claims it.
  void run(std::size_t i, std::unique_ptr<Claim> claim) {
    const PlannedCell& cell = *cells_[i];
    const std::string what = cell_words(cell.place);
    states_[i] = State::running;
    here_ = i;
    left_ = times_.mean(cell).value_or(0);
    report("running " + what, true);
    const Stopwatch watch;
    std::string note = what;
    if (claim == nullptr)
      apart_(cell);
    else
      note += run_claimed(*claim, cell.spec, options_, store_, shelf_, telling(what, watch));
    claim.reset();
    note += ", " + duration_text(watch.seconds());
    here_ = cells_.size();
    left_ = 0;
    states_[i] = store_.state(cell.id);
    if (states_[i] == State::open) fail(Exit::failed, "the process of {} ended without a result", what);
    times_.add(cell, watch.seconds());
    ++ran_;
    helpers_.check();
    report(note, false);
  }

  // Reports the epochs of the running cell, at most five times per second.
  EpochWatch telling(const std::string& what, const Stopwatch& watch) {
    return [this, &what, &watch, told = 0.](const EpochRecord& record) mutable {
      if (const double share = record.share_done(); share > 0) left_ = watch.seconds() * (1 - share) / share;
      if (watch.seconds() - told < .2) return;
      told = watch.seconds();
      report(fmt::format("running {}, {}", what, epoch_text(record)), true);
    };
  }

  void report(const std::string& note, bool inside) {
    BenchProgress progress{.total = cells_.size(), .inside = inside, .note = note};
    progress.seconds_left = left_;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (states_[i] == State::running && i != here_)
        states_[i] = store_.state(cells_[i]->id);  // others finish theirs meanwhile
      progress.done += states_[i] == State::done;
      progress.failed += states_[i] == State::failed;
      progress.elsewhere += states_[i] == State::running && i != here_;
      if (states_[i] != State::open) continue;
      if (const auto seconds = times_.mean(*cells_[i]))
        progress.seconds_left += *seconds;
      else
        ++progress.untimed;
    }
    tell_(progress);
  }

  std::span<const PlannedCell* const> cells_;
  const BenchOptions& options_;
  CellStore& store_;
  Shelf& shelf_;
  const Helpers& helpers_;
  const std::function<void(const BenchProgress&)>& tell_;
  const std::function<void(const PlannedCell&)>& apart_;
  std::vector<State> states_;
  CellTimes times_;
  std::size_t ran_ = 0;
  std::size_t here_ = cells_.size();  // the cell that this process runs; none
  double left_ = 0;                   // seconds of it
};

}  // namespace

BenchOutcome work_off(std::span<const PlannedCell* const> cells, const BenchOptions& options,
                      CellStore& store, Shelf& shelf, const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart) {
  if (options.retry_failed)
    for (const auto* cell : cells) store.forget_failure(cell->id);
  store.sweep();
  const Helpers helpers(cells, options, store, shelf);
  CellWorker worker(cells, options, store, shelf, helpers, tell, apart);
  worker.work();
  store.sweep();  // a process that was killed just before may have been seen as alive at first
  BenchOutcome outcome = worker.outcome();
  outcome.ran += helpers.ran();
  return outcome;
}

}  // namespace lacuna
