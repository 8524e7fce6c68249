// A folder that appears whole or not at all: files are written into a temporary folder beside it, which then
// takes its place in one step. What was there before stays until then.
#pragma once

#include <string>

namespace lacuna {

class AtomicFolder {
 public:
  // Refuses (Exit::failed) to replace a file, or a folder that holds anything but a data set.
  explicit AtomicFolder(std::string path);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  std::string file(const std::string& name) const { return temporary_ + "/" + name; }
  void commit();

 private:
  std::string path_, temporary_;
  bool committed_ = false;
};

}  // namespace lacuna
