// A cell is the unit of every experiment: a method with its settings, trained on one repetition of one data set
// and scored on its test rows. Its id is a hash of everything that the result depends on: method, all settings,
// the content of data and fold, seed, protocol, task. File names and the number of threads are not part of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/matrix.h"
#include "data/dataset.h"
#include "data/protocol.h"
#include "data/readers.h"
#include "methods/model.h"

namespace lacuna {

// "mtd", "mtd:paper" with a preset, or "paper" if only one method has a preset of that name.
struct MethodChoice {
  std::string name, preset;
  static MethodChoice parse(const std::string& text);  // Exit::usage names the nearest method or preset
  std::string text() const { return preset.empty() ? name : name + ":" + preset; }
  std::string preset_used() const;  // the method's default if none is named; empty if it has none
  std::string title() const;        // as printed in tables: "NAIM3L", "MTD (repaired)"
};

// Tables and experiment files use a data set's own name; the path only tells where it was.
struct DataChoice {
  std::string path;
  ReadOptions read;
};

// The source of gaps and split: a folds file, or a rule.
struct FoldChoice {
  std::string file;
  MaskOptions mask;       // used if `file` is empty
  bool complete = false;  // the file's splits without its gaps
};

enum class Task {
  score,       // metrics on the test rows
  timing,      // the same, run alone in a process of its own, for times and memory
  similarity,  // cosines between the channels of a two-channel network
};

struct CellSpec {
  MethodChoice method;
  std::map<std::string, std::string> settings;  // applied after the preset
  DataChoice data;
  FoldChoice folds;
  std::size_t fold = 0;
  std::string without_view;  // a view that is removed from all rows
  Protocol protocol = Protocol::strict;
  std::uint64_t seed = 1;  // of the method; the fold's own seed is in `folds`
  Task task = Task::score;
  std::int64_t tune = 0;             // number of settings to try on validation rows; 0: no search
  std::vector<std::int64_t> epochs;  // similarity: after these

  nlohmann::json json() const;
  static CellSpec from_json(const nlohmann::json& from);  // Exit::data if it is not a cell
};

// Data sets and folds that cells share, read once. Any thread may use it.
class Shelf {
 public:
  struct Book {
    Dataset data;
    std::string hash;
  };
  const Book& data(const DataChoice& choice);
  const Folds& folds(const DataChoice& data, const FoldChoice& choice);

 private:
  std::recursive_mutex mutex_;
  std::map<std::string, Book> books_;
  std::map<std::string, Folds> folds_;
};

// Whether the cell computes on the chosen device (ops/device.h); all others use the CPU.
bool is_network(const MethodChoice& method);

// Hash of one repetition: gaps, order and split sizes; the same whether it is one of five or one of ten.
std::string fold_hash(const Folds& folds, std::size_t fold);
// All settings of the method that will be in effect, by name.
nlohmann::json resolved_options(const CellSpec& spec);
std::string cell_id(const CellSpec& spec, Shelf& shelf);

// The estimated cost of a cell with its data, its preparation and its search for settings.
Cost estimate_cell(const CellSpec& spec, Shelf& shelf);

struct CellFiles {
  nlohmann::json spec, result, details, run;
  Matrix<float> scores;                                             // (test rows, labels)
  std::map<std::string, std::string> text(bool keep_scores) const;  // by file name, as stored
};

// Set by a signal handler; a running cell then stops with Exit::interrupted at the end of its epoch.
extern std::atomic<bool> stop_requested;

// `watch`, if given, is called for every epoch or iteration.
using EpochWatch = std::function<void(const EpochRecord&)>;
CellFiles run_cell(const CellSpec& spec, Shelf& shelf, const EpochWatch& watch = {});

}  // namespace lacuna
