#include "serve/registry.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace lacuna::serve {

ServedModel::ServedModel(std::string served_as, std::string from, std::string number, Model loaded,
                         const std::string& empty)
    : path(std::move(from)), version(std::move(number)), model(std::move(loaded)) {
  name = std::move(served_as);
  for (const auto& view : model.preparation().views()) views.push_back({view.name, view.columns});
  shapes = model.view_shapes(empty);
  for (ViewShape& shape : shapes) shape.column_names.clear();  // every request takes a copy
}

Registry::Registry(const std::vector<std::string>& files, const std::string& precision,
                   const std::string& empty, Counters& counters)
    : precision_(precision), empty_(empty), counters_(counters) {
  for (const std::string& file : files) {
    Entry& entry = entries_.emplace_back();
    const std::size_t equals = file.find('=');
    entry.path = equals == std::string::npos ? file : file.substr(equals + 1);
    entry.name =
        equals == std::string::npos ? std::filesystem::path(file).stem().string() : file.substr(0, equals);
    if (entry.name.empty() || entry.name.find('/') != std::string::npos)
      fail(Exit::usage, "'{}' is not a name for a model; write NAME=PATH", file);
    for (const Entry& other : entries_)
      if (&other != &entry && other.name == entry.name)
        fail(Exit::usage, "{} and {} would both be served as '{}'; write NAME=PATH for one of them",
             other.path, entry.path, entry.name);
    entry.loaded = entry.seen = stamp_of(entry.path);
    entry.model = load(entry);
  }
}

ModelPointer Registry::load(const Entry& entry) const {
  Tensors file = Tensors::read(entry.path);
  if (precision_ != "model") {
    auto& meta = file.metadata;
    if (meta.contains("options") && meta["options"].contains("precision"))
      meta["options"]["precision"] = precision_;
  }
  return std::make_shared<ServedModel>(entry.name, entry.path, std::to_string(entry.version),
                                       Model::load(file), empty_);
}

Registry::Stamp Registry::stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec};
}

// What clients of the old model would trip over; empty where the new one takes and gives the same.
std::string Registry::changes(const ServedModel& before, const ServedModel& now) {
  std::vector<std::string> found;
  const auto views_of = [](const ServedModel& served) {
    std::vector<std::string> views;
    for (const auto& view : served.views) views.push_back(fmt::format("{} {}", view.name, view.columns));
    return views;
  };
  if (const auto old = views_of(before), fresh = views_of(now); old != fresh)
    found.push_back(fmt::format("views were {} and are {}", join(old, ", "), join(fresh, ", ")));
  const auto &old_columns = before.model.columns().views(), &columns = now.model.columns().views();
  for (std::size_t v = 0; found.empty() && v < columns.size(); ++v)
    if (columns[v].names != old_columns[v].names)
      found.push_back(
          fmt::format("the columns of view {} have other names or another order", columns[v].view));
  const auto &old_labels = before.model.label_names(), &labels = now.model.label_names();
  std::size_t j = 0;
  while (j < labels.size() && j < old_labels.size() && labels[j] == old_labels[j]) ++j;
  if (old_labels.size() != labels.size())
    found.push_back(fmt::format("there were {} labels and are {}", old_labels.size(), labels.size()));
  else if (j < labels.size())
    found.push_back(fmt::format("label {} was '{}' and is '{}'", j, old_labels[j], labels[j]));
  return join(found, "; ");
}

ModelPointer Registry::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    if (entry.name == name) return entry.model;
  return nullptr;
}

ModelPointer Registry::only() const {
  const std::lock_guard lock(mutex_);
  return entries_.size() == 1 ? entries_[0].model : nullptr;
}

std::vector<ModelPointer> Registry::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelPointer> models;
  for (const Entry& entry : entries_) models.push_back(entry.model);
  return models;
}

void Registry::look() {
  for (Entry& entry : entries_) {
    const Stamp now = stamp_of(entry.path);
    const bool settled = now == entry.seen;
    entry.seen = now;
    if (!settled) continue;
    if (const bool gone = now == Stamp{}; gone != entry.gone) {
      entry.gone = gone;
      counters_.files_gone += gone ? 1 : -1;
      fmt::print(stderr, "model {}: stays at version {}, {} {}\n", entry.name, entry.version, entry.path,
                 gone ? "is gone" : "is there again");
    }
    if (entry.gone || now == entry.loaded) continue;
    entry.loaded = now;
    ++entry.version;
    try {
      ModelPointer fresh = load(entry);
      {
        const std::lock_guard lock(mutex_);
        entry.model.swap(fresh);
      }
      ++counters_.swaps;
      fmt::print(stderr, "model {}: version {} loaded from {}\n", entry.name, entry.version, entry.path);
      if (const std::string changed = changes(*fresh, *entry.model);
          !changed.empty())  // fresh is the old one now
        fmt::print(stderr, "warning: model {}: version {} does not fit requests for the one before: {}\n",
                   entry.name, entry.version, changed);
    } catch (const std::exception& error) {
      --entry.version;
      ++counters_.failed_swaps;
      fmt::print(stderr, "model {}: stays at version {}, the changed file cannot be used: {}\n", entry.name,
                 entry.version, error.what());
    }
  }
}

}  // namespace lacuna::serve
