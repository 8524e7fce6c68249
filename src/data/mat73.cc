// Level 7.3 MATLAB files are HDF5 files.
#include "base/error.h"
#include "data/mat5.h"

namespace lacuna {

std::vector<MatValue> read_mat73(const std::string& path, const std::vector<std::string>&) {
  fail(Exit::data, "{}: MATLAB files of level 7.3 are not read yet; save it with -v7", path);
}

void write_mat73(const std::string& path, std::span<const MatValue>) {
  fail(Exit::failed,
       "{}: a variable has more than 2 GB, too much for a MATLAB file of level 5; write .npz instead", path);
}

}  // namespace lacuna
