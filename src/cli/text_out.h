// The destination of text output: standard output, a pipe or device, or a file that appears whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace lacuna::cli {

// True for "-", /dev/stdout and whatever exists and is neither a file nor a folder (a FIFO, a terminal).
bool is_stream_path(const std::string& path);

class TextOut {
 public:
  explicit TextOut(const std::string& path);
  ~TextOut();
  TextOut(const TextOut&) = delete;
  TextOut& operator=(const TextOut&) = delete;

  void write(std::string_view text);  // at once if it is a stream
  void commit();                      // after the last text

 private:
  std::string path_;
  int fd_ = -1;
  std::optional<AtomicFile> file_;
};

}  // namespace lacuna::cli
