// A folder of results, shared by any number of processes:
//   DIR/cells/ID/spec.json      the request               } the same bytes whichever process ran it,
//   DIR/cells/ID/result.json    the result                } however often it was interrupted
//   DIR/cells/ID/details.json   per-label tables, curves  }
//   DIR/cells/ID/run.json       when, where, how long, how much memory: differs from run to run
//   DIR/failed/ID.json          the error of a cell that failed
//   DIR/claims/ID.N             the process that works on the cell; N counts the processes that took it over
// A cell appears whole (a folder is filled under another name, then renamed) or not at all. If two processes finish the
// same cell, the first one's files stay: they are the same bytes but for run.json.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/claims.h"

namespace lacuna {

class CellStore {
 public:
  enum class State { open, running, done, failed };

  explicit CellStore(std::string directory);  // makes the folders
  CellStore(const CellStore&) = delete;
  CellStore& operator=(const CellStore&) = delete;

  State state(const std::string& id) const;
  // The right to run a cell, or null if it is done, failed or a live process has it.
  std::unique_ptr<Claim> claim(const std::string& id);
  // Files of a finished cell, by name. If another process was quicker, its files stay.
  void finish(const Claim& claim, const std::map<std::string, std::string>& files);
  void fail(const Claim& claim, const nlohmann::json& error);
  void forget_failure(const std::string& id);
  // Removes what killed processes left behind: void claims, half-written cells.
  void sweep();

  std::string cell_path(const std::string& id) const { return directory_ + "/cells/" + id; }
  std::string failure_path(const std::string& id) const { return directory_ + "/failed/" + id + ".json"; }
  nlohmann::json read(const std::string& id, const std::string& file) const;  // null if there is none
  nlohmann::json failure(const std::string& id) const;                        // null if it did not fail
  std::string find(const std::string& prefix) const;                          // the one id that starts so
  std::map<std::string, Owner> owners() const { return claims_.owners(); }    // of claims on open cells
  const std::string& directory() const { return directory_; }

 private:
  bool settled(const std::string& id) const;

  std::string directory_;
  Claims claims_;
};

// Reads a JSON file; null if it does not exist, Exit::data naming file and place if it is broken.
nlohmann::json read_json(const std::string& path);

}  // namespace lacuna
