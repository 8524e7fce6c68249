// The page about one model, or about one set of scores.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "data/metrics.h"
#include "experiments/report.h"
#include "methods/blend.h"

namespace lacuna {

using nlohmann::json;

namespace {

json metric(const json& metrics, const std::string& name) {
  return metrics.is_object() ? metrics.value(name, json()) : json();
}

TableCell number_or_dash(const json& value, int digits) {
  return value.is_number() ? TableCell::number(value.get<double>(), digits) : TableCell("-");
}

// "0.391 to 0.437", or "".
std::string interval_text(const json& interval) {
  if (!interval.is_array() || interval.size() != 2 || !interval[0].is_number() || !interval[1].is_number())
    return "";
  const double low = interval[0].get<double>(), high = interval[1].get<double>();
  return std::isfinite(low) && std::isfinite(high) ? fmt::format("{:.3f} to {:.3f}", low, high) : "";
}

std::string lead_text(const ModelReport& report) {
  std::string text = report.title + ".";
  if (const json ap = metric(report.metrics, "AP"); ap.is_number()) {
    const std::string interval = interval_text(metric(report.intervals, "AP"));
    text +=
        fmt::format(" On the {} rows the average precision is {:.3f}{}", report.metrics_part,
                    ap.get<double>(), interval.empty() ? "" : fmt::format(" (95 % interval {})", interval));
    if (const json floor = metric(report.floor, "AP"); floor.is_number())
      text += fmt::format("; knowing only how frequent each label is gives {:.3f}", floor.get<double>());
    text += ".";
  }
  if (const json first = metric(report.metrics, "1-OE"); first.is_number())
    text +=
        fmt::format(" The label ranked first is right for {} of the items.", percent(first.get<double>()));
  if (!report.ceiling.empty()) text += " " + report.ceiling;
  return text;
}

void show_views(const ModelReport& report, ReportSink& sink) {
  ResultTable table;
  table.name = "views";
  table.caption =
      fmt::format("The views, and the share of rows without them: in training, and among the {} rows.",
                  report.metrics_part);
  table.header = {"view", "columns", "missing, training", "missing, " + report.metrics_part};
  for (const auto& view : report.views)
    table.rows.push_back({view.name, TableCell::number(static_cast<double>(view.columns), 0),
                          TableCell(percent(view.missing_train)), TableCell(percent(view.missing))});
  sink.page().section("Views");
  sink.table(table);
}

void show_metrics(const ModelReport& report, ReportSink& sink) {
  Page& page = sink.page();
  page.section("Metrics");
  if (!report.caution.empty()) page.paragraph(report.caution);
  if (!report.decision.empty()) page.paragraph(report.decision);
  ResultTable table;
  table.name = "metrics";
  table.caption = fmt::format("On the {} rows; higher is better for all of them.", report.metrics_part);
  const bool intervals = report.intervals.is_object() && !report.intervals.empty(),
             floor = report.floor.is_object() && !report.floor.empty();
  table.header = {"metric", "value"};
  std::vector<std::pair<std::string, std::string>> words;
  if (intervals) table.header.push_back("95 % interval");
  if (floor) table.header.push_back("floor");
  bool undefined = false;
  for (const MetricDefinition& definition : metric_definitions()) {
    const std::string name = definition.name;
    const json value = metric(report.metrics, name);
    if (value.is_null()) continue;
    const bool defined = value.is_number() && std::isfinite(value.get<double>());
    undefined = undefined || !defined;
    std::vector<TableCell> row = {name, number_or_dash(value, 4)};
    if (intervals) row.emplace_back(defined ? interval_text(metric(report.intervals, name)) : "");
    if (floor) row.push_back(number_or_dash(metric(report.floor, name), 4));
    words.emplace_back(name, definition.words);
    table.rows.push_back(std::move(row));
  }
  if (floor)
    table.notes.push_back(
        "Floor: the same metric, by the same rule, when every item gets the label frequencies of the "
        "training "
        "rows as its scores. A model that is no better has learned nothing from the views.");
  if (intervals) table.notes.push_back("Intervals: percentiles over resampled rows.");
  if (undefined)
    table.notes.push_back(
        "A dash: the metric is undefined on these rows. 1-Cov is undefined where rows without a positive "
        "label "
        "outweigh the others; other metrics are where no known positive, or no known negative, allows them.");
  sink.table(table);
  page.definitions(words);
}

// The candidates of a preset that blends some of them. Their names are long, so the reason comes last.
void show_choice(const json& choice, ReportSink& sink) {
  const std::string measure = choice.value("measure", "AP");
  const auto rows = choice.value("judged_rows", std::uint64_t{0});
  ResultTable table;
  table.name = "candidates";
  const bool judged = rows >= kFewestJudged;
  if (judged)
    table.caption = fmt::format(
        "The candidates, judged on {} rows{} {}.", rows, measure == "AP" ? " with labels of both kinds" : "",
        choice.value("crossed", false) ? "by fits that had not seen them" : "that were held out");
  else
    table.caption = rows == 0
                        ? "The candidates. No row was held out, so there was nothing to judge them by."
                        : fmt::format("The candidates. {} rows are too few to judge them by, {} are needed.",
                                      rows, kFewestJudged);
  table.header = {"candidate", "weight", measure + " alone", "left out because"};
  for (const json& one : choice.value("members", json::array()))
    table.rows.push_back({one.value("member", ""), number_or_dash(one.value("weight", json()), 2),
                          number_or_dash(one.value(measure, json()), 4), one.value("left_out", "")});
  if (const json together = choice.value(measure, json()); judged && together.is_number())
    table.notes.push_back(fmt::format("Together: {} {:.4f}, {:+.4f} ± {:.4f} over the first alone.", measure,
                                      together.get<double>(), choice.value("gain", 0.),
                                      choice.value("error", 0.)));
  sink.page().section("Candidates");
  sink.table(table);
}

// Whose course is drawn, where there are several.
std::string drawn_fit(const ModelReport& report, bool members, bool views) {
  if (report.choice.is_object()) {
    const json first = report.choice.value("members", json::array({json::object()})).at(0);
    return std::string(" of the first candidate") +
           (first.value("weight", json()) == 0 ? ", which got no weight," : "");
  }
  return members ? " of the first member" : views ? " of the first view" : "";
}

void show_course(const ModelReport& report, ReportSink& sink) {
  const auto more = [&](const char* name) {
    return std::ranges::any_of(report.history, [&](const json& line) { return line.value(name, 0) > 0; });
  };
  LinePlot curves{
      .title = "Metrics on validation rows", .x_label = "epoch", .y_label = "value", .series = {}};
  int style = 0;
  for (const char* name : {"AP", "1-RL", "AUC", "1-OE", "1-Cov"}) {
    Series series = validation_curve(report.history, name);
    series.name = name;
    series.style = style++;
    series.lead = series.style == 0;
    if (series.x.size() > 1) curves.series.push_back(std::move(series));
  }
  LinePlot losses{.title = "Losses", .x_label = "epoch", .y_label = "loss", .series = {}};
  for (const auto& line : report.history) {
    if (!of_first_fit(line) || !line.contains("losses")) continue;
    for (const auto& [name, value] : line["losses"].items()) {
      if (!value.is_number()) continue;
      auto at = std::find_if(losses.series.begin(), losses.series.end(),
                             [&name = name](const Series& s) { return s.name == name; });
      if (at == losses.series.end()) {
        losses.series.push_back(
            {.name = name, .style = static_cast<int>(losses.series.size()), .lead = name == "total"});
        at = losses.series.end() - 1;
      }
      at->x.push_back(line.value("epoch", 0.));
      at->y.push_back(value.get<double>());
    }
  }
  const bool members = more("member"), views = more("view");
  std::string kept;
  json first_member;  // the last line of the member that is drawn
  for (const auto& line : report.history)
    if (of_first_fit(line)) first_member = line;
  if (const auto epoch = first_member.value("kept", 0.); epoch > 0) {
    curves.guide = losses.guide = LinePlot::Guide{epoch, fmt::format("kept: epoch {:g}", epoch)};
    kept = " The dashed line is the epoch whose parameters were kept.";
  }
  const std::string whose = drawn_fit(report, members, views);
  sink.page().section("Learning");
  sink.page().begin_gallery();
  if (!curves.series.empty())
    sink.plot("validation", curves, fmt::format("Metrics{} on validation rows by epoch.{}", whose, kept));
  if (!losses.series.empty())
    sink.plot(
        "losses", losses,
        fmt::format("Training losses{} by epoch: the total as it is minimised, its parts before weighting.{}",
                    whose, kept));
  sink.page().end_gallery();
}

// --- what each view is good for (methods/view_summary.h, as JSON) ---

std::string with_interval(const json& value, const json& interval, int digits, bool sign) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) return "-";
  const auto text = [&](double x) {
    return sign ? fmt::format("{:+.{}f}", x, digits) : fmt::format("{:.{}f}", x, digits);
  };
  std::string cell = text(value.get<double>());
  if (interval.is_array() && interval.size() == 2 && interval[0].is_number() && interval[1].is_number())
    cell += fmt::format(" ({} to {})", text(interval[0].get<double>()), text(interval[1].get<double>()));
  return cell;
}

ResultTable importance_table(const json& views) {
  ResultTable table;
  table.name = "importance";
  table.caption = "What each view contributes, on the items that have it; 95 % intervals in brackets.";
  table.header = {"view", "items", "mean |Shapley value|", "AP lost without it"};
  for (const auto& view : views)
    table.rows.push_back(
        {view.at("view").get<std::string>(), number_or_dash(view.at("items"), 0),
         with_interval(view.value("effect", json()), view.value("effect_interval", json()), 3, false),
         with_interval(view.value("ap_loss", json()), view.value("ap_loss_interval", json()), 3, true)});
  table.notes.push_back(
      "Shapley value: how far a view moves the score of a tag, averaged over all orders in which views could "
      "arrive; the mean is over items and tags. AP lost: average precision with all views of an item minus "
      "that without this one.");
  return table;
}

// Views by tags, the tags that any view moves most first.
std::optional<HeatMap> importance_map(const json& views) {
  constexpr std::size_t kShown = 24;
  HeatMap map{
      .title = "Mean |Shapley value| of views by tag", .value_label = "mean |Shapley value|", .digits = 2};
  std::vector<std::pair<double, std::size_t>> order;
  for (const auto& view : views) {
    map.columns.push_back(view.at("view").get<std::string>());
    const json labels = view.value("labels", json::array());
    order.resize(std::max(order.size(), labels.size()), {0, 0});
    for (std::size_t j = 0; j < labels.size(); ++j) {
      order[j].second = j;
      if (const json effect = labels[j].value("effect", json()); effect.is_number())
        order[j].first = std::max(order[j].first, effect.get<double>());
    }
  }
  if (order.empty() || map.columns.empty()) return std::nullopt;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  order.resize(std::min(order.size(), kShown));
  Matrix<double> values(order.size(), map.columns.size());
  map.colours.add(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    map.rows.push_back(views[0].at("labels")[order[i].second].value("label", ""));
    for (std::size_t v = 0; v < map.columns.size(); ++v) {
      const json effect = views[v].at("labels")[order[i].second].value("effect", json());
      values(i, v) = effect.is_number() ? effect.get<double>() : kMissing;
      map.colours.add(values(i, v));
    }
  }
  map.panels.push_back({"", std::move(values)});
  return map;
}

ResultTable pattern_table(const json& patterns, const json& alone) {
  ResultTable table;
  table.name = "patterns";
  table.caption = "Accuracy by available views, most frequent first, and by one view alone.";
  table.header = {"views", "items", "AP (95 % interval)"};
  const auto add = [&](const json& pattern, const std::string& before) {
    std::vector<std::string> names;
    for (const auto& view : pattern.at("views")) names.push_back(view.get<std::string>());
    table.rows.push_back(
        {before + join(names, " + "), number_or_dash(pattern.at("items"), 0),
         with_interval(pattern.value("AP", json()), pattern.value("AP_interval", json()), 3, false)});
  };
  for (const auto& pattern : patterns) add(pattern, "");
  if (!alone.empty()) table.rules.push_back(table.rows.size());
  for (const auto& pattern : alone) add(pattern, "only ");
  table.notes.push_back(
      "Above the line: items as they are. Below it: every item that has the view, with all its other views "
      "removed.");
  return table;
}

void show_importance(const json& importance, ReportSink& sink) {
  const json views = importance.value("views", json::array());
  if (views.empty()) return;
  sink.page().section("What each view is good for");
  sink.table(importance_table(views));
  if (auto map = importance_map(views))
    sink.plot("importance", *map,
              "Mean |Shapley value| of each view for each tag, the tags that any view moves most first; grey "
              "where no item "
              "has the view.");
  const json patterns = importance.value("patterns", json::array());
  if (!patterns.empty()) sink.table(pattern_table(patterns, importance.value("alone", json::array())), 40);
}

}  // namespace

std::string model_report_text(const ModelReport& report) {
  Page page(report.title, "A report by Lacuna about one model");
  ReportSink sink(page, "");
  page.section("Overview");
  page.lead(lead_text(report));
  page.definitions(report.facts);
  if (!report.views.empty()) show_views(report, sink);
  if (report.metrics.is_object() && !report.metrics.empty()) show_metrics(report, sink);
  if (report.choice.is_object()) show_choice(report.choice, sink);
  if (report.history.is_array() && report.history.size() > 1) show_course(report, sink);
  if (report.importance.is_object()) show_importance(report.importance, sink);
  if (report.details.is_object()) {
    page.section("Labels");
    show_details("model", report.title, report.details, sink);
  }
  page.section(report.command.empty() ? "Settings" : "How to reproduce it");
  if (!report.command.empty()) page.code(report.command);
  if (report.options.is_object() && !report.options.empty()) {
    page.begin_details("all settings");
    std::vector<std::pair<std::string, std::string>> settings;
    for (const auto& [name, value] : report.options.items())
      settings.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
    page.definitions(settings);
    page.end_details();
  }
  return page.text();
}

void write_model_report(const ModelReport& report, const std::string& path) {
  write_text(path, model_report_text(report));
}

}  // namespace lacuna
