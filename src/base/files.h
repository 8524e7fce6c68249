// Files: read-only mappings, whole-file reads with a limit, atomic writes, content hashes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace lacuna {

using Bytes = std::span<const std::byte>;

inline Bytes as_bytes(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

// A file mapped read-only. Shared: tables that point into it keep it alive.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::string& path);  // Exit::data if it cannot be read
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  Bytes bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  std::size_t size() const { return size_; }

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

std::string read_text(const std::string& path, std::size_t limit = std::size_t{1} << 30);

// Writes to a temporary file next to `path`; commit() flushes it to disk and renames it over `path`. Without commit the
// old file is unchanged and the temporary file is removed. Errors (disk full, no permission) are Exit::failed. If
// `path` is a link, the file that it points to is replaced. Pipes and devices are written to directly; a folder, or a
// file that protect_inputs() protects, is Exit::usage.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(Bytes bytes);
  void write(std::string_view text) { write(as_bytes(text)); }
  std::uint64_t position() const { return position_; }
  const std::string& temporary() const;                        // for libraries that write by name; then reopen()
  void reopen();                                               // the file at temporary() was replaced by a library
  void commit();

 private:
  void flush();
  bool direct() const { return temporary_.empty(); }  // a pipe or a device
  std::string path_, temporary_;
  int fd_ = -1;
  std::uint64_t position_ = 0;
  std::string buffer_;
};

void write_text(const std::string& path, std::string_view text);  // atomic
void make_directories(const std::string& path);                   // Exit::failed with the reason
// Throws now, before a long computation, what AtomicFile would throw later.
void check_writable(const std::string& path);

// From now on no file that this process has already mapped is replaced, whatever name it is written under.
void protect_inputs();
bool is_protected(const std::string& path);
std::string file_name(const std::string& path);  // without its folder
// The canonical form of a path: links are followed. The file need not exist.
std::string canonical_path(const std::string& path);
// Throws Exit::usage if writing `out` would damage an input: they are the same file (links and hard links
// included), or `out` lies inside an input folder. A dash is standard output or standard input, which the shell may
// have redirected to a file.
void check_apart(const std::string& out, const std::string& input);

// A quick hash of words, for comparisons within this process.
inline std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

class Sha256 {
 public:
  void add(Bytes bytes);
  void add(std::string_view text) { add(as_bytes(text)); }
  std::string hex();  // ends the hash

 private:
  void block(const std::uint8_t* data);
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> tail_{};
  std::uint64_t length_ = 0;
};

}  // namespace lacuna
