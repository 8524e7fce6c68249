// Writes an HDF5 file: groups, datasets and attributes by path, as h5py writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/arrays.h"

namespace lacuna {

class Hdf5Writer {
 public:
  // `name` is what messages call the file. `user_block`: bytes in front of the HDF5 file that its owner
  // fills (0, 512, 1024, ...). The file is complete when close() returns. Errors are Exit::failed.
  Hdf5Writer(const std::string& path, std::string name, std::uint64_t user_block);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  void group(const std::string& at);
  void dataset(const std::string& at, const Array& values);  // numbers (row-major), booleans as h5py's, texts
  void attribute(const std::string& at, const std::string& name, const Array& values);
  void close();

 private:
  void check(std::int64_t result, const std::string& what) const;
  std::string name_;
  std::int64_t file_ = -1;
};

}  // namespace lacuna
