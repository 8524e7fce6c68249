#include "data/inflate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"

namespace lacuna {

Inflate::Inflate(Bytes input, Wrapping wrapping, std::string where, std::uint64_t offset)
    : input_(input),
      where_(std::move(where)),
      offset_(offset),
      size_(input.size()),
      several_(wrapping == Wrapping::gzip) {
  constexpr int kGzip = 16;
  const int bits = wrapping == Wrapping::zlib   ? MAX_WBITS
                   : wrapping == Wrapping::gzip ? MAX_WBITS + kGzip
                                                : -MAX_WBITS;
  if (inflateInit2(&stream_, bits) != Z_OK) fail(Exit::failed, "{}: zlib cannot start", where_);
}

Inflate::~Inflate() {
  inflateEnd(&stream_);
}

std::size_t Inflate::read(std::span<std::byte> out) {
  constexpr std::size_t kPiece = std::size_t{1} << 30;  // zlib counts in 32 bits
  std::size_t done = 0;
  while (done < out.size() && !ended_) {
    if (stream_.avail_in == 0 && !input_.empty()) {
      const std::size_t n = std::min(input_.size(), kPiece);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
      stream_.avail_in = static_cast<uInt>(n);
      input_ = input_.subspan(n);
    }
    const std::size_t want = std::min(out.size() - done, kPiece);
    stream_.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream_.avail_out = static_cast<uInt>(want);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t got = want - stream_.avail_out;
    done += got;
    produced_ += got;
    if (status == Z_STREAM_END) {
      ended_ = !several_ || stream_.avail_in + input_.size() < 2 ||
               (stream_.avail_in > 0 && *stream_.next_in != 0x1f);
      if (!ended_ && inflateReset(&stream_) != Z_OK)
        fail(Exit::failed, "{}: zlib cannot start again", where_);
      if (ended_ && several_) refuse_leftovers();
    } else if (status != Z_OK || (got == 0 && stream_.avail_in == 0 && input_.empty())) {
      const std::uint64_t at = offset_ + size_ - input_.size() - stream_.avail_in;
      if (status == Z_BUF_ERROR || status == Z_OK)
        fail(Exit::data, "{}: compressed data ends early at byte {}", where_, at);
      fail(Exit::data, "{}: compressed data is damaged near byte {}: {}", where_, at,
           stream_.msg != nullptr ? stream_.msg : "unknown reason");
    }
  }
  return done;
}

// Tapes pad with zeros; anything else behind the last member belongs to a file that was damaged or joined badly.
void Inflate::refuse_leftovers() const {
  const auto rest = {Bytes(reinterpret_cast<const std::byte*>(stream_.next_in), stream_.avail_in), input_};
  std::size_t left = 0;
  bool padding = true;
  for (const Bytes piece : rest) {
    left += piece.size();
    padding = padding && std::ranges::all_of(piece, [](std::byte b) { return b == std::byte{0}; });
  }
  if (!padding)
    fail(Exit::data, "{}: {} bytes follow the end of the compressed data at byte {}; the file is damaged",
         where_, left, offset_ + size_ - left);
}

void verify_expansion(Bytes input, Inflate::Wrapping wrapping, std::uint64_t claimed,
                      const std::string& where, std::uint64_t offset) {
  constexpr std::uint64_t kTrusted = 64;  // up to here memory stays a small multiple of the file
  if (claimed / kTrusted <= input.size()) return;
  if (claimed / kMostExpansion > input.size())
    fail(Exit::data, "{}: {} compressed bytes at byte {} cannot hold the {} bytes that the header promises",
         where, input.size(), offset, claimed);
  Inflate stream(input, wrapping, where, offset);
  std::vector<std::byte> scratch(std::size_t{1} << 18);
  while (stream.read(scratch) == scratch.size()) {
  }
  if (stream.produced() < claimed)
    fail(Exit::data, "{}: the compressed data at byte {} contains {} bytes, the header promises {}", where,
         offset, stream.produced(), claimed);
}

}  // namespace lacuna
