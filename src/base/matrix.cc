#include "base/matrix.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace lacuna {

void* allocate_zeroed(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const bool large = bytes >= 2 * kHuge;
  const std::size_t alignment = large ? kHuge : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (rounded < bytes) throw std::bad_alloc();
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (large) madvise(memory, rounded, MADV_HUGEPAGE);  // a wish: where it is refused, small pages serve
  std::memset(memory, 0, rounded);
  return memory;
}

void release(void* memory) noexcept { std::free(memory); }

}  // namespace lacuna
