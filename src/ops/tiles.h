// The eight tile registers of AMX: 16 rows of 64 bytes each. Strides are in words of 4 bytes. Built with
// LACUNA_EMULATE_TILES they are ordinary memory, so that the tests reach the code that uses them on CPUs that
// have none, and the sanitizers see what it reads and writes. Internal linkage, see gemm_tiles.h.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lacuna {
namespace {

#ifdef LACUNA_EMULATE_TILES

struct Tile {
  alignas(64) std::uint32_t words[16][16];
};
thread_local Tile tile_registers[8];

inline void configure_tiles() {}

template <int kTile>
void zero_tile() {
  tile_registers[kTile] = {};
}
template <int kTile>
void load_tile(const void* from, std::size_t stride) {
  for (std::size_t r = 0; r < 16; ++r)
    std::memcpy(tile_registers[kTile].words[r], static_cast<const char*>(from) + r * stride * 4, 64);
}
template <int kTile>
void load_passing_tile(const void* from, std::size_t stride) {
  load_tile<kTile>(from, stride);
}
template <int kTile>
void store_tile(void* to, std::size_t stride) {
  for (std::size_t r = 0; r < 16; ++r)
    std::memcpy(static_cast<char*>(to) + r * stride * 4, tile_registers[kTile].words[r], 64);
}
// The order of the sums within an instruction is up to the CPU; this one is as good as any.
template <int kSum, int kLeft, int kRight>
void dot_tiles() {
  const auto low = [](__m512i words) { return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)); };
  const auto high = [](__m512i words) {
    return _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  };
  for (std::size_t r = 0; r < 16; ++r) {
    __m512 sum = _mm512_load_ps(tile_registers[kSum].words[r]);
    for (std::size_t g = 0; g < 16; ++g) {
      const __m512i a = _mm512_set1_epi32(static_cast<int>(tile_registers[kLeft].words[r][g]));
      const __m512i b = _mm512_load_si512(tile_registers[kRight].words[g]);
      sum = _mm512_fmadd_ps(high(a), high(b), _mm512_fmadd_ps(low(a), low(b), sum));
    }
    _mm512_store_ps(tile_registers[kSum].words[r], sum);
  }
}

#else

// The configuration belongs to the thread and is loaded once in it.
inline void configure_tiles() {
  thread_local bool configured = false;
  if (configured) return;
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  static_assert(sizeof configuration == 64);
  _tile_loadconfig(&configuration);
  configured = true;
}

// By name: the compiler's own functions take no template arguments and do not say that they read memory.
template <int kTile>
[[gnu::always_inline]] inline void zero_tile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}
template <int kTile>
[[gnu::always_inline]] inline void load_tile(const void* from, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride * 4), "i"(kTile) : "memory");
}
// The same, but the memory is not kept in the first-level cache, where it would evict what is used again.
template <int kTile>
[[gnu::always_inline]] inline void load_passing_tile(const void* from, std::size_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride * 4), "i"(kTile) : "memory");
}
template <int kTile>
[[gnu::always_inline]] inline void store_tile(void* to, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride * 4), "i"(kTile) : "memory");
}
template <int kSum, int kLeft, int kRight>
[[gnu::always_inline]] inline void dot_tiles() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kLeft), "i"(kRight));
}

#endif

}  // namespace
}  // namespace lacuna
