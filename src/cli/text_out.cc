#include "cli/text_out.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace lacuna::cli {

bool is_stream_path(const std::string& path) {
  if (path == "-" || path == "/dev/stdin" || path == "/dev/stdout") return true;
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

TextOut::TextOut(const std::string& path) : path_(path == "-" ? "standard output" : path) {
  if (path == "-" || path == "/dev/stdout") {
    fd_ = STDOUT_FILENO;
  } else if (is_stream_path(path)) {
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail(Exit::failed, "{}: cannot be written: {}", path, std::strerror(errno));
  } else {
    file_.emplace(path);
  }
}

TextOut::~TextOut() {
  if (fd_ > STDERR_FILENO) ::close(fd_);
}

void TextOut::write(std::string_view text) {
  if (file_) return file_->write(text);
  while (!text.empty()) {
    const ssize_t n = ::write(fd_, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(Exit::failed, "{}: writing failed: {}", path_, std::strerror(errno));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void TextOut::commit() {
  if (file_) file_->commit();
}

}  // namespace lacuna::cli
