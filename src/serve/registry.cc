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
      fail(Exit::usage, "'{}' is no name for a model; write NAME=PATH", file);
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
    } catch (const std::exception& error) {
      --entry.version;
      ++counters_.failed_swaps;
      fmt::print(stderr, "model {}: stays at version {}, the changed file cannot be used: {}\n", entry.name,
                 entry.version, error.what());
    }
  }
}

}  // namespace lacuna::serve
