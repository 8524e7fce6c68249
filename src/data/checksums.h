// CRC-32 of every block of the arrays of a native folder, in its checksums.json:
//   {"schema": "lacuna.checksums.1", "block": 4194304, "files": {"view0.npy": [crc, ...], ...}}
// Blocks cover the bytes after an array's header; the header is validated when it is parsed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"

namespace lacuna {

constexpr const char* kChecksumsFile = "checksums.json";
constexpr std::size_t kChecksumBlock = std::size_t{4} << 20;

// The checksums of bytes that come in pieces.
class BlockChecksums {
 public:
  void add(Bytes bytes);
  std::vector<std::uint32_t> finish();

 private:
  std::vector<std::uint32_t> blocks_;
  std::uint32_t crc_ = 0;
  std::size_t filled_ = 0;
};

struct Checksums {
  std::map<std::string, std::vector<std::uint32_t>> files;
  std::string text() const;
};

// Reads every array of the folder once, in bounded memory, and compares. Returns one line per damaged block: file,
// bytes and both sums. Exit::data if the folder has no checksums, or if they do not match its files.
struct FolderCheck {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> damaged;
};
FolderCheck check_folder(const std::string& path);

}  // namespace lacuna
