// A folder that appears whole or not at all: files are written into a temporary folder next to it, which then replaces
// it atomically. The previous contents stay until then.
#pragma once

#include <string>

namespace lacuna {

// Inputs of this command are not replaced, unless rows are appended to them.
enum class Replaced { no_input, any };

class AtomicFolder {
 public:
  // check_replaceable(), now and once more before the folder is replaced.
  explicit AtomicFolder(std::string path, Replaced replaced = Replaced::no_input);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  std::string file(const std::string& name) const { return temporary_ + "/" + name; }
  void commit(const std::string& description);  // what dataset.toml says

 private:
  std::string path_, temporary_;
  Replaced replaced_;
};

// Refuses (Exit::failed) to replace a file, or a folder that holds anything but a data set which this program wrote:
// its dataset.toml, marked as such, and the files named there.
void check_replaceable(const std::string& path, Replaced replaced = Replaced::no_input);

}  // namespace lacuna
