#include "experiments/status.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "experiments/results.h"

namespace lacuna {
namespace {

using nlohmann::json;

constexpr double kHour = 3600;

struct Finished {
  double when = 0, seconds = 0;  // by the clock of the machine that ran it; of the whole cell
};

double time_of(const std::string& text) {
  std::tm utc{};
  return strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc) != nullptr ? static_cast<double>(timegm(&utc))
                                                                       : 0;
}

// The mean of finished cells of one method on one data set; nothing is assumed of others.
struct Means {
  std::map<std::string, std::pair<double, std::size_t>> sums;
  static std::string group(const json& place) {
    return place.at("method").get<std::string>() + "\n" + place.at("data").get<std::string>();
  }
  void add(const json& place, double seconds) {
    auto& sum = sums[group(place)];
    sum.first += seconds, ++sum.second;
  }
  double of(const json& place) const {  // negative: unknown
    const auto at = sums.find(group(place));
    return at == sums.end() ? -1 : at->second.first / static_cast<double>(at->second.second);
  }
};

double cells_per_hour(const std::vector<Finished>& finished) {
  const auto now = static_cast<double>(std::time(nullptr));
  double since = now;
  std::size_t count = 0;
  for (const auto& [when, seconds] : finished) {
    if (when < now - kHour) continue;
    since = std::min(since, when - seconds);
    ++count;
  }
  return count == 0 ? 0 : static_cast<double>(count) * kHour / std::clamp(now - since, 1., kHour);
}

json entries_json(const std::vector<GridStatus::Entry>& entries) {
  json list = json::array();
  for (const auto& entry : entries) {
    json one = {{"cell", entry.id}, {"what", entry.what}};
    if (!entry.error.empty())
      one["error"] = entry.error;
    else
      one.update({{"host", entry.owner.host},
                  {"process", entry.owner.pid},
                  {"seconds", entry.owner.seconds},
                  {"silent", entry.owner.silent}});
    list.push_back(std::move(one));
  }
  return list;
}

// What a cell is counted as; those of interest are kept by name.
class Looker {
 public:
  explicit Looker(const CellStore& store) : store_(store), owners_(store.owners()) {}

  void look(const json& place, GridStatus::Count& count) {
    const std::string id = place.at("cell");
    const auto [at, fresh] = seen_.try_emplace(id, &GridStatus::Count::open);
    if (fresh) {
      at->second = kind(id, place);
      add(status.total, at->second);
    }
    add(count, at->second);
  }

  void finish() {
    for (const auto& [place, spent] : unfinished_) {
      const double mean = means_.of(place);
      if (mean < 0)
        ++status.untimed;
      else
        status.seconds_left += std::max(0., mean - spent);
    }
    status.seconds_left /= static_cast<double>(std::max<std::size_t>(1, status.running.size()));
    status.per_hour = cells_per_hour(finished_);
  }

  GridStatus status;

 private:
  using Kind = std::size_t GridStatus::Count::*;
  static void add(GridStatus::Count& count, Kind kind) { ++count.cells, ++(count.*kind); }

  Kind kind(const std::string& id, const json& place) {
    if (std::filesystem::exists(store_.cell_path(id))) {
      if (const json run = store_.read(id, "run.json"); run.is_object()) {
        finished_.push_back({time_of(run.value("finished", "")), run.at("seconds").value("total", 0.)});
        means_.add(place, finished_.back().seconds);
      }
      return &GridStatus::Count::done;
    }
    if (const json failure = store_.failure(id); failure.is_object()) {
      status.failed.push_back({id, cell_words(place), Owner(), failure.value("error", "failed")});
      return &GridStatus::Count::failed;
    }
    const auto owner = owners_.find(id);
    const bool running = owner != owners_.end() && owner->second.alive;
    unfinished_.emplace_back(place, running ? owner->second.seconds : 0);
    if (owner == owners_.end()) return &GridStatus::Count::open;
    (running ? status.running : status.stale).push_back({id, cell_words(place), owner->second, ""});
    return running ? &GridStatus::Count::running : &GridStatus::Count::stale;
  }

  const CellStore& store_;
  std::map<std::string, Owner> owners_;
  std::map<std::string, Kind> seen_;
  Means means_;
  std::vector<Finished> finished_;
  std::vector<std::pair<json, double>> unfinished_;  // place, seconds spent by the process that runs it
};

std::string list_text(const char* word, const std::vector<GridStatus::Entry>& entries) {
  std::string text;
  for (const auto& entry : entries) {
    text += fmt::format("{} {}  {}", word, entry.id, entry.what);
    if (!entry.error.empty())
      text += ": " + entry.error;
    else
      text += fmt::format("; process {} on {}, for {}, last heartbeat {} ago", entry.owner.pid, entry.owner.host,
                          duration_text(entry.owner.seconds), duration_text(entry.owner.silent));
    text += "\n";
  }
  return text;
}

}  // namespace

json GridStatus::Count::json() const {
  return {{"cells", cells},   {"done", done},   {"running", running},
          {"failed", failed}, {"stale", stale}, {"open", open}};
}

json GridStatus::json() const {
  nlohmann::json document = total.json();
  document["schema"] = "lacuna.status.1";
  document["cells_per_hour"] = per_hour;
  document["seconds_left"] = seconds_left;
  document["untimed"] = untimed;
  document["experiments"] = nlohmann::json::array();
  for (const auto& count : experiments) {
    document["experiments"].push_back(count.json());
    document["experiments"].back()["name"] = count.name;
  }
  document["running_cells"] = entries_json(running);
  document["stale_cells"] = entries_json(stale);
  document["failed_cells"] = entries_json(failed);
  return document;
}

std::string GridStatus::text() const {
  TextTable table({"", "cells", "done", "running", "failed", "stale", "open"});
  const auto row = [&](const std::string& name, const Count& count) {
    std::vector<std::string> cells = {name};
    for (const std::size_t number :
         {count.cells, count.done, count.running, count.failed, count.stale, count.open})
      cells.push_back(std::to_string(number));
    table.add(cells);
  };
  for (const auto& count : experiments) row(count.name, count);
  if (experiments.size() > 1) row("each cell once", total);
  std::string text =
      table.text() + list_text("running", running) + list_text("stale", stale) + list_text("failed", failed);
  text += fmt::format("{} cells per hour recently",
                      per_hour < 10 ? fmt::format("{:.2g}", per_hour)
                                    : count_text(static_cast<std::uint64_t>(std::lround(per_hour))));
  if (seconds_left > 0)
    text += fmt::format("; about {} left {}", duration_text(seconds_left),
                        running.empty() ? "for one process, and none is working"
                                        : fmt::format("with {} working", running.size()));
  if (untimed > 0)
    text += fmt::format("{} {} {} of methods not timed yet", seconds_left > 0 ? " and" : ";", untimed,
                        untimed == 1 ? "cell" : "cells");
  return text + "\n";
}

GridStatus grid_status(const CellStore& store) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(store.directory() + "/experiments"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  Looker looker(store);
  for (const auto& path : paths) {
    const json header = read_json(path);
    try {
      GridStatus::Count count{.name = header.at("name")};
      for (const auto& place : header.at("cells")) looker.look(place, count);
      looker.status.experiments.push_back(count);
    } catch (const json::exception& error) {
      fail(Exit::data, "{}: broken: {}", path, error.what());
    }
  }
  looker.finish();
  return std::move(looker.status);
}

}  // namespace lacuna
