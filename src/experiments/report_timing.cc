// Seconds and memory of methods: one table for the terminal and the page, and where the time went.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "experiments/published.h"
#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {
namespace {

double seconds(const ResultCell& cell, const char* key) {
  return cell.run.is_object() && cell.run.contains("seconds") ? cell.run["seconds"].value(key, 0.) : 0.;
}

// Training seconds at the number of epochs that the paper's seconds are of, by the seconds of an epoch; what
// was measured where it ran that many, NaN where nothing can be said.
double at_their_epochs(const ResultCell& cell, const PublishedTime& time) {
  const double fit = seconds(cell, "fit"), epoch = seconds(cell, "epoch"),
               epochs = cell.run.is_object() ? cell.run.value("epochs", 0.) : 0;
  if (time.epochs == 0 || epochs == time.epochs) return fit;
  return epochs > 1 && epoch > 0 ? fit + (time.epochs - epochs) * epoch : std::nan("");
}

// A mean with three significant digits, so that short times are not 0.
TableCell seconds_cell(const std::vector<double>& values) {
  if (values.empty()) return "-";
  TableCell cell = TableCell::significant(mean(values));
  if (values.size() > 1) cell.deviation = deviation(values);
  return cell;
}

}  // namespace

ResultTable timing_table(const ExperimentResults& results, const DataInfo& data) {
  ResultTable table;
  table.name = results.name + "-time-" + data.name;
  table.header = {"method", "epochs", "fit s", "processor s", "test s", "peak memory MB", "parameters"};
  const bool theirs = published_set(data.name, data.rows, data.labels) != nullptr && data.rows == 4999;
  if (theirs)
    table.header.insert(table.header.end(),
                        {"fit s at their epochs", "training s, as printed", "test s, as printed"});
  std::string machine, computed;
  std::size_t repetitions = 0;
  bool alone = true;
  for (const auto& method : results.methods) {
    const auto cells = results.select(data.name, method.key);
    if (cells.empty()) continue;
    repetitions = std::max(repetitions, cells.size());
    const PublishedTime* time = theirs ? published_time(method.name) : nullptr;
    std::vector<double> epochs, fit, used, test, memory, at_theirs;
    for (const auto* cell : cells) {
      fit.push_back(seconds(*cell, "fit"));
      used.push_back(seconds(*cell, "fit_processor"));
      test.push_back(seconds(*cell, "predict"));
      if (!cell->run.is_object()) continue;
      epochs.push_back(cell->run.value("epochs", 0.));
      memory.push_back(cell->run.value("peak_bytes", 0.) / 1e6);
      if (time != nullptr) at_theirs.push_back(at_their_epochs(*cell, *time));
      alone = alone && cell->run.value("alone", false);
      machine =
          fmt::format("{}, threads: {}", cell->run.value("processor", "?"), cell->run.value("threads", 0));
      if (const std::string device = cell->run.value("device", "cpu"); device != "cpu")
        machine += ", " + device;
    }
    std::vector<TableCell> row = {
        method.title,
        epochs.empty() || mean(epochs) == 0 ? TableCell("-") : mean_cell(epochs, 0),
        seconds_cell(fit),
        seconds_cell(used),
        seconds_cell(test),
        TableCell::number(memory.empty() ? 0 : *std::max_element(memory.begin(), memory.end()), 0),
        TableCell::number(cells[0]->result.value("parameters", 0.), 0)};
    if (theirs) {
      row.push_back(at_theirs.empty() ? TableCell("-") : seconds_cell(at_theirs));
      row.push_back(time != nullptr ? TableCell::number(time->training, 2) : TableCell("-"));
      row.push_back(time != nullptr ? TableCell::number(time->test, 2) : TableCell("-"));
      row[row.size() - 1].theirs = row[row.size() - 2].theirs = true;
      if (!at_theirs.empty() && at_theirs != fit)
        computed += fmt::format("{}{} ({:g} epochs ran, the authors' are {:g})", computed.empty() ? "" : ", ",
                                method.title, mean(epochs), time->epochs);
    }
    table.rows.push_back(std::move(row));
  }
  table.caption = fmt::format(
      "{}, {}: seconds and memory of one repetition with the epochs that ran, preparation of the inputs and "
      "selection "
      "on validation rows included, on {}; {}.",
      data.name, results.gaps(data), machine, spread_words(repetitions));
  table.notes.push_back(
      "Epochs are epochs or iterations, of all views and members together if a method has several; - if it "
      "solves directly. Fit is everything between data and model. Processor seconds are those of the fit, "
      "summed over all threads. Peak memory is that of the whole process with its data. Times are comparable "
      "only if the machine did nothing else.");
  if (!alone)
    table.notes.push_back(
        "These are the times of a comparison's own cells, run one after the other in one process; bench "
        "timing runs "
        "each alone.");
  if (theirs)
    table.notes.push_back(
        "As printed: in the paper that introduced MTD, measured on its authors' machine with a GPU; DICNet "
        "and MTD with 100 epochs.");
  if (!computed.empty())
    table.notes.push_back("Computed, not measured, is the fit at the authors' epochs of " + computed +
                          ": the measured time, plus or minus the seconds of an epoch for each epoch more or "
                          "less.");
  return table;
}

void show_timing(const ExperimentResults& results, ReportSink& sink) {
  for (const auto& data : results.data) {
    const ResultTable table = timing_table(results, data);
    if (table.rows.empty()) continue;
    BarPlot bars{.title = fmt::format("Where the time went on {}", data.name),
                 .x_label = "seconds per repetition",
                 .rows = {},
                 .parts = {"training alone", "preparation and selection", "test", "scoring"},
                 .values = {},
                 .notes = {}};
    std::vector<std::array<double, 4>> parts;
    for (const auto& method : results.methods) {
      const auto cells = results.select(data.name, method.key);
      if (cells.empty()) continue;
      std::array<double, 4> sums{};
      const auto n = static_cast<double>(cells.size());
      for (const auto* cell : cells) {
        const double fit = seconds(*cell, "fit"), net = std::min(fit, seconds(*cell, "training"));
        sums[0] += net / n, sums[1] += (fit - net) / n, sums[2] += seconds(*cell, "predict") / n,
            sums[3] += seconds(*cell, "score") / n;
      }
      bars.rows.push_back(method.title);
      bars.notes.push_back(duration_text(sums[0] + sums[1] + sums[2] + sums[3]));
      parts.push_back(sums);
    }
    sink.page().heading(data.name);
    sink.table(table);
    bars.values = Matrix<double>(parts.size(), 4);
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::size_t p = 0; p < 4; ++p) bars.values(i, p) = parts[i][p];
    sink.plot(results.name + "-time-" + data.name, bars,
              fmt::format("{}: where the time went; the first two parts together are the fit of the table.",
                          data.name));
  }
}

}  // namespace lacuna
