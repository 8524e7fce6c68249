#include "experiments/work.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
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
    line += fmt::format("{} {} cells of methods not timed yet", seconds_left > 0 ? " and" : ",", untimed);
  return line + "; " + note;
}

std::string run_claimed(const Claim& claim, const CellSpec& spec, const BenchOptions& options,
                        CellStore& store, Shelf& shelf, const EpochWatch& watch) {
  std::string error;
  Exit code = Exit::failed;
  try {
    const CellFiles files = run_cell(spec, shelf, watch);
    store.finish(claim, files.text(options.keep_scores));
    return files.result.contains("metrics")
               ? fmt::format(": {} {:.4f}", options.metric, files.result["metrics"].value(options.metric, 0.))
               : "";
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

}  // namespace

BenchOutcome work_off(std::span<const PlannedCell* const> cells, const BenchOptions& options,
                      CellStore& store, Shelf& shelf, const std::function<void(const BenchProgress&)>& tell,
                      const std::function<void(const PlannedCell&)>& apart) {
  using State = CellStore::State;
  if (options.retry_failed)
    for (const auto* cell : cells) store.forget_failure(cell->id);

  store.sweep();
  const Helpers helpers(cells, options, store, shelf);
  BenchOutcome outcome;
  std::map<std::string, std::pair<double, std::size_t>> seconds_of;  // by method and data
  const auto group = [](const PlannedCell& cell) {
    return cell.spec.method.text() + "\n" + cell.spec.data.path;
  };
  const auto timed = [&](const PlannedCell& cell, double seconds) {
    auto& sum = seconds_of[group(cell)];
    sum.first += seconds;
    ++sum.second;
  };
  for (const auto* cell : cells)  // an earlier run has timed some already
    if (const json run = store.read(cell->id, "run.json"); run.is_object())
      timed(*cell, run.at("seconds").value("total", 0.));
  std::vector<State> states(cells.size(), State::open);
  std::size_t running = cells.size();  // the cell that this process runs
  double running_left = 0;
  const auto report = [&](const std::string& note, bool inside) {
    BenchProgress progress{.total = cells.size(), .inside = inside, .note = note};
    progress.seconds_left = running_left;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (states[i] == State::running && i != running)
        states[i] = store.state(cells[i]->id);  // others finish theirs meanwhile
      progress.done += states[i] == State::done;
      progress.failed += states[i] == State::failed;
      progress.elsewhere += states[i] == State::running && i != running;
      if (states[i] != State::open) continue;
      const auto at = seconds_of.find(group(*cells[i]));
      if (at == seconds_of.end())
        ++progress.untimed;
      else
        progress.seconds_left += at->second.first / static_cast<double>(at->second.second);
    }
    tell(progress);
  };

  // A cell is timed when all that are not to be timed have ended, and no other process times one.
  const auto quiet = [&] {
    for (std::size_t k = 0; k < cells.size(); ++k) {
      if (states[k] == State::done || states[k] == State::failed) continue;
      if (cells[k]->spec.task != Task::timing || store.state(cells[k]->id) == State::running) return false;
    }
    return true;
  };
  for (;;) {
    bool ran = false, waiting = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (states[i] == State::done || states[i] == State::failed) continue;
      const PlannedCell& cell = *cells[i];
      const bool timing = cell.spec.task == Task::timing, alone = timing && apart;
      if (timing && !quiet()) {
        waiting = true;
        continue;
      }
      auto claim = alone ? nullptr : store.claim(cell.id);
      states[i] = store.state(cell.id);
      if (alone ? states[i] != State::open : claim == nullptr) {
        waiting = waiting || states[i] == State::running || states[i] == State::open;
        continue;
      }
      const std::string what = cell_words(cell.place);
      states[i] = State::running;
      running = i;
      const auto known = seconds_of.find(group(cell));
      running_left =
          known == seconds_of.end() ? 0 : known->second.first / static_cast<double>(known->second.second);
      report("running " + what, true);
      const Stopwatch watch;
      double told = 0;
      std::string note = what;
      if (alone) {
        apart(cell);
      } else {
        note += run_claimed(*claim, cell.spec, options, store, shelf, [&](const EpochRecord& record) {
          if (const double share = record.share_done(); share > 0)
            running_left = watch.seconds() * (1 - share) / share;
          if (watch.seconds() - told < .2) return;
          told = watch.seconds();
          report(fmt::format("running {}, {}", what, epoch_text(record)), true);
        });
        claim.reset();
      }
      note += ", " + duration_text(watch.seconds());
      running = cells.size();
      running_left = 0;
      states[i] = store.state(cell.id);
      if (states[i] == State::open) fail(Exit::failed, "the process of {} ended without a result", what);
      timed(cell, watch.seconds());
      ++outcome.ran;
      helpers.check();
      ran = true;
      report(note, false);
    }
    helpers.check();
    if (!waiting) break;
    if (stop_requested) fail(Exit::interrupted, "interrupted");
    if (!ran) {
      report("waiting for running cells", false);
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
  store.sweep();  // a process that was killed just before may have been seen as alive at first
  for (const State state : states) {
    outcome.done += state == State::done;
    outcome.failed += state == State::failed;
  }
  outcome.ran += helpers.ran();
  return outcome;
}

}  // namespace lacuna
