// The protocol of the figures in a report: how repetitions were made, which rows were learned from, the data sets.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "experiments/report.h"

namespace lacuna {

using nlohmann::json;

namespace {

// Texts in order of appearance, with the experiments that each is about.
class Shared {
 public:
  void add(const std::string& text, const std::string& name) {
    const auto at = std::ranges::find(texts_, text, &std::pair<std::string, std::vector<std::string>>::first);
    if (at == texts_.end())
      texts_.push_back({text, {name}});
    else
      at->second.push_back(name);
  }
  void show(Page& page) const {
    for (const auto& [text, names] : texts_)
      page.paragraph(texts_.size() == 1 ? text : fmt::format("{}: {}", join(names, ", "), text));
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> texts_;
};

// A line for a data set, or several where experiments hide different parts of it.
ResultTable data_sets_table(const std::vector<ExperimentResults>& all) {
  ResultTable table;
  table.name = "data";
  table.caption =
      "The data sets: their own gaps, all gaps in the repetitions, and test rows of a repetition without any "
      "view, which are not scored.";
  table.header = {"data", "rows", "labels", "labels per row", "views (columns)", "lacks views", "lacks labels"};
  const std::vector<std::string> measured = {"views missing", "training labels missing",
                                             "test rows without view"};
  table.header.insert(table.header.end(), measured.begin(), measured.end());
  table.header.insert(table.header.end(), {"experiments", "content hash"});
  const std::size_t names_at = table.header.size() - 2;
  std::map<std::string, std::size_t> seen;  // content and gaps: the line
  for (const auto& results : all)
    for (const auto& data : results.data) {
      const auto [at, fresh] = seen.emplace(data.hash + data.gaps.json().dump(), table.rows.size());
      if (!fresh) {
        table.rows[at->second][names_at].text += ", " + results.name;
        continue;
      }
      std::string views;
      for (const auto& [name, columns] : data.views)
        views += fmt::format("{}{} ({})", views.empty() ? "" : ", ", name, columns);
      table.rows.push_back({data.name, TableCell::number(static_cast<double>(data.rows), 0),
                            TableCell::number(static_cast<double>(data.labels), 0),
                            TableCell::number(data.cardinality, 2), views, percent(data.gaps.own_views),
                            percent(data.gaps.own_labels), percent(data.gaps.views),
                            percent(data.gaps.train_labels), TableCell::number(data.gaps.bare_test_rows, 1),
                            results.name, data.hash.substr(0, 16)});
    }
  return table;
}

const char* rows_sentence(Protocol protocol) {
  if (protocol == Protocol::transductive)
    return "Protocol 'transductive': validation and test rows take part in training by the views that they "
           "have in the repetition, in the preparation of the inputs and in all that needs no label; none "
           "of their labels is seen there. The best epoch and all thresholds are chosen on validation rows "
           "only. Figures of this protocol are for items that are there when the model is learned.";
  return protocol == Protocol::authors
             ? "Protocol 'authors': the scaler is fitted on all rows, test rows included, and the test rows "
               "include the validation rows on which the epoch was chosen. Figures of this protocol are "
               "optimistic; they serve to compare with programs that work the same way."
             : "Protocol 'strict': the preparation of the inputs is fitted on observed training instances "
               "only, the best epoch and all thresholds are chosen on validation rows only, and test rows are "
               "used for the test only.";
}

std::vector<std::string> method_notes(const std::vector<ExperimentResults>& all) {
  std::vector<std::string> notes;
  std::map<std::string, std::vector<std::string>> prepared;
  std::set<std::string> seen;
  for (const auto& results : all) {
    for (const auto& method : results.header.at("methods")) {
      const std::string title = method.at("title");
      if (!seen.insert(title).second) continue;
      if (const std::string prepare = method.value("prepare", ""); !prepare.empty() && prepare != "none")
        prepared[prepare].push_back(title);
      if (!method.value("multi_view", true))
        notes.push_back(
            title +
            " takes a single view: it is run on each, and the best view is chosen on validation rows.");
      if (!method.value("missing_views", true) && method.value("multi_view", true))
        notes.push_back(title +
                        " cannot handle missing views: missing instances become the mean of the observed "
                        "ones.");
      if (!method.value("missing_labels", true))
        notes.push_back(title + " cannot handle missing labels: unknown ones count as negative.");
      if (method.value("reconstructed", false))
        notes.push_back(title +
                        " is our reconstruction from descriptions; its authors' program was not available.");
    }
    for (const auto& remark : results.header.value("remarks", json::array()))
      notes.push_back(remark.get<std::string>() + ".");
  }
  if (!prepared.empty()) {
    std::vector<std::string> parts;
    for (const auto& [kind, who] : prepared) parts.push_back(fmt::format("{} ({})", kind, join(who, ", ")));
    notes.insert(notes.begin(),
                 "Inputs are prepared as each method requires, and that is part of the comparison: " +
                     join(parts, "; ") + ".");
  }
  return notes;
}

}  // namespace

void show_protocol(const std::vector<ExperimentResults>& all, ReportSink& sink) {
  Page& page = sink.page();
  Shared gaps, rows;
  for (const auto& results : all) {
    gaps.add(protocol_sentences(results.all_gaps(), results.header), results.name);
    rows.add(rows_sentence(results.protocol()), results.name);
  }
  gaps.show(page);
  rows.show(page);
  page.paragraph(
      "All six metrics are 'higher is better': AP is average precision over each item's ranked labels, 1-HL "
      "one minus Hamming loss, 1-RL one minus ranking loss, AUC the paper's adapted area, 1-OE the share of "
      "items whose first label is right, 1-Cov one minus coverage. Deviations are population standard "
      "deviations over repetitions. Ave.R ranks means rounded to three digits and gives ties the best rank, "
      "as the paper that introduced MTD does; Friedman's test ranks the means as they are and gives ties "
      "their mean rank.");
  if (const auto notes = method_notes(all); !notes.empty()) page.list(notes);
  sink.table(data_sets_table(all));
}

}  // namespace lacuna
