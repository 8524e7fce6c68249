#include "data/line_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;  // bytes of one read
constexpr std::size_t kBulk = std::size_t{16} << 20;  // taken along with the first line at most

}  // namespace

LineStream::LineStream(int fd, std::string name, std::size_t longest)
    : fd_(fd), name_(std::move(name)), longest_(longest) {
#ifdef F_SETPIPE_SZ
  fcntl(fd_, F_SETPIPE_SZ,
        1 << 20);  // a larger pipe lets the sender go on while we compute; it may be refused
#endif
}

bool LineStream::fill(bool wait) {
  if (ended_) return false;
  if (!wait) {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, 0) <= 0) return false;
  }
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kChunk);
  ssize_t n = 0;
  do n = ::read(fd_, buffer_.data() + size, kChunk);
  while (n < 0 && errno == EINTR);
  if (n < 0) fail(Exit::data, "{}: reading failed after line {}: {}", name_, number_, std::strerror(errno));
  buffer_.resize(size + static_cast<std::size_t>(n));
  ended_ = n == 0;
  if (!started_ && (buffer_.size() >= 3 || ended_)) {
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
    if (begin_ > 0) {  // what has been given out is over
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
    if (buffer_[at] == '\n') {  // blank lines are over at once
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
