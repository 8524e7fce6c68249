#include "cli/trials.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/leftovers.h"

namespace lacuna::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string id_of(const Combination& combination) {
  Sha256 hash;
  hash.add(combination_text(combination));
  return hash.hex().substr(0, 12);
}

// A trial's file, or null if it is not there or not whole.
json read_trial(const std::string& path) {
  if (!fs::exists(path)) return nullptr;
  auto trial = json::parse(read_text(path), nullptr, false);
  const bool whole = trial.is_object() && trial.contains("metrics") && trial["metrics"].is_object() &&
                     trial.contains("settings") && trial["settings"].is_object();
  return whole ? trial : json();
}

}  // namespace

TrialFolder::TrialFolder(std::string folder, std::string metric, const std::vector<Combination>& list)
    : folder_(std::move(folder)),
      metric_(std::move(metric)),
      claims_(folder_ + "/claims",
              [this](const std::string& id) { return !read_trial(path(id) + ".json").is_null(); }) {
  for (const auto& combination : list) ids_.push_back(id_of(combination));
  claims_.sweep();
  remove_old_leftovers(folder_);
}

json TrialFolder::result(std::size_t trial) const {
  return read_trial(path(ids_[trial]) + ".json");
}

double TrialFolder::score(const json& result) const {
  const auto found = result["metrics"].find(metric_);
  return found != result["metrics"].end() && found->is_number() ? found->get<double>() : std::nan("");
}

// Those of this search in its order, then those of earlier ones.
std::vector<std::string> TrialFolder::all_paths() const {
  std::vector<std::string> paths, others;
  for (const auto& id : ids_) paths.push_back(path(id));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    fs::path file = entry.path();
    if (!file.filename().string().starts_with("trial-") || file.extension() != ".json") continue;
    const std::string name = folder_ + "/" + file.stem().string();
    if (std::find(paths.begin(), paths.end(), name) == paths.end()) others.push_back(name);
  }
  std::sort(others.begin(), others.end());
  paths.insert(paths.end(), others.begin(), others.end());
  return paths;
}

TrialFolder::Best TrialFolder::find_best() const {
  Best best;
  for (const auto& path : all_paths()) {
    auto trial = read_trial(path + ".json");
    if (trial.is_null() || std::isnan(score(trial))) continue;
    if (best.result.is_null() || score(trial) > score(best.result)) best = {path, std::move(trial)};
  }
  return best;
}

void TrialFolder::keep(std::size_t trial, const json& result, Model& model) {
  const std::string own = path(ids_[trial]);
  // The model first: a stop in between repeats this trial and writes the same model again. One that is as good as the
  // best may stand before it in the order.
  const Best best = find_best();
  if (!std::isnan(score(result)) && (best.result.is_null() || score(result) >= score(best.result)))
    model.save(own + ".safetensors");
  write_text(own + ".json", result.dump(1) + "\n");
  settle_best();
}

json TrialFolder::settle_best() const {
  const Best best = find_best();
  if (best.result.is_null()) return nullptr;
  std::error_code error;
  const std::string model = best.path + ".safetensors", target = folder_ + "/best.safetensors";
  if (fs::exists(model, error) && !fs::equivalent(model, target, error)) {
    const std::string scratch = fmt::format("{}/.best-{}-{}", folder_, world_tag(), getpid());
    fs::remove(scratch, error);
    fs::create_hard_link(model, scratch, error);
    if (error == std::errc::no_such_file_or_directory)
      return settle_best();  // a better one has come meanwhile
    if (!error) fs::rename(scratch, target, error);
    if (error) fail(Exit::failed, "{}: cannot be written: {}", target, error.message());
  }
  // More trials can only raise the best: the others' models are of no use any more.
  for (const auto& path : all_paths())
    if (path != best.path && fs::exists(path + ".json", error)) fs::remove(path + ".safetensors", error);
  return best.result;
}

}  // namespace lacuna::cli
