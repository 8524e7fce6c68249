// HDF5 files, read by libhdf5 in a child process (data/child.h) that answers questions about paths in the file. Files
// are untrusted: only hard links are followed; external and virtual storage and unknown filters are refused; and no
// declared size costs more memory than the bytes of the file can back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/arrays.h"
#include "data/child.h"

namespace lacuna {

class Hdf5File {
 public:
  explicit Hdf5File(const std::string& path);  // Exit::data unless it is an HDF5 file

  enum class Kind : std::uint64_t { absent, group, dataset };
  struct Info {
    Kind kind = Kind::absent;
    std::vector<std::uint64_t> shape{};  // of a dataset
  };
  Info info(const std::string& at);
  bool has(const std::string& at) { return info(at).kind != Kind::absent; }
  bool is_group(const std::string& at) { return info(at).kind == Kind::group; }
  std::vector<std::string> children(const std::string& group);  // names in alphabetical order
  std::vector<std::string> fields(const std::string& dataset);  // of a compound; empty = it is none
  // The values of a dataset of at most two dimensions, or of one field of a compound one: numbers of any
  // type, booleans (as h5py writes them), texts. Throws Exit::data for anything else.
  Array read(const std::string& dataset, const std::string& field = "");
  std::optional<Array> attribute(const std::string& at, const std::string& name);  // nothing if there is none
  std::string text_attribute(const std::string& at, const std::string& name);      // "" if there is none

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  template <class F>
  auto ask(std::uint64_t question, const std::string& at, const std::string& name, F&& answer);
  Array get_array(const std::string& name);

  std::string path_;
  std::uint64_t bytes_, left_, texts_left_;  // of the file; that values and texts may still take in memory
  std::unique_ptr<Child> child_;
};

// How parent and child number their messages (hdf5.cc asks, hdf5_child.cc answers).
namespace hdf5 {
enum Question : std::uint64_t { kInfo, kChildren, kFields, kRead, kAttribute };
enum Answer : std::uint64_t { kGood, kBad };  // kBad: a text follows

// Values come in blocks of this many rows and columns, from left to right, then down; the last ones may be
// smaller. Each block is an answer of its own, since it may turn out that it cannot be read.
struct Blocks {
  std::uint64_t rows, cols;
};

void answer_questions(const std::string& path, std::uint64_t bytes, Channel& channel);  // the child's work
}  // namespace hdf5

}  // namespace lacuna
