// The flags by which all verbs select a data set, a fold and a part of its rows.
#pragma once

#include <optional>
#include <string>

#include "base/options.h"
#include "data/folds.h"
#include "data/protocol.h"
#include "data/readers.h"

namespace lacuna::cli {

struct SourceFlags {
  std::string path;  // DATA
  ReadOptions read;
  std::string folds;  // a folds file; empty = the data's own gaps, all rows
  std::int64_t fold = 0;
  std::string protocol = "strict";  // of protocol_names()

  void declare(Options& options);
};

// The files that are written next to the MODEL of --out.
inline constexpr const char *kHistoryEnding = ".history.json", *kCheckpointEnding = ".checkpoint";

// Exit::usage if writing the outputs (--out, --report, a positional OUT) or the files next to them would damage a file
// or folder that another option names, or each other. Every verb is checked when its command line is parsed.
void check_outputs(const Options& options);

// Prints notes on stderr, one line each.
void tell(const std::string& path, const std::vector<std::string>& notes);
void tell_nothing();    // from now on no notes: rank 0 prints them
void tell_as_events();  // from now on as JSON lines, {"event": "note", ...}, like the progress
// Reads a data set and prints what its reader decided (label names that were found, ignored columns, ...).
// Empty cells are filled, for verbs that have no model to do it.
Dataset load_dataset(const std::string& path, const ReadOptions& read);

// A data set and the requested fold, with empty cells left to the model. Cannot be moved: selections point into it.
class Source {
 public:
  explicit Source(const SourceFlags& flags);
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const Dataset& data() const { return data_; }
  bool has_folds() const { return folds_.has_value(); }
  const Folds& folds() const { return *folds_; }
  std::size_t fold() const { return fold_; }
  Protocol protocol() const { return protocol_; }
  // Rows of a part, with the fold's gaps, under the protocol. Without folds only `all` exists (otherwise
  // Exit::usage).
  Selection part(Part part) const;

 private:
  Dataset data_;
  std::optional<Folds> folds_;
  std::size_t fold_ = 0;
  Protocol protocol_ = Protocol::strict;
};

}  // namespace lacuna::cli
