#include "data/line_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 18;  // bytes of one read
constexpr std::size_t kBulk = std::size_t{16} << 20;      // taken along with the first line at most

}  // namespace

// Of gzip, which may hold several streams one after another.
class LineStream::Unpacking {
 public:
  explicit Unpacking(std::string packed) : packed_(std::move(packed)) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Unpacking() { inflateEnd(&stream_); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  void give(std::string_view packed) { packed_.assign(packed), used_ = 0; }
  bool whole() const { return between_; }  // nothing is missing behind what was unpacked
  // Up to a chunk; 0 = it needs more. False if the bytes are damaged.
  bool take(char* to, std::size_t& count) {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = kReadBytes;
    while (stream_.avail_out > 0 && (used_ < packed_.size() || pending_)) {
      if (between_) inflateReset(&stream_);
      between_ = false;
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data() + used_);
      stream_.avail_in = static_cast<uInt>(packed_.size() - used_);
      const int result = inflate(&stream_, Z_NO_FLUSH);
      used_ = packed_.size() - stream_.avail_in;
      pending_ = result == Z_OK && stream_.avail_out == 0;
      if (result == Z_STREAM_END)
        between_ = true;
      else if (result == Z_BUF_ERROR)
        break;
      else if (result != Z_OK)
        return false;
    }
    count = kReadBytes - stream_.avail_out;
    return true;
  }

 private:
  z_stream stream_{};
  std::string packed_;
  std::size_t used_ = 0;
  bool between_ = false, pending_ = false;
};

LineStream::LineStream(int fd, std::string name, std::size_t longest)
    : fd_(fd), name_(std::move(name)), longest_(longest) {
#ifdef F_SETPIPE_SZ
  fcntl(fd_, F_SETPIPE_SZ,
        1 << 20);  // a larger pipe lets the sender go on while we compute; it may be refused
#endif
}

LineStream::~LineStream() = default;

bool LineStream::ready(bool wait) const {
  pollfd ready{fd_, POLLIN, 0};
  return wait || poll(&ready, 1, 0) > 0;
}

std::size_t LineStream::read_some(char* to) {
  ssize_t n = 0;
  do n = ::read(fd_, to, kReadBytes);
  while (n < 0 && errno == EINTR);
  if (n < 0) fail(Exit::data, "{}: reading failed after line {}: {}", name_, number_, std::strerror(errno));
  return static_cast<std::size_t>(n);
}

std::size_t LineStream::unpack_some(char* to, bool wait, bool& there) {
  std::string packed;
  for (;;) {
    std::size_t count = 0;
    if (!unpacking_->take(to, count)) fail(Exit::data, "{}: damaged gzip after line {}", name_, number_);
    if (count > 0) return count;
    if (!(there = ready(wait))) return 0;
    packed.resize(kReadBytes);
    packed.resize(read_some(packed.data()));
    if (packed.empty()) {
      if (!unpacking_->whole())
        fail(Exit::data, "{}: the gzip stream is cut off after line {}", name_, number_);
      return 0;
    }
    unpacking_->give(packed);
  }
}

bool LineStream::fill(bool wait) {
  if (ended_ || (!unpacking_ && !ready(wait))) return false;
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  bool there = true;
  const std::size_t n =
      unpacking_ ? unpack_some(buffer_.data() + size, wait, there) : read_some(buffer_.data() + size);
  buffer_.resize(size + n);
  if (!there) return false;
  ended_ = n == 0;
  if (!started_ && (buffer_.size() >= 3 || ended_)) {
    if (!unpacking_ && buffer_.starts_with("\x1F\x8B")) {
      unpacking_ = std::make_unique<Unpacking>(std::move(buffer_));
      buffer_.clear();
      ended_ = false;
      return fill(wait);
    }
    started_ = true;
    if (buffer_.starts_with("\xEF\xBB\xBF")) begin_ = scanned_ = 3;
    if (buffer_.starts_with("\xFF\xFE") || buffer_.starts_with("\xFE\xFF"))
      fail(Exit::data, "{}: is UTF-16; lines are read as UTF-8 (iconv -f UTF-16 -t UTF-8 makes it so)",
           name_);
  }
  return true;
}

bool LineStream::cut(Line& line) {
  for (;;) {
    const char* all = buffer_.data();
    const auto* end = static_cast<const char*>(std::memchr(all + scanned_, '\n', buffer_.size() - scanned_));
    const std::size_t stop = end == nullptr ? buffer_.size() : static_cast<std::size_t>(end - all);
    scanned_ = stop;
    if (skipping_) begin_ = stop;
    const bool whole = end != nullptr || (ended_ && stop > begin_);
    const bool too_long = !skipping_ && stop - begin_ > longest_;
    if (too_long) {  // said at once, whether or not it will ever end
      line = {++number_, {}, true};
      begin_ = stop;
      skipping_ = true;
      return true;
    }
    if (!whole) return false;
    const std::string_view text(all + begin_, stop - begin_);
    begin_ = scanned_ = stop + (end != nullptr);
    if (skipping_) {
      skipping_ = false;
      continue;
    }
    line = {++number_, text.ends_with('\r') ? text.substr(0, text.size() - 1) : text, false};
    if (!trim(text).empty()) return true;
  }
}

bool LineStream::next(std::size_t most, std::vector<Line>& lines) {
  lines.clear();
  while (lines.empty()) {
    if (begin_ > 0) {  // lines that were given out are no longer needed
      buffer_.erase(0, begin_);
      scanned_ -= begin_;
      begin_ = 0;
    }
    // Lines point into the buffer, which moves as it grows: it takes in all there is first, then they are
    // cut.
    const auto ends_from = [&](std::size_t from) {
      return static_cast<std::size_t>(
          std::count(buffer_.begin() + static_cast<std::ptrdiff_t>(from), buffer_.end(), '\n'));
    };
    std::size_t ends = ends_from(0);
    while (ends < most && buffer_.size() < std::max(kBulk, longest_)) {
      const std::size_t before = buffer_.size();
      if (!fill(ends == 0 && before <= longest_)) break;
      ends += ends_from(before);
    }
    Line line;
    while (lines.size() < most && cut(line)) lines.push_back(line);
    if (ended_ && lines.empty() && begin_ == buffer_.size()) return false;
  }
  return true;
}

char LineStream::peek() {
  for (std::size_t at = begin_; at - begin_ <= longest_; ++at) {
    while (at >= buffer_.size() || !started_)
      if (!fill(true)) break;
    at = std::max(at, begin_);  // behind a byte order mark
    if (at >= buffer_.size()) return 0;
    if (std::strchr(" \t\r\n", buffer_[at]) == nullptr) return buffer_[at];
    if (buffer_[at] == '\n') {  // blank lines are skipped
      ++number_;
      begin_ = scanned_ = at + 1;
      buffer_.erase(0, begin_);
      begin_ = scanned_ = 0;
      at = static_cast<std::size_t>(-1);
    }
  }
  return 0;
}

}  // namespace lacuna
