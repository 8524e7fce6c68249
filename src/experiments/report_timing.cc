// Seconds and memory of methods: one table for the terminal and the page, and where the time went.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "experiments/published.h"
#include "experiments/report.h"

namespace lacuna {
namespace {

double seconds(const ResultCell& cell, const char* key) {
  return cell.run.is_object() && cell.run.contains("seconds") ? cell.run["seconds"].value(key, 0.) : 0.;
}

// Training seconds at the number of epochs that the paper's seconds are of, by the seconds of an epoch; what
// was measured where it ran so many, NaN where nothing can be said.
double at_their_epochs(const ResultCell& cell, const PublishedTime& time) {
  const double fit = seconds(cell, "fit"), epoch = seconds(cell, "epoch"),
               epochs = cell.run.is_object() ? cell.run.value("epochs", 0.) : 0;
  if (time.epochs == 0 || epochs == time.epochs) return fit;
  return epochs > 1 && epoch > 0 ? fit + (time.epochs - epochs) * epoch : std::nan("");
}

}  // namespace

ResultTable timing_table(const ExperimentResults& results, const DataInfo& data) {
  ResultTable table;
  table.name = results.name + "-time-" + data.name;
  table.header = {"method", "fit s", "processor s", "test s", "peak memory MB", "parameters"};
  const bool theirs = published_set(data.name, data.rows, data.labels) != nullptr && data.rows == 4999;
  if (theirs)
    table.header.insert(table.header.end(),
                        {"fit s at their epochs", "training s, as printed", "test s, as printed"});
  std::string processor, scaled;
  std::size_t repetitions = 0;
  for (const auto& method : results.methods) {
    const auto cells = results.select(data.name, method.key);
    if (cells.empty()) continue;
    repetitions = std::max(repetitions, cells.size());
    const PublishedTime* time = theirs ? published_time(method.name) : nullptr;
    std::vector<double> training, used, test, memory, at_theirs;
    for (const auto* cell : cells) {
      training.push_back(seconds(*cell, "fit"));
      used.push_back(seconds(*cell, "fit_processor"));
      test.push_back(seconds(*cell, "predict"));
      if (!cell->run.is_object()) continue;
      memory.push_back(cell->run.value("peak_bytes", 0.) / 1e6);
      if (time != nullptr) at_theirs.push_back(at_their_epochs(*cell, *time));
      processor =
          fmt::format("{}, {} threads", cell->run.value("processor", "?"), cell->run.value("threads", 0));
    }
    std::vector<TableCell> row = {
        method.title,
        mean_cell(training, 2),
        mean_cell(used, 2),
        mean_cell(test, 3),
        TableCell::number(memory.empty() ? 0 : *std::max_element(memory.begin(), memory.end()), 0),
        TableCell::number(cells[0]->result.value("parameters", 0.), 0)};
    if (theirs) {
      row.push_back(at_theirs.empty() ? TableCell("-") : mean_cell(at_theirs, 2));
      row.push_back(time != nullptr ? TableCell::number(time->training, 2) : TableCell("-"));
      row.push_back(time != nullptr ? TableCell::number(time->test, 2) : TableCell("-"));
      row[row.size() - 1].theirs = row[row.size() - 2].theirs = true;
      if (!at_theirs.empty() && at_theirs != training)
        scaled += fmt::format("{}{} ({} epochs ran)", scaled.empty() ? "" : ", ", method.title,
                              cells[0]->run.value("epochs", 0));
    }
    table.rows.push_back(std::move(row));
  }
  table.caption = fmt::format("{}: seconds and memory of one repetition, on {}; {}.", data.name, processor,
                              spread_words(repetitions));
  table.notes.push_back(
      "Fit is all that happens between data and model: preparation of the inputs, training, selection on "
      "validation "
      "rows; the chart below takes it apart. Processor seconds are those of the fit, summed over all "
      "threads. Peak memory "
      "is that of the whole process with its data. Times are comparable only if the machine did nothing "
      "else.");
  if (theirs)
    table.notes.push_back(
        "As printed: in the paper that introduced MTD, measured on its authors' machine with a GPU; DICNet "
        "and MTD "
        "with 100 epochs.");
  if (!scaled.empty())
    table.notes.push_back("Not measured but scaled to their epochs by the seconds of an epoch: " + scaled +
                          ".");
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
