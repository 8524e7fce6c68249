#include "experiments/results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "experiments/statistics.h"
#include "methods/method.h"

namespace lacuna {

using nlohmann::json;

std::string place_words(const nlohmann::json& place) {
  const std::string figure = place.value("figure", "");
  if (figure == "without")
    return place.at("view") == "" ? "all views" : "without " + place.at("view").get<std::string>();
  std::vector<std::string> parts;
  for (const auto& [key, value] : place.items()) {
    if (key == "cell" || key == "data" || key == "method" || key == "fold" || key == "figure") continue;
    if (key == "row")
      parts.push_back(value.get<std::string>());
    else if (key == "rate")
      parts.push_back(fmt::format("{} missing {:g}", figure, value.get<double>()));
    else
      parts.push_back(
          fmt::format("{} {}", key == "sigma" ? "mask rate" : key,
                      value.is_number() ? fmt::format("{:g}", value.get<double>()) : value.dump()));
  }
  return join(parts, ", ");
}

std::string cell_words(const nlohmann::json& place) {
  const std::string where = place_words(place);
  return fmt::format("{} on {}{}, repetition {}", place.at("method").get<std::string>(),
                     place.at("data").get<std::string>(), where.empty() ? "" : ", " + where,
                     place.at("fold").get<std::size_t>() + 1);
}

const std::vector<std::string>& paper_metrics() {
  static const std::vector<std::string> names = {"AP", "1-HL", "1-RL", "AUC", "1-OE", "1-Cov"};
  return names;
}

double ResultCell::metric(const std::string& metric_name) const {
  if (!result.is_object() || !result.contains("metrics")) return std::nan("");
  const auto& value = result["metrics"].value(metric_name, json());
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::vector<const ResultCell*> ExperimentResults::select(const std::string& data_name,
                                                         const std::string& method, const json& where) const {
  std::vector<const ResultCell*> found;
  for (const auto& cell : cells) {
    if (cell.data != data_name || cell.method != method || cell.result.is_null()) continue;
    bool agrees = true;
    for (const auto& [key, value] : where.items()) agrees = agrees && cell.place.value(key, json()) == value;
    if (agrees) found.push_back(&cell);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto* a, const auto* b) { return a->fold < b->fold; });
  return found;
}

std::vector<double> ExperimentResults::values(const std::string& data_name, const std::string& method,
                                              const std::string& metric, const json& where) const {
  std::vector<double> found;
  for (const auto* cell : select(data_name, method, where))
    if (const double value = cell->metric(metric); std::isfinite(value)) found.push_back(value);
  return found;
}

std::size_t ExperimentResults::done() const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return !cell.result.is_null(); }));
}
std::size_t ExperimentResults::failed() const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return !cell.error.empty(); }));
}
std::vector<GapFacts> ExperimentResults::all_gaps() const {
  std::vector<GapFacts> all;
  for (const auto& one : data) all.push_back(one.gaps);
  return all;
}

// The versions are those that ran the cells; more than one where a folder was resumed by another.
std::vector<std::pair<std::string, std::string>> ExperimentResults::origin() const {
  std::set<std::string> versions;
  for (const auto& cell : cells)
    if (cell.run.is_object()) versions.insert(cell.run.value("version", "?"));
  if (versions.empty()) versions.insert(LACUNA_VERSION);
  std::vector<std::pair<std::string, std::string>> facts = {
      {"protocol", protocol_name(protocol())},
      {"seed", std::to_string(header.at("mask").value("seed", std::uint64_t{1}))},
      {"version", join({versions.begin(), versions.end()}, ", ")}};
  if (const auto titles = tuned(); !titles.empty()) facts.emplace_back("tuned", join(titles, ", "));
  if (const auto titles = refitted(); !titles.empty()) facts.emplace_back("all_rows", join(titles, ", "));
  return facts;
}

namespace {

// Titles of the methods that have a finished cell for which this holds.
template <class Holds>
std::vector<std::string> titles_where(const ExperimentResults& results, Holds holds) {
  std::vector<std::string> titles;
  for (const auto& method : results.methods)
    if (std::ranges::any_of(results.cells, [&](const ResultCell& cell) {
          return cell.method == method.key && cell.result.is_object() && holds(cell.result);
        }))
      titles.push_back(method.title);
  return titles;
}

}  // namespace

std::vector<std::string> ExperimentResults::tuned() const {
  return titles_where(*this, [](const json& result) { return result.contains("tuning"); });
}

std::vector<std::string> ExperimentResults::refitted() const {
  return titles_where(
      *this, [](const json& result) { return result.value("rows", json::object()).contains("refit"); });
}

std::string ExperimentResults::origin_words() const {
  const auto facts = origin();
  std::string words = fmt::format("Protocol {}{}, seed {}, Lacuna {}.", facts[0].second,
                                  protocol_remark(protocol()), facts[1].second, facts[2].second);
  const auto who = [&](const std::vector<std::string>& titles) {
    return titles.size() == methods.size() ? "all methods" : join(titles, ", ");
  };
  if (const auto titles = tuned(); !titles.empty())
    words +=
        fmt::format(" Settings chosen on the validation rows, among at most {} in each cell (--tune): {}.",
                    header.value("tune", std::int64_t{0}), who(titles));
  if (const auto titles = refitted(); !titles.empty())
    words += fmt::format(" Learned in the end from the validation rows as well (all-rows): {}.", who(titles));
  return words;
}

const MethodInfo& ExperimentResults::lead() const {
  for (const char* wanted : {"mtd", kDefaultMethod})
    for (const auto& method : methods)
      if (method.name == wanted) return method;
  for (const auto& method : methods)
    if (method.ranked) return method;
  return methods.front();
}

namespace {

// A style for every method name, MTD first, then by first appearance, the floor in the colour of the text.
class Styles {
 public:
  int of(const std::string& key) {
    if (key.starts_with("prior")) return 11;
    const auto at = known_.find(key);
    if (at != known_.end()) return at->second;
    static constexpr int kOrder[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12};
    const std::size_t next = known_.size() % std::size(kOrder);
    return known_[key] = kOrder[next];
  }

 private:
  std::map<std::string, int> known_ = {{"mtd", 0}};
};

ExperimentResults load_one(const CellStore& store, const std::string& path, Styles& styles) {
  ExperimentResults results;
  results.header = read_json(path);
  try {
    const json& header = results.header;
    if (header.value("schema", "") != "lacuna.experiment.1")
      fail(Exit::data, "{}: is not an experiment of Lacuna", path);
    results.kind = header.at("kind");
    results.name = header.at("name");
    for (const auto& method : header.at("methods"))
      results.methods.push_back({method.at("key"), method.at("name"), method.at("title"), method.at("source"),
                                 method.at("reconstructed"), method.value("ranked", true),
                                 styles.of(method.at("key"))});
    for (const auto& data : header.at("data")) {
      DataInfo info{data.at("name"), data.at("path"),   data.at("hash"),
                    data.at("rows"), data.at("labels"), {}};
      info.cardinality = data.value("cardinality", 0.);
      const json& mask = header.at("mask");  // older files have no shares of their own
      info.train = data.value("train", mask.value("train", .7));
      info.test = data.value("test", 1 - info.train - mask.value("val", .15));
      info.gaps = data.contains("gaps") ? GapFacts::from_json(data["gaps"]) : GapFacts::asked(mask);
      for (const auto& view : data.at("views")) info.views.emplace_back(view.at("name"), view.at("columns"));
      results.data.push_back(std::move(info));
    }
    std::map<std::string, std::pair<json, json>> loaded;  // a cell may stand at several places
    for (const auto& entry : header.at("cells")) {
      ResultCell cell{
          entry.at("cell"), entry.at("data"), entry.at("method"), entry.at("fold"), entry, {}, {}, {}};
      auto at = loaded.find(cell.id);
      if (at == loaded.end())
        at = loaded
                 .emplace(cell.id,
                          std::pair(store.read(cell.id, "result.json"), store.read(cell.id, "run.json")))
                 .first;
      cell.result = at->second.first;
      cell.run = at->second.second;
      if (cell.result.is_null())
        if (const json failure = store.failure(cell.id); failure.is_object())
          cell.error = failure.value("error", "failed");
      results.cells.push_back(std::move(cell));
    }
  } catch (const json::exception& error) {
    fail(Exit::data, "{}: broken: {}", path, error.what());
  }
  return results;
}

}  // namespace

std::vector<ExperimentResults> load_results(const CellStore& store) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(store.directory() + "/experiments"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  Styles styles;
  std::vector<ExperimentResults> all;
  for (const auto& path : paths) all.push_back(load_one(store, path, styles));
  const std::vector<std::string> order = {"table",      "complete", "ablation", "sensitivity",
                                          "similarity", "missing",  "timing"};
  const auto place = [&](const ExperimentResults& r) {
    return std::find(order.begin(), order.end(), r.kind) - order.begin();
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return all;
}

std::vector<double> average_ranks(MatrixView<const double> means) {
  std::vector<double> average(means.rows, 0), column(means.rows);
  for (std::size_t m = 0; m < means.cols; ++m) {
    for (std::size_t i = 0; i < means.rows; ++i) column[i] = means(i, m);
    const auto ranked = best_ranks(column);
    for (std::size_t i = 0; i < means.rows; ++i) average[i] += ranked[i];
  }
  for (double& sum : average) sum /= static_cast<double>(means.cols);
  return average;
}

std::vector<double> average_ranks(const ExperimentResults& results, const std::string& data) {
  std::vector<std::size_t> taking_part;
  for (std::size_t i = 0; i < results.methods.size(); ++i)
    if (results.methods[i].ranked && !results.select(data, results.methods[i].key).empty())
      taking_part.push_back(i);
  Matrix<double> means(taking_part.size(), paper_metrics().size());
  for (std::size_t k = 0; k < taking_part.size(); ++k)
    for (std::size_t m = 0; m < paper_metrics().size(); ++m) {
      const auto values = results.values(data, results.methods[taking_part[k]].key, paper_metrics()[m]);
      means(k, m) = values.empty() ? std::nan("") : std::round(mean(values) * 1000) / 1000;
    }
  const auto average = average_ranks(means);
  std::vector<double> all(results.methods.size(), std::nan(""));
  for (std::size_t k = 0; k < taking_part.size(); ++k) all[taking_part[k]] = average[k];
  return all;
}

std::size_t rank_place(const std::vector<double>& average, std::size_t i) {
  if (!std::isfinite(average[i])) return average.size();
  const auto printed = [](double rank) { return std::round(rank * 100); };
  std::set<double> better;
  for (const double rank : average)
    if (std::isfinite(rank) && printed(rank) < printed(average[i])) better.insert(printed(rank));
  return better.size();
}

std::vector<double> overall_ranks(const ExperimentResults& results) {
  std::vector<double> overall(results.methods.size(), 0);
  for (const auto& data : results.data) {
    const auto average = average_ranks(results, data.name);
    for (std::size_t i = 0; i < overall.size(); ++i) overall[i] += average[i];
  }
  for (double& sum : overall) sum /= static_cast<double>(results.data.size());
  return overall;
}

}  // namespace lacuna
