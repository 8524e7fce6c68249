// Libraries that were not written for hostile input (libhdf5, libmatio) run in a child process with limits on memory
// and time. Parent and child communicate over a socket. Whatever happens to the child, the parent gets the requested
// data or an Error.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/matrix.h"

namespace lacuna {

struct Broken {};  // the other side ended in the middle of a message

// One end of the socket: buffered, in the machine's own byte order.
class Channel {
 public:
  // `most`: larger counts are refused, so that a faulty child cannot make the parent allocate memory.
  Channel(int fd, std::uint64_t most) : fd_(fd), most_(most) {}

  void put_bytes(Bytes bytes);
  void put_number(std::uint64_t value) { put_bytes(std::as_bytes(std::span(&value, 1))); }
  void put_text(std::string_view value);
  template <class T>
  void put_table(const Table<T>& values) {
    put_number(values.rows());
    put_number(values.cols());
    for (std::size_t i = 0; i < values.rows(); ++i) put_bytes(std::as_bytes(values.row(i)));
  }
  void flush();

  void get_bytes(std::span<std::byte> out);
  std::uint64_t get_number() {
    std::uint64_t value = 0;
    get_bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  std::uint64_t get_count();  // at most `most`
  std::string get_text();
  template <class T>
  Matrix<T> get_table() {
    const std::uint64_t rows = get_count(), cols = get_count();
    if (rows != 0 && cols > most_ / rows) throw Broken();
    Matrix<T> out(rows, cols);
    get_bytes(std::as_writable_bytes(out.values()));
    return out;
  }

 private:
  int fd_;
  std::uint64_t most_;
  std::vector<std::byte> out_, in_;
  std::size_t in_at_ = 0;
};

class Child {
 public:
  struct Limits {
    unsigned seconds = 600;    // of processor time
    std::uint64_t memory = 0;  // bytes beyond what the process has when it starts; 0 = no limit
  };
  // Forks. The child calls `work` and ends; its stderr is closed, since such libraries print their own
  // errors. `name` is the file that it reads, for messages.
  Child(std::string name, std::uint64_t most, Limits limits, const std::function<void(Channel&)>& work);
  ~Child();  // ends the child if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  Channel& channel() { return channel_; }
  // After Broken: the Error to throw instead, which says how the child ended.
  [[noreturn]] void fail_broken(const char* library);

 private:
  int wait();
  std::string name_;
  pid_t pid_ = -1;
  int fd_ = -1;
  Channel channel_{-1, 0};
};

}  // namespace lacuna
