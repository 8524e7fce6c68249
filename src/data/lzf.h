// LZF decompression, the compressor of h5py (compression="lzf"), as a filter of libhdf5.
#pragma once

#include <cstddef>
#include <span>

namespace lacuna {

constexpr int kLzfFilter = 32000;  // as h5py registered it

// The number of bytes written to `out`, or 0 where `in` is damaged or does not fit.
std::size_t lzf_decompress(std::span<const std::byte> in, std::span<std::byte> out);

}  // namespace lacuna
