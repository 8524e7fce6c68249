// The folder of a search, which any number of processes may share:
//   DIR/trial-HASH.json          a finished trial; HASH is that of its settings
//   DIR/trial-HASH.safetensors   its model, until a better one is known
//   DIR/best.safetensors         the best model
//   DIR/claims/                  which process works on which trial (experiments/claims.h)
// The best trial has the best score; ties go to the first in the order of the search. So the result does not depend on
// which process ran which trial, or in which order they ended.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/claims.h"
#include "experiments/search.h"

namespace lacuna::cli {

class TrialFolder {
 public:
  TrialFolder(std::string folder, std::string metric, const std::vector<Combination>& list);

  nlohmann::json result(std::size_t trial) const;  // null if it is not done
  // The right to run it, or null if it is done or a live process has it.
  std::unique_ptr<Claim> claim(std::size_t trial) const { return claims_.take(ids_[trial]); }
  void keep(std::size_t trial, const nlohmann::json& result, Model& model);
  // The best of all trials in the folder, null if there is none; its model becomes best.safetensors.
  nlohmann::json settle_best() const;
  double score(const nlohmann::json& result) const;  // not a number if it failed

 private:
  struct Best {
    std::string path;  // of its trial, without the ending
    nlohmann::json result;
  };
  std::string path(const std::string& id) const { return folder_ + "/trial-" + id; }
  Best find_best() const;
  std::vector<std::string> all_paths() const;

  std::string folder_, metric_;
  std::vector<std::string> ids_;
  Claims claims_;
};

}  // namespace lacuna::cli
