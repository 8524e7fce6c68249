// The libFuzzer targets of all readers: fuzz_<form> is a link to this program, which takes the form from its name.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/threads.h"
#include "fuzz_forms.h"
#include "fuzz_structure.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {
std::string form, folder;

// What a reader may take beside the bytes themselves. The address sanitizer takes several times as much, and is not asked.
constexpr bool kWatched = !__has_feature(address_sanitizer);
constexpr std::size_t kMostMemory = std::size_t{64} << 20, kMostCopies = 4;

std::size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) << 10;
}
std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  form = std::filesystem::path((*argv)[0]).filename().string().substr(5);
  lacuna::set_threads(1);
  folder = (std::filesystem::exists("/dev/shm") ? "/dev/shm/lacuna-fuzz-" : "/tmp/lacuna-fuzz-") +
           std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::size_t before = peak_bytes();
  lacuna::fuzz_form(form, {data, size}, folder);
  const std::size_t peak = peak_bytes();
  if (kWatched && peak > before && peak > resident_bytes() + kMostMemory + kMostCopies * size) {
    std::fprintf(stderr, "%zu bytes of input took %zu MB\n", size, (peak - resident_bytes()) >> 20);
    std::abort();
  }
  return 0;
}

// Half of the time the bytes as they lie; otherwise what is inside the outermost structure, which is then built anew.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  return lacuna::mutate_inside(form, data, size, most, seed / 2, LLVMFuzzerMutate);
}
