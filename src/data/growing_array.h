// An array that is written to a file row by row, with the checksums of its blocks.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/arrays.h"
#include "data/checksums.h"
#include "data/npy.h"

namespace lacuna {

// A .npy file that grows at its end. Its header, of the length that every header of ours has, is written last.
class GrowingArray {
 public:
  GrowingArray(std::string path, Element type, std::size_t cols, bool vector = false)
      : path_(std::move(path)), cols_(cols), vector_(vector) {
    array_.type = type;
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) fail(Exit::failed, "{}: cannot be written: {}", path_, std::strerror(errno));
    buffer_.reserve(kBuffer);
    buffer_.assign(header().size(), ' ');
  }
  ~GrowingArray() {
    if (fd_ >= 0) ::close(fd_);
  }
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;

  void add(Bytes bytes) {
    sums_.add(bytes);
    bytes_ += bytes.size();
    if (buffer_.size() + bytes.size() > kBuffer) flush();
    if (bytes.size() > kBuffer)
      put(bytes, -1);
    else
      buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <class T>
  void add(std::span<const T> values) {
    add(std::as_bytes(values));
  }
  std::uint64_t count() const { return bytes_ / element_size(array_.type); }

  std::vector<std::uint32_t> finish() {
    flush();
    put(as_bytes(header()), 0);
    const int fd = std::exchange(fd_, -1);
    if (fsync(fd) != 0 || ::close(fd) != 0)
      fail(Exit::failed, "{}: writing failed: {}", path_, std::strerror(errno));
    return sums_.finish();
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;

  std::string header() {
    array_.shape = vector_ ? std::vector<std::uint64_t>{count()}
                           : std::vector<std::uint64_t>{count() / std::max<std::size_t>(cols_, 1), cols_};
    return npy_header(array_);
  }
  void flush() {
    put(as_bytes(buffer_), -1);
    buffer_.clear();
  }
  void put(Bytes bytes, off_t at) {  // -1: at the end
    while (!bytes.empty()) {
      const ssize_t n =
          at < 0 ? ::write(fd_, bytes.data(), bytes.size()) : ::pwrite(fd_, bytes.data(), bytes.size(), at);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(Exit::failed, "{}: writing failed: {}", path_, std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      if (at >= 0) at += n;
    }
  }
  std::string path_;
  std::size_t cols_;
  bool vector_;
  Array array_;
  int fd_ = -1;
  std::string buffer_;
  BlockChecksums sums_;
  std::uint64_t bytes_ = 0;
};

}  // namespace lacuna
