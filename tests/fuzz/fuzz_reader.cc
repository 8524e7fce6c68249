// The libFuzzer targets of all readers: fuzz_<form> is a link to this program, which takes the form from its name.
#include <hdf5.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.h"
#include "fuzz_forms.h"
#include "fuzz_structure.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));  // under sanitizers
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// Of the compiler's instrumentation.
extern "C" char counters_begin[] __asm__("__start___sancov_cntrs")
    __attribute__((weak, visibility("hidden")));
extern "C" char counters_end[] __asm__("__stop___sancov_cntrs") __attribute__((weak, visibility("hidden")));
// Of the linker.
extern "C" char program_begin[] __asm__("__executable_start");
extern "C" char program_end[] __asm__("_end");

namespace {
std::string form, folder;

// What a reader may take beside the bytes themselves. The address sanitizer takes several times as much, and is not asked.
constexpr bool kWatched = !__has_feature(address_sanitizer);
constexpr std::size_t kMostMemory = std::size_t{64} << 20, kMostCopies = 4;

bool read_by_child() {
  return form == "mat73" || form.starts_with("h5");
}

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

// HDF5 is read by a child. Its counters of code are in memory that it shares with this process, so that what it reaches
// counts as new; those of a page that holds something else too stay apart.
void share_counters() {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = (reinterpret_cast<std::uintptr_t>(counters_begin) + page - 1) / page * page,
             to = reinterpret_cast<std::uintptr_t>(counters_end) / page * page;
  if (from >= to) return;
  const std::vector<char> before(reinterpret_cast<char*>(from), reinterpret_cast<char*>(to));
  void* at = mmap(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (at != MAP_FAILED) std::memcpy(at, before.data(), before.size());
}

// libFuzzer's tables are no business of the child. Without their pages, which would be listed anew for each, it starts sooner.
void keep_tables_from_child() {
  constexpr std::uintptr_t kLarge = std::uintptr_t{4} << 20, kThread = std::uintptr_t{64} << 10;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE)),
             thread = static_cast<std::uintptr_t>(pthread_self());
  std::ifstream maps("/proc/self/maps");
  bool stack = false;  // of another thread: behind a page that nobody may touch
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0, to = 0;
    char rights[5] = {};
    int name = 0;
    std::sscanf(line.c_str(), "%zx-%zx %4s %*s %*s %*s %n", &from, &to, rights, &name);
    const bool own = from < reinterpret_cast<std::uintptr_t>(program_end) &&
                     to > reinterpret_cast<std::uintptr_t>(program_begin);
    const bool unnamed = static_cast<std::size_t>(name) >= line.size();
    if (from < thread && thread < to)
      to = (thread - kThread) / page * page;  // this thread's own variables lie at its end
    if (std::strcmp(rights, "rw-p") == 0 && unnamed && !own && !stack && to > from && to - from >= kLarge)
      madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTFORK);
    stack = std::strcmp(rights, "---p") == 0;
  }
}

// The child ends as it does in the program: libFuzzer's handlers would take its end for a failure of this process. Damage can
// send libhdf5 round in circles; small files are given up much sooner here.
void as_in_the_program() {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGXFSZ, SIGXCPU})
    std::signal(signal, SIG_DFL);
  std::signal(SIGPROF, [](int) { std::raise(SIGXCPU); });
  if constexpr (!kWatched) __sanitizer_set_death_callback(nullptr);
  const itimerval most{{0, 0}, {0, 100'000}};
  setitimer(ITIMER_PROF, &most, nullptr);
}
}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  form = std::filesystem::path((*argv)[0]).filename().string().substr(5);
  lacuna::set_threads(1);
  share_counters();
  if (read_by_child()) H5open();  // once, instead of in every child
  pthread_atfork(nullptr, nullptr, as_in_the_program);
  folder = (std::filesystem::exists("/dev/shm") ? "/dev/shm/lacuna-fuzz-" : "/tmp/lacuna-fuzz-") +
           std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (static bool first = true; std::exchange(first, false) && kWatched && read_by_child())
    keep_tables_from_child();
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
