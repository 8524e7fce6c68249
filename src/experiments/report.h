// The report: one page for a folder of experiments, with its tables as .md, .csv and .tex and its plots as
// .svg beside it; and one page for a single model.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "experiments/page.h"
#include "experiments/plots.h"
#include "experiments/results.h"

namespace lacuna {

// Writes DIR/report.html, DIR/tables/* and DIR/plots/*; returns the path of the page. Exit::usage if the
// folder holds no experiment.
std::string write_report(const std::string& directory);

// What a page about one model shows. Whatever is empty is left out.
struct ModelReport {
  std::string title;                                       // "MTD on corel5k"
  std::string command;                                     // how to make it again
  std::vector<std::pair<std::string, std::string>> facts;  // method, data, rows, seed, ...
  nlohmann::json metrics;                                  // {"AP": .4, ...}
  std::string metrics_part;                                // on which rows: "validation", "test"
  nlohmann::json history;                                  // [{"epoch", "seconds", "losses", "validation"}]
  nlohmann::json options;                                  // all settings
  nlohmann::json details;                                  // prediction_details()
};
void write_model_report(const ModelReport& report, const std::string& path);

// The parts of the report, one function each. A sink puts tables and plots on the page and into files of
// their own.
class ReportSink {
 public:
  ReportSink(Page& page, std::string directory);  // without a directory: the page only
  void table(const ResultTable& table,
             std::size_t shown = 2000);  // the page shows so many rows, the files all
  void plot(const std::string& name, const Svg& svg, const std::string& caption);
  Page& page() { return page_; }

 private:
  std::string unique(const std::string& folder, const std::string& name);
  Page& page_;
  std::string directory_;
  std::set<std::string> used_;
};

void show_comparison(const ExperimentResults& results, ReportSink& sink);  // table, complete
void show_significance(const ExperimentResults& results, ReportSink& sink);
void show_radars(const ExperimentResults& results, ReportSink& sink);
bool has_learning(const ExperimentResults& results);  // any method with a course to show
void show_learning(const ExperimentResults& results, ReportSink& sink);
void show_ablation(const ExperimentResults& results, ReportSink& sink);
void show_sensitivity(const ExperimentResults& results, ReportSink& sink);
void show_similarity(const ExperimentResults& results, ReportSink& sink);
void show_missing(const ExperimentResults& results, ReportSink& sink);
ResultTable timing_table(const ExperimentResults& results, const DataInfo& data);
void show_timing(const ExperimentResults& results, ReportSink& sink);
void show_details(const std::string& name, const nlohmann::json& details,
                  ReportSink& sink);  // labels, curves, reliability

// Mean ± deviation of some values as a cell.
TableCell mean_cell(const std::vector<double>& values, int digits = 3);
std::string percent(double share);  // "50 %"

}  // namespace lacuna
