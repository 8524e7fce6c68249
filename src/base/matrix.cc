#include "base/matrix.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace lacuna {
namespace {

constexpr std::size_t kLine = 64, kHuge = std::size_t{2} << 20;
constexpr std::size_t kLarge = 2 * kHuge;              // from here on a matrix has huge pages of its own
constexpr std::size_t kShared = std::size_t{1} << 14;  // from here on it shares them with others

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  const std::size_t rounded = (bytes + unit - 1) / unit * unit;
  if (rounded < bytes) throw std::bad_alloc();
  return rounded;
}

// As operator new does.
[[noreturn]] void out_of_memory() {
  if (const std::new_handler handler = std::get_new_handler()) handler();
  throw std::bad_alloc();
}

// Huge pages are a wish: where it is refused, small ones serve.
void* allocate_huge(std::size_t bytes) {
  void* memory = std::aligned_alloc(kHuge, bytes);
  if (memory == nullptr) out_of_memory();
  madvise(memory, bytes, MADV_HUGEPAGE);
  return memory;
}

// Huge pages that matrices of middling size share. A network has hundreds of them; on pages of 4 KB a product
// would touch more pages than the CPU remembers the places of.
class SharedPages {
 public:
  void* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    for (auto& [begin, region] : regions_)
      if (char* const memory = region.take(bytes)) return memory;
    char* const begin = static_cast<char*>(allocate_huge(kRegion));
    return regions_.emplace(begin, Region(begin)).first->second.take(bytes);
  }
  // False if the memory is not of these pages.
  bool give_back(void* memory) {
    const std::lock_guard lock(mutex_);
    char* const at = static_cast<char*>(memory);
    auto next = regions_.upper_bound(at);
    if (next == regions_.begin()) return false;
    const auto region = --next;
    if (at >= region->first + kRegion) return false;
    region->second.give_back(at);
    if (region->second.unused() && regions_.size() > 1) {
      std::free(region->first);
      regions_.erase(region);
    }
    return true;
  }

 private:
  static constexpr std::size_t kRegion = 16 * kHuge;

  class Region {
   public:
    explicit Region(char* begin) : gaps_{{begin, kRegion}} {}
    // In the first gap that is long enough, or null.
    char* take(std::size_t bytes) {
      for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
        if (gap->second < bytes) continue;
        const auto [begin, length] = *gap;
        gaps_.erase(gap);
        if (length > bytes) gaps_.emplace(begin + bytes, length - bytes);
        taken_.emplace(begin, bytes);
        return begin;
      }
      return nullptr;
    }
    void give_back(char* memory) {  // allocates nothing
      auto gap = taken_.extract(memory);
      const auto after = gaps_.lower_bound(memory);
      if (after != gaps_.begin()) {  // one gap with its neighbours
        const auto before = std::prev(after);
        if (before->first + before->second == memory) {
          gap.key() = before->first;
          gap.mapped() += before->second;
          gaps_.erase(before);
        }
      }
      if (after != gaps_.end() && after->first == gap.key() + gap.mapped()) {
        gap.mapped() += after->second;
        gaps_.erase(after);
      }
      gaps_.insert(std::move(gap));
    }
    bool unused() const { return taken_.empty(); }

   private:
    std::map<char*, std::size_t> gaps_, taken_;
  };

  std::mutex mutex_;
  std::map<char*, Region> regions_;
};

// Pages of their own for large matrices, which go back to the system at once. An allocator's heap would keep them, and
// matrices that come and go would leave gaps in it that nothing fits into.
class OwnPages {
 public:
  void* take(std::size_t bytes) {  // zeroed
    const std::size_t mapped = bytes + kHuge;
    void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) out_of_memory();
    char* const begin = static_cast<char*>(memory);
    char* const at = begin + (kHuge - reinterpret_cast<std::uintptr_t>(begin) % kHuge) % kHuge;
    if (at > begin) munmap(begin, static_cast<std::size_t>(at - begin));
    if (at + bytes < begin + mapped) munmap(at + bytes, static_cast<std::size_t>(begin + mapped - at) - bytes);
    madvise(at, bytes, MADV_HUGEPAGE);
    const std::lock_guard lock(mutex_);
    sizes_[at] = bytes;
    return at;
  }
  bool give_back(void* memory) {  // false if the memory is not of these pages
    std::size_t bytes = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(memory);
      if (found == sizes_.end()) return false;
      bytes = found->second;
      sizes_.erase(found);
    }
    munmap(memory, bytes);
    return true;
  }

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> sizes_;
};

#ifndef __SANITIZE_ADDRESS__
// Never destroyed: threads may still hold matrices when the program ends.
OwnPages& own_pages() {
  static OwnPages& pages = *new OwnPages;
  return pages;
}
SharedPages& shared_pages() {
  static SharedPages& pages = *new SharedPages;
  return pages;
}
#endif

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
  const std::size_t rounded = round_up(bytes, bytes >= kLarge ? kHuge : kLine);
  void* memory = nullptr;
#ifdef __SANITIZE_ADDRESS__  // which watches over every matrix only if it has memory of its own
  memory = bytes >= kLarge ? allocate_huge(rounded) : std::aligned_alloc(kLine, rounded);
#else
  if (bytes >= kLarge) return own_pages().take(rounded);
  memory = bytes >= kShared ? shared_pages().take(rounded) : std::aligned_alloc(kLine, rounded);
#endif
  if (memory == nullptr) out_of_memory();
  std::memset(memory, 0, rounded);
  return memory;
}

void release(void* memory) noexcept {
#ifndef __SANITIZE_ADDRESS__
  if (shared_pages().give_back(memory) || own_pages().give_back(memory)) return;
#endif
  std::free(memory);
}

}  // namespace lacuna
