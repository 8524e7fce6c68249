// A cell is one unit of every experiment: a method with its settings, learned on one repetition of one data
// set and scored on its test rows. Its id is a hash of everything that the result depends on: method, all
// settings, the content of data and fold, seed, protocol, task. Names of files and the number of threads are
// not among them.
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

// "mtd", "mtd:paper" with a preset, or "paper" where only one method has a preset of that name.
struct MethodChoice {
  std::string name, preset;
  static MethodChoice parse(const std::string& text);  // Exit::usage names the nearest method or preset
  std::string text() const { return preset.empty() ? name : name + ":" + preset; }
  std::string preset_used() const;  // the method's first where none is named; empty if it has none
  std::string title() const;        // as printed in tables: "NAIM3L", "MTD (repaired)"
};

// The name of a data set in tables and in experiment files is its own; the path only says where it was.
struct DataChoice {
  std::string path;
  ReadOptions read;
};

// Where the gaps and the split come from: a folds file, or a rule.
struct FoldChoice {
  std::string file;
  MaskOptions mask;       // used if `file` is empty
  bool complete = false;  // the file's splits without its gaps
};

enum class Task {
  score,       // metrics on the test rows
  timing,      // the same, run alone in a process of its own: its times and memory are never those of a table
  similarity,  // cosines between the channels of a two-channel network
};

struct CellSpec {
  MethodChoice method;
  std::map<std::string, std::string> settings;  // laid over the preset
  DataChoice data;
  FoldChoice folds;
  std::size_t fold = 0;
  std::string without_view;  // a view that is taken away from all rows
  Protocol protocol = Protocol::strict;
  std::uint64_t seed = 1;  // of the method; the fold's own seed is in `folds`
  Task task = Task::score;
  std::int64_t tune = 0;  // settings to try on validation rows before the one that is kept; 0: none
  std::vector<std::int64_t> epochs;  // similarity: after these

  nlohmann::json json() const;
  static CellSpec from_json(const nlohmann::json& from);  // Exit::data if it is not a cell
};

// Data sets and folds that cells share, read once, whatever thread asks.
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

// Whether it computes on the chosen device (ops/device.h); all else is the CPU's.
bool is_network(const MethodChoice& method);

// Hash of one repetition: gaps, order and split sizes; the same whether it is one of five or one of ten.
std::string fold_hash(const Folds& folds, std::size_t fold);
// All settings of the method as they will be used, by name.
nlohmann::json resolved_options(const CellSpec& spec);
std::string cell_id(const CellSpec& spec, Shelf& shelf);

// What a cell will take with its data, its preparation and its search of settings.
Cost estimate_cell(const CellSpec& spec, Shelf& shelf);

struct CellFiles {
  nlohmann::json spec, result, details, run;
  Matrix<float> scores;                                             // (test rows, labels)
  std::map<std::string, std::string> text(bool keep_scores) const;  // by file name, as stored
};

// Set by a signal handler; a running cell then stops with Exit::interrupted at the end of its epoch.
extern std::atomic<bool> stop_requested;

// `watch`, where given, hears of every epoch or iteration.
using EpochWatch = std::function<void(const EpochRecord&)>;
CellFiles run_cell(const CellSpec& spec, Shelf& shelf, const EpochWatch& watch = {});

}  // namespace lacuna
