// Lines that arrive through a pipe, a terminal or a file. It waits for the first line and returns it with all others
// that are available. So each line is answered before the next one is awaited, and a full pipe is read in bulk. Memory
// is bounded: lines beyond the limit are reported, not buffered. Gzip is decompressed on the fly.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

class LineStream {
 public:
  struct Line {
    std::size_t number = 0;  // from 1
    std::string_view text;   // without its end; valid until the next call
    bool too_long = false;   // text is empty then
  };

  // Reads from an open descriptor, which stays the caller's. `longest`: bytes of a line.
  LineStream(int fd, std::string name, std::size_t longest);
  ~LineStream();

  // Waits for a line; returns up to `most` available ones. Blank lines are left out. False at the end.
  // Exit::data if reading fails.
  bool next(std::size_t most, std::vector<Line>& lines);
  // The first byte that is not blank, without taking it; 0 if there is none. Waits for it.
  char peek();
  std::size_t longest() const { return longest_; }

 private:
  class Unpacking;
  bool fill(bool wait);             // false: the end, or nothing available without waiting
  bool ready(bool wait) const;      // there is something to read, or waiting is allowed
  std::size_t read_some(char* to);  // at most a chunk; 0 at the end
  std::size_t unpack_some(char* to, bool wait, bool& there);
  bool cut(Line& line);  // the next whole line of the buffer

  int fd_;
  std::string name_, buffer_;
  std::size_t longest_, begin_ = 0, scanned_ = 0, number_ = 0;
  bool skipping_ = false, ended_ = false, started_ = false;
  std::unique_ptr<Unpacking> unpacking_;
};

}  // namespace lacuna
