// The report: one page for a folder of experiments, with its tables as .md, .csv and .tex and its plots as
// .svg beside it; and one page for a single model.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "data/label_graph.h"
#include "experiments/page.h"
#include "experiments/plots.h"
#include "experiments/results.h"

namespace lacuna {

// Writes DIR/report.html, DIR/tables/* and DIR/plots/*; returns the path of the page. Exit::usage if the
// folder holds no experiment.
std::string write_report(const std::string& directory);

// What a page about one model, or about one set of scores, shows. Whatever is empty is left out.
struct ModelReport {
  std::string title;                                       // "MTD on corel5k"
  std::string command;                                     // how to make it again
  std::vector<std::pair<std::string, std::string>> facts;  // method, data, rows, seed, ...
  struct ViewFact {
    std::string name;
    std::size_t columns = 0;
    double missing_train = 0,
           missing = 0;  // share of the rows without it: to learn from, and those of the metrics
  };
  std::vector<ViewFact> views;
  nlohmann::json metrics;     // {"AP": .4, ...}
  nlohmann::json intervals;   // {"AP": [low, high], ...}, 95 %
  nlohmann::json floor;       // {"AP": .3, ...}: figures of the labels' frequencies alone on these rows
  std::string metrics_part;   // on which rows: "validation", "test"
  std::string ceiling;        // a sentence on what AP and 1-OE can reach at most on these rows; may be empty
  std::string caution;        // what these rows were used for besides
  std::string decision;       // how scores became yes or no
  nlohmann::json
      choice;  // candidates, weights, reasons: choice_of() (methods/ensemble.h); null without candidates
  nlohmann::json history;     // [{"epoch", "seconds", "losses", "validation", "kept"}]
  nlohmann::json options;     // all settings
  nlohmann::json details;     // prediction_details()
  nlohmann::json importance;  // what each view contributes: to_json(ViewSummary) (methods/view_summary.h)
};
std::string model_report_text(const ModelReport& report);  // the page itself
void write_model_report(const ModelReport& report, const std::string& path);

// A page about the labels of a data set that occur together: the strongest pairs as a drawing, and a table of pairs.
std::string label_page_text(const std::string& name, const std::vector<std::string>& labels,
                            const LabelGraph& graph);

// The parts of the report, one function each. A sink puts tables and plots on the page and into files of
// their own.
class ReportSink {
 public:
  ReportSink(Page& page, std::string directory);  // without a directory: the page only
  void table(const ResultTable& table,
             std::size_t shown = 2000);  // rows on the page; the files have all
  // Draws for wide pages and for telephones; the file is the wide drawing.
  template <class Plot>
  void plot(const std::string& name, Plot plot, const std::string& caption) {
    const Svg wide = draw(plot);
    plot.width = std::min(plot.width, kNarrow);
    figure(name, wide, draw(plot), caption);
  }
  void table_file(const std::string& name, const std::string& ending,
                  const std::string& content);  // not on the page
  Page& page() { return page_; }
  void warn(const std::string& words);  // on the page here, and below every table that is written to a file
  void of(
      const ExperimentResults* results);  // the source of the following tables, which captions and files name

 private:
  void figure(const std::string& name, const Svg& wide, const Svg& narrow, const std::string& caption);
  std::string unique(const std::string& folder, const std::string& name);
  Page& page_;
  std::string directory_, caution_, origin_words_;
  std::vector<std::pair<std::string, std::string>> origin_;
  std::set<std::string> used_;
};

// All data sets stacked, methods in columns, as in the paper's first table.
enum class DeviationStyle { subscript, plus_minus };
std::string stacked_latex(const ExperimentResults& results, DeviationStyle style);
void show_comparison(const ExperimentResults& results, ReportSink& sink);  // table, complete
// How repetitions were made, which rows were learned from, and the data sets with their gaps.
void show_protocol(const std::vector<ExperimentResults>& all, ReportSink& sink);
void show_significance(const ExperimentResults& results, ReportSink& sink);
void show_radars(const ExperimentResults& results, ReportSink& sink);
bool has_learning(const ExperimentResults& results);  // whether any method has a learning curve
void show_learning(const ExperimentResults& results, ReportSink& sink);
void show_ablation(const ExperimentResults& results, ReportSink& sink);
void show_sensitivity(const ExperimentResults& results, ReportSink& sink);
// The maps of channels in numbers: mean cosines between kinds of channels, epoch by epoch. No rows if there is nothing
// yet.
ResultTable similarity_table(const ExperimentResults& results, const DataInfo& data,
                             const MethodInfo& method);
void show_similarity(const ExperimentResults& results, ReportSink& sink);
void show_missing(const ExperimentResults& results, ReportSink& sink);
ResultTable timing_table(const ExperimentResults& results, const DataInfo& data);
void show_timing(const ExperimentResults& results, ReportSink& sink);
// Labels, curves, reliability; files begin with `name`, captions with `owner`.
void show_details(const std::string& name, const std::string& owner, const nlohmann::json& details,
                  ReportSink& sink);
// The drawings and the table of label_page_text, for other pages.
void show_label_graph(const std::vector<std::string>& labels, const LabelGraph& graph, ReportSink& sink);
// The learning curve of a metric on the validation rows, of the first member if there are several.
bool of_first_fit(const nlohmann::json& line);  // of the history: the first pass, member and view
Series validation_curve(const nlohmann::json& history, const std::string& metric);

// Mean ± deviation of some values as a cell.
TableCell mean_cell(const std::vector<double>& values, int digits = 3);
// "; ± is the population standard deviation (divided by n) over 5 repetitions", or that there was only one.
std::string spread_words(std::size_t repetitions);

}  // namespace lacuna
