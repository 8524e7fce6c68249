#include "data/lzf.h"

#include <cstdint>
#include <cstring>

namespace lacuna {

// A control byte below 32 is followed by that many literals and one more. Otherwise its upper three bits are
// a length (7: a byte with more of it follows) and its lower five the upper part of a distance, whose lower
// byte follows: length + 2 bytes are copied from distance + 1 bytes back.
std::size_t lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out) {
  std::size_t at = 0, to = 0;
  while (at < in.size()) {
    const auto control = std::to_integer<std::size_t>(in[at++]);
    if (control < 32) {
      const std::size_t count = control + 1;
      if (count > in.size() - at || count > out.size() - to) return 0;
      std::memcpy(out.data() + to, in.data() + at, count);
      at += count;
      to += count;
      continue;
    }
    std::size_t length = control >> 5;
    if (length == 7) {
      if (at == in.size()) return 0;
      length += std::to_integer<std::size_t>(in[at++]);
    }
    length += 2;
    if (at == in.size()) return 0;
    const std::size_t distance = ((control & 31) << 8 | std::to_integer<std::size_t>(in[at++])) + 1;
    if (distance > to || length > out.size() - to) return 0;
    for (std::size_t k = 0; k < length; ++k, ++to) out[to] = out[to - distance];  // may overlap
  }
  return to;
}

}  // namespace lacuna
