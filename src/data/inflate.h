// Decompression of untrusted deflate streams, piece by piece: memory is bounded by the caller's buffer, and declared
// sizes that deflate could not reach are refused.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/files.h"

namespace lacuna {

// Deflate expands by at most 1032 : 1 (a match of 258 bytes in two bits); a larger claim is false.
constexpr std::uint64_t kMostExpansion = 1032;

class Inflate {
 public:
  // Zip entries have none, MATLAB variables have zlib's; gzip files may hold several streams, one after another.
  enum class Wrapping { none, zlib, gzip };
  // `where` is put in front of messages; `offset` is the place of `input` in its file, for messages.
  Inflate(Bytes input, Wrapping wrapping, std::string where, std::uint64_t offset);
  ~Inflate();
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  // Fills `out` with the next bytes; returns how many there were (fewer only at the end). Damage is
  // Exit::data.
  std::size_t read(std::span<std::byte> out);
  std::uint64_t produced() const { return produced_; }

 private:
  void refuse_leftovers() const;

  Bytes input_;  // not yet given to zlib
  std::string where_;
  std::uint64_t offset_, produced_ = 0;
  std::size_t size_;
  z_stream stream_{};
  bool several_ = false, ended_ = false;
};

// Reads the stream to its end without keeping it, and fails unless it holds at least `claimed` bytes. For
// claims far above the size of the input, before memory is taken for them.
void verify_expansion(Bytes input, Inflate::Wrapping wrapping, std::uint64_t claimed,
                      const std::string& where, std::uint64_t offset);

}  // namespace lacuna
