// Prepared rows in files, for more rows than fit into memory. A folder of the store contains the rows of one training
// in one preparation:
//   key.json                    what determines them: data, rows, gaps, settings of the preparation
//   preparation.safetensors     the fitted preparation
//   train.x0.npy ... train.w.npy train.y.npy train.g.npy, val.x0.npy ...   the arrays of Items; none of views whose
//                               preparation keeps their columns: these stay in the mapped files of the data, and are
//                               prepared while they are read (Items::raw), to the same bits
//   checksums.json              of every block (data/checksums.h)
// It appears whole or not at all, and is found by its key: an interrupted training continues with it, and another
// training with the same rows and the same preparation reuses it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/prepare.h"

namespace lacuna {

struct PreparedRows {
  Preparation preparation;
  Items train, val;  // mapped
};

class PreparedStore {
 public:
  // `data_hash`: content_hash() of the data that the selections refer to.
  PreparedStore(std::string root, std::string data_hash)
      : root_(std::move(root)), data_hash_(std::move(data_hash)) {}

  // Rows in the order of the selections, which should be ascending, because the data are read in passes. Rows that are
  // only read `in_batches` may remain in the files of the data. Needs memory for a slab of rows. First reports by
  // `tell` how much will be written where. Exit::failed if the disk has too little space; Exit::data if a folder with
  // this key is damaged.
  PreparedRows get(const Selection& train, const Selection& val, const PrepareOptions& options,
                   bool in_batches, FunctionRef<void(const std::string&)> tell);
  // Removes the folders that get() made or found, and the root if nothing else is in it. Rows that are still mapped
  // remain readable.
  void remove();

 private:
  nlohmann::json key_of(const Selection& train, const Selection& val, const PrepareOptions& options,
                        const std::vector<bool>& mapped) const;

  std::string root_, data_hash_;
  std::vector<std::string> used_;
};

}  // namespace lacuna
