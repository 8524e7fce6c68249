#include "experiments/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "experiments/machine.h"
#include "experiments/statistics.h"

namespace lacuna {

using nlohmann::json;

ReportSink::ReportSink(Page& page, std::string directory) : page_(page), directory_(std::move(directory)) {
  if (directory_.empty()) return;
  make_directories(directory_ + "/tables");
  make_directories(directory_ + "/plots");
}

// A path made of the safe characters of `name`, used once.
std::string ReportSink::unique(const std::string& folder, const std::string& name) {
  std::string safe;
  for (char c : name.substr(0, 120))
    safe += std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.' ? c : '_';
  if (safe.empty() || safe[0] == '.') safe = "_" + safe;
  safe = "/" + folder + "/" + safe;
  std::string result = safe;
  for (int copy = 2; !used_.insert(result).second; ++copy) result = fmt::format("{}-{}", safe, copy);
  return directory_ + result;
}

void ReportSink::of(const ExperimentResults* results) {
  origin_.clear(), origin_words_.clear();
  if (results != nullptr) origin_ = results->origin(), origin_words_ = results->origin_words();
}

void ReportSink::table(const ResultTable& given, std::size_t shown) {
  ResultTable table = given;
  table.origin = origin_;
  if (!origin_words_.empty()) table.caption += " " + origin_words_;
  if (!directory_.empty()) {
    const std::string path = unique("tables", table.name);
    ResultTable file = table;
    file.name = std::filesystem::path(path).filename().string();  // labels are as unique as files
    if (!caution_.empty()) file.notes.push_back(caution_);
    write_text(path + ".md", file.markdown());
    write_text(path + ".csv", file.csv());
    write_text(path + ".tex", file.latex());
  }
  if (table.rows.size() > shown) table.rows.resize(shown);
  page_.table(table);
}

void ReportSink::warn(const std::string& words) {
  page_.paragraph(words);
  caution_ = words;
}

void ReportSink::table_file(const std::string& name, const std::string& ending, const std::string& content) {
  if (!directory_.empty()) write_text(unique("tables", name) + ending, content);
}

void ReportSink::figure(const std::string& name, const Svg& wide, const Svg& narrow,
                        const std::string& caption) {
  if (!directory_.empty()) write_text(unique("plots", name) + ".svg", wide.file_text());
  page_.figure(wide, narrow, caption);
}

std::string spread_words(std::size_t repetitions) {
  return repetitions > 1 ? fmt::format("± is the {} over {} repetitions", kDeviationWords, repetitions)
                         : "one repetition, so no deviation is known";
}

TableCell mean_cell(const std::vector<double>& values, int digits) {
  if (values.empty()) return "-";
  TableCell cell = TableCell::number(mean(values), digits);
  if (values.size() > 1) cell.deviation = deviation(values);
  return cell;
}

namespace {

std::string count_of(std::size_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string place_text(std::size_t place) {
  const char* ending = place % 10 == 1 && place % 100 != 11   ? "st"
                       : place % 10 == 2 && place % 100 != 12 ? "nd"
                       : place % 10 == 3 && place % 100 != 13 ? "rd"
                                                              : "th";
  return fmt::format("{}{}", place, ending);
}

// Three sentences: what was compared, who came out how, what to think of it.
std::string overview(const std::vector<ExperimentResults>& all) {
  const ExperimentResults& main = all.front();
  const auto& mask = main.header.at("mask");
  std::string text = fmt::format(
      "{} {} on {} with up to {}, {}.", count_of(main.methods.size(), "method"),
      main.methods.size() == 1 ? "was run" : "were compared", count_of(main.data.size(), "data set"),
      count_of(static_cast<std::size_t>(mask.value("repeats", std::int64_t{1})), "repetition"), main.gaps());
  if ((main.kind == "table" || main.kind == "complete") && main.methods.size() > 1) {
    const std::vector<double> average = overall_ranks(main);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < average.size(); ++i)
      if (std::isfinite(average[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return average[a] < average[b]; });
    const std::string lead = main.lead().key;
    const std::size_t place = static_cast<std::size_t>(
        std::find_if(order.begin(), order.end(), [&](std::size_t i) { return main.methods[i].key == lead; }) -
        order.begin());
    if (order.size() < 2) {
      text += " Too few cells are done to rank the methods.";
    } else {
      text += fmt::format(
          " By average rank over the six metrics {} is first ({:.2f}), followed by {} ({:.2f})",
          main.methods[order[0]].title, average[order[0]], main.methods[order[1]].title, average[order[1]]);
      text += place > 1 && place < order.size() && main.lead().name == "mtd"
                  ? fmt::format("; {} is {} of {} ({:.2f}).", main.methods[order[place]].title,
                                place_text(place + 1), order.size(), average[order[place]])
                  : ".";
    }
  } else {
    text += fmt::format(" The experiment is '{}'.", main.kind);
  }
  std::size_t done = 0, failed = 0;
  double seconds = 0;
  std::set<std::string> seen;  // a cell may stand at several places
  for (const auto& results : all)
    for (const auto& cell : results.cells) {
      if (!seen.insert(cell.id).second) continue;
      done += !cell.result.is_null();
      failed += !cell.error.empty();
      if (cell.run.is_object()) seconds += cell.run.at("seconds").value("total", 0.);
    }
  text += fmt::format(
      " {} of {} cells are done and {} failed, in {} of computing{}.", done, seen.size(), failed,
      duration_text(seconds),
      main.protocol() == Protocol::authors
          ? "; the protocol is that of the authors' program, which puts validation rows into the test"
      : main.protocol() == Protocol::transductive
          ? "; the protocol is transductive: the views of validation and test rows take part in training"
          : "");
  return text;
}

void show_reproduction(const std::vector<ExperimentResults>& all, const std::string& directory,
                       ReportSink& sink) {
  Page& page = sink.page();
  page.paragraph("To get the same numbers on the same type of machine, with any number of threads, run");
  std::set<std::string> commands;
  for (const auto& results : all)
    if (const std::string command = results.header.at("command"); commands.insert(command).second)
      page.code(command);
  page.paragraph(
      "Each figure is a mean over cells; to repeat a cell and compare it with the stored result, run");
  page.code("lacuna bench rerun " + directory + "/cells/ID");
  ResultTable table;
  table.name = "cells";
  table.caption = "All cells, at every place where they are used.";
  table.header = {"experiment", "protocol", "data", "method", "repetition", "AP", "seconds", "cell", "state"};
  std::set<std::string> seen;
  for (const auto& results : all)
    for (const auto& cell : results.cells) {
      seen.insert(cell.id);
      const std::string place = place_words(cell.place),
                        where = results.name + (place.empty() ? "" : ": " + place);
      table.rows.push_back(
          {where, protocol_name(results.protocol()), cell.data, cell.method,
           TableCell::number(static_cast<double>(cell.fold + 1), 0), TableCell::number(cell.metric("AP"), 4),
           cell.run.is_object() ? TableCell::number(cell.run.at("seconds").value("total", 0.), 2)
                                : TableCell("-"),
           cell.id,
           !cell.error.empty()     ? "failed: " + cell.error
           : cell.result.is_null() ? "not run"
                                   : "done"});
    }
  table.filter = true;
  constexpr std::size_t kShown = 1000;
  if (table.rows.size() > kShown)
    table.caption = fmt::format("The first {} of {} lines; the table's files contain all of them.", kShown,
                                table.rows.size());
  page.begin_details(seen.size() == table.rows.size()
                         ? count_of(seen.size(), "cell")
                         : fmt::format("{}, at {} places", count_of(seen.size(), "cell"), table.rows.size()));
  sink.table(table, kShown);
  page.end_details();
  std::set<std::string> machines;
  for (const auto& results : all)
    for (const auto& cell : results.cells)
      if (cell.run.is_object())
        machines.insert(
            fmt::format("Lacuna {} on {}, {} cores, {} of memory, {}", cell.run.value("version", "?"),
                        cell.run.value("processor", "?"), cell.run.value("cores", 0),
                        bytes_text(cell.run.value("memory_bytes", 0.)), cell.run.value("system", "?")));
  page.list({machines.begin(), machines.end()});
}

const ExperimentResults* first_of(const std::vector<ExperimentResults>& all,
                                  std::initializer_list<const char*> kinds) {
  for (const char* kind : kinds)
    for (const auto& results : all)
      if (results.kind == kind && results.done() > 0) return &results;
  return nullptr;
}

}  // namespace

namespace {

void show_failures(const std::vector<ExperimentResults>& all, Page& page) {
  for (const auto& results : all) {
    if (results.failed() == 0) continue;
    std::map<std::string, std::size_t> errors;
    for (const auto& cell : results.cells)
      if (!cell.error.empty()) ++errors[fmt::format("{} on {}: {}", cell.method, cell.data, cell.error)];
    std::vector<std::string> lines;
    for (const auto& [error, count] : errors)
      lines.push_back(fmt::format("{} failed: {}", count_of(count, "cell"), error));
    page.list(lines);
  }
}

void begin_part(const ExperimentResults& results, const std::string& heading, ReportSink& sink) {
  Page& page = sink.page();
  sink.of(&results);
  page.section(results.name == results.kind ? heading : fmt::format("{} ({})", heading, results.name));
  if (results.protocol() == Protocol::authors)
    page.paragraph(
        "Protocol of the authors' program: the test contains validation rows. Compare only with figures of "
        "the same protocol.");
  if (results.protocol() == Protocol::transductive)
    page.paragraph(
        "Protocol transductive: the views of validation and test rows take part in training, their labels "
        "do not. Compare only with figures of the same protocol.");
}

const char* comparison_heading(const ExperimentResults& results) {
  const auto sets = results.all_gaps();
  if (std::ranges::all_of(sets, &GapFacts::none)) return "Results without gaps";
  return std::ranges::any_of(sets, &GapFacts::added) ? "Results with missing data"
                                                     : "Results with only the gaps of the data";
}

void show_experiment(const ExperimentResults& results, ReportSink& sink) {
  const auto part = [&](const char* heading) { begin_part(results, heading, sink); };
  if (results.kind == "table") {
    part(comparison_heading(results));
    show_comparison(results, sink);
    if (results.methods.size() > 1) {
      part("Significance");
      show_significance(results, sink);
    }
    part("Shape of the results");
    show_radars(results, sink);
  } else if (results.kind == "complete") {
    part(comparison_heading(results));
    show_radars(results, sink);
    show_comparison(results, sink);
  } else if (results.kind == "ablation") {
    part("Ablation");
    show_ablation(results, sink);
  } else if (results.kind == "sensitivity") {
    part("Sensitivity");
    show_sensitivity(results, sink);
  } else if (results.kind == "similarity") {
    part("Channels");
    show_similarity(results, sink);
  } else if (results.kind == "missing") {
    part("Against missing data");
    show_missing(results, sink);
  }
}

// How the main experiment's methods learned, and single labels of the method that the report looks at most closely.
void show_closer(const ExperimentResults& main, const CellStore& store, ReportSink& sink) {
  Page& page = sink.page();
  sink.of(&main);
  if (has_learning(main)) {
    page.section("Learning curves");
    show_learning(main, sink);
  }
  page.section("Labels");
  page.paragraph(
      fmt::format("{}, first repetition, on its test rows; labels are decided by the method's own rule.",
                  main.lead().title));
  for (const auto& data : main.data) {
    const auto cells = main.select(data.name, main.lead().key);
    if (cells.empty() || cells[0]->fold != 0) continue;
    page.heading(data.name);
    show_details("labels-" + data.name, fmt::format("{}, {}, first repetition", data.name, main.lead().title),
                 store.read(cells[0]->id, "details.json"), sink);
  }
}

}  // namespace

std::string write_report(const std::string& directory) {
  namespace fs = std::filesystem;
  if (!fs::is_directory(directory + "/experiments"))
    fail(Exit::usage, "{} contains no experiments; lacuna bench makes them", directory);
  const CellStore store(directory);
  const auto all = load_results(store);
  if (all.empty()) fail(Exit::usage, "{} contains no experiments; lacuna bench makes them", directory);
  std::string data_names;
  for (const auto& data : all.front().data) data_names += (data_names.empty() ? "" : ", ") + data.name;
  Page page(data_names.size() < 60 ? "Experiments on " + data_names : "Experiments",
            "A report by Lacuna " LACUNA_VERSION);
  ReportSink sink(page, directory);

  page.section("Overview");
  std::set<std::string> cautions;
  for (const auto& results : all)
    if (const std::string words = results.header.value("caution", "");
        !words.empty() && cautions.insert(words).second)
      sink.warn(words);
  page.lead(overview(all));
  show_failures(all, page);
  for (const auto& results : all)
    if (results.done() > 0) show_experiment(results, sink);
  if (const auto* main = first_of(all, {"table", "complete"})) show_closer(*main, store, sink);
  if (const auto* timed = first_of(all, {"timing", "table", "complete"})) {
    page.section("Time and memory");
    sink.of(timed);
    show_timing(*timed, sink);
  }
  sink.of(nullptr);  // what follows is about all experiments
  page.section("Protocol");
  show_protocol(all, sink);
  page.section("How to reproduce it");
  show_reproduction(all, fs::path(directory).lexically_normal().filename().string(), sink);
  const std::string path = directory + "/report.html";
  write_text(path, page.text());
  return path;
}

}  // namespace lacuna
