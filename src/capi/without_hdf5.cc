// The shared library reads no HDF5: its users would need libhdf5 and libmatio for a format that the program
// converts. These stand in for the readers of src/data.
#include "base/error.h"
#include "data/formats.h"
#include "data/mat5.h"

namespace lacuna {

std::vector<MatValue> read_mat73(const std::string& path, const std::vector<std::string>&) {
  fail(Exit::data,
       "{}: MATLAB files of level 7.3 (HDF5) are not read by the shared library; convert it first: "
       "lacuna data convert FILE.mat FILE.npz",
       path);
}

void write_mat73(const std::string& path, std::span<const MatValue>) {
  fail(
      Exit::usage,
      "{}: too large for a MATLAB file of level 5, and the shared library writes none of level 7.3; use .npz "
      "or a folder",
      path);
}

Dataset read_h5ad_dataset(const std::string& path, const ReadOptions&) {
  fail(Exit::data,
       "{}: .h5ad and .h5mu files (HDF5) are not read by the shared library; convert it first: "
       "lacuna data convert FILE.h5ad FILE.npz",
       path);
}

void write_h5ad_dataset(const Dataset&, const std::string& path) {
  fail(Exit::usage, "{}: the shared library writes no HDF5; use .npz or a folder", path);
}

void write_h5mu_dataset(const Dataset& data, const std::string& path) {
  write_h5ad_dataset(data, path);
}

}  // namespace lacuna
