// The contents of a folder of cells, ready for tables and figures.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "experiments/gap_facts.h"
#include "experiments/store.h"

namespace lacuna {

struct ResultCell {
  std::string id, data, method;
  std::size_t fold = 0;
  nlohmann::json place;   // its coordinates in the experiment
  nlohmann::json result;  // null: not done (yet)
  nlohmann::json run;
  std::string error;                             // not empty: it failed
  double metric(const std::string& name) const;  // NaN if there is none
};

struct MethodInfo {
  std::string key, name, title, source;
  bool reconstructed = false;
  bool ranked = true;  // false: not ranked (the floor, this program's own network), marked in tables
  int style = 0;       // of its series in all charts
  std::string marked() const { return ranked ? title : title + " †"; }
};
struct DataInfo {
  std::string name, path, hash;
  std::size_t rows = 0, labels = 0;
  std::vector<std::pair<std::string, std::size_t>> views;  // name, columns
  double cardinality = 0;                                  // known positive labels a row
  double train = 0, test = 0;                              // shares of the rows in its folds
  GapFacts gaps = {};                                      // of the repetitions
};

struct ExperimentResults {
  nlohmann::json header;
  std::string kind, name;
  std::vector<MethodInfo> methods;
  std::vector<DataInfo> data;
  std::vector<ResultCell> cells;

  // The finished cells of a method on a data set, by repetition; `where` are further coordinates that must
  // agree.
  std::vector<const ResultCell*> select(const std::string& data, const std::string& method,
                                        const nlohmann::json& where = nlohmann::json::object()) const;
  std::vector<double> values(const std::string& data, const std::string& method, const std::string& metric,
                             const nlohmann::json& where = nlohmann::json::object()) const;
  std::size_t done() const;  // places; a cell may stand at several
  std::size_t failed() const;
  // Of one data set, or of all of them: "50 % of the views and 50 % of the training labels missing", "without gaps".
  std::string gaps(const DataInfo& one) const { return gap_words(std::span(&one.gaps, 1), header); }
  std::string gaps() const { return gap_words(all_gaps(), header); }
  std::vector<GapFacts> all_gaps() const;
  Protocol protocol() const { return protocol_from_name(header.value("protocol", "strict")); }
  // The origin of the figures: {"protocol", "strict"}, {"seed", "1"}, {"version", "0.9.0"}; and as a sentence. Also
  // {"tuned", "CDMM"} if --tune chose settings of these methods, and {"all_rows", "MTD, CDMM"} if these learned from
  // the validation rows as well.
  std::vector<std::pair<std::string, std::string>> origin() const;
  std::string origin_words() const;
  std::vector<std::string> tuned() const;  // titles, in the order of the table
  std::vector<std::string> refitted() const;
  // The method that the report compares with all others: MTD if it takes part (the preset named first), else our
  // own, else the first ranked one.
  const MethodInfo& lead() const;
};

// Every experiment of the folder, in the order in which the report shows them
std::vector<ExperimentResults> load_results(const CellStore& store);

// A cell's place within its experiment in words: "without audio", "views missing 0.3", "alpha 0.01, beta 1"; "" if
// the data set, the method and the repetition say it all.
std::string place_words(const nlohmann::json& place);
// The full name: "mtd:authors on corel5k, alpha 0.01, beta 1, repetition 3".
std::string cell_words(const nlohmann::json& place);

// The six metrics of the paper, in its order.
const std::vector<std::string>& paper_metrics();

// The paper's Ave.R on a data set: for each of the six metrics, methods are ranked by their means rounded to three
// digits, ties all get the best rank, and the six ranks are averaged. Among the ranked methods; NaN for the others, and
// if cells are open.
std::vector<double> average_ranks(const ExperimentResults& results, const std::string& data);
// The same of a table of means as printed, (methods, metrics).
std::vector<double> average_ranks(MatrixView<const double> means);
// Position of an average rank among all, as printed with two digits: 0 is the best, 1 the second best; ties share a
// position. NaN comes last.
std::size_t rank_place(const std::vector<double>& average, std::size_t i);
// The mean of the average ranks over all data sets; NaN for a method that lacks one.
std::vector<double> overall_ranks(const ExperimentResults& results);

}  // namespace lacuna
