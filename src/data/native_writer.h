// Writes a native folder in a stream: parts of a data set arrive one after the other and are released once written. It
// needs memory for one part, and for the ids of all rows if there are ids. The folder appears whole or not at all.
//
// Next to the arrays is checksums.json with the CRC-32 of every block of every array (data/checksums.h).
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "data/checksums.h"
#include "data/dataset.h"
#include "data/folder.h"

namespace lacuna {

// Whether write_dataset() would write a native folder there; Exit::usage if it would write nothing.
bool is_native_folder(const std::string& path);

class GrowingArray;

class NativeWriter {
 public:
  explicit NativeWriter(std::string path, Replaced replaced = Replaced::no_input);
  ~NativeWriter();

  // Rows of the data set. Views, columns and labels are those of the first part, in the same order; what differs is
  // Exit::data and names both parts. Values must have been checked (Dataset::check).
  void append(const Dataset& part, const std::string& where);
  void append(const Dataset& part, const std::string& where, std::size_t first, std::size_t count);
  void commit();  // at least one part
  std::size_t rows() const { return rows_; }

 private:
  struct ViewFiles;
  void begin(const Dataset& part, const std::string& where);
  void check_alike(const Dataset& part, const std::string& where) const;
  void append_view(const Dataset& part, std::size_t v, std::size_t first, std::size_t count);
  void append_ids(const Dataset& part, const std::string& where, std::size_t first, std::size_t count);
  void append_labels(const Dataset& part, std::size_t first, std::size_t count);
  std::string finish_view(std::size_t v);
  void keep(const std::string& name, GrowingArray& array);
  void keep_texts(const std::string& name, const std::vector<std::string>& texts);

  AtomicFolder folder_;
  Checksums checksums_;
  std::size_t rows_ = 0;
  bool begun_ = false, complete_ = true;  // complete: no instance is missing
  std::string first_where_;
  Dataset shape_;  // names of the first part, without rows
  std::vector<ViewFiles> views_;
  std::unique_ptr<GrowingArray> present_, labels_;
  std::vector<std::string> ids_, parts_;  // parts: where rows came from
  std::unordered_map<std::string, std::size_t> part_of_id_;
};

}  // namespace lacuna
