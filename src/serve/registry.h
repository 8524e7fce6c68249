// The models that are served, by name. If the file of a model changes, the new version is loaded and then replaces the
// old one; requests in progress keep the model they started with.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "methods/model.h"
#include "serve/counters.h"
#include "serve/rows.h"

namespace lacuna::serve {

// A loaded version of a model. Never changes.
struct ServedModel : ModelShape {
  std::string path;
  std::string version;  // 1, 2, ... with every swap
  Model model;
  std::vector<ViewShape> shapes;  // for items that arrive one by one

  ServedModel(std::string served_as, std::string from, std::string number, Model loaded,
              const std::string& empty);
  std::size_t labels() const { return model.label_names().size(); }
};
using ModelPointer = std::shared_ptr<const ServedModel>;

class Registry {
 public:
  // "photos.safetensors" is served as "photos", "name=path" under that name. Exit::usage for a duplicate name; errors
  // of files are those of Model::load. `precision` and `empty` as in lacuna predict.
  Registry(const std::vector<std::string>& files, const std::string& precision, const std::string& empty,
           Counters& counters);

  ModelPointer find(std::string_view name) const;  // null if there is none
  ModelPointer only() const;                       // null unless there is exactly one
  std::vector<ModelPointer> all() const;           // in the order given
  // Checks the files and swaps changed models; called every second by one thread. A file is loaded only when two checks
  // have seen it unchanged, because it may still be written. A missing file is reported, and its model is kept.
  void look();

 private:
  struct Stamp {  // of a file: if it differs, the file was changed or replaced
    std::uint64_t device = 0, inode = 0, size = 0;
    std::int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Entry {
    std::string name, path;
    ModelPointer model;
    Stamp loaded, seen;  // of the model, or of the broken file that was reported; of the last look
    std::uint64_t version = 1;
    bool gone = false;  // reported as such
  };
  static Stamp stamp_of(const std::string& path);
  ModelPointer load(const Entry& entry) const;
  static std::string changes(const ServedModel& before, const ServedModel& now);

  std::string precision_, empty_;
  Counters& counters_;
  std::vector<Entry> entries_;  // their number and names never change
  mutable std::mutex mutex_;    // of the models in them
};

}  // namespace lacuna::serve
