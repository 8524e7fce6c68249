// The libFuzzer targets of all readers: fuzz_<form> is a link to this program, which takes the form from its name.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/threads.h"
#include "fuzz_forms.h"
#include "fuzz_structure.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {
std::string form, folder;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
  form = std::filesystem::path((*argv)[0]).filename().string().substr(5);
  lacuna::set_threads(1);
  folder = (std::filesystem::exists("/dev/shm") ? "/dev/shm/lacuna-fuzz-" : "/tmp/lacuna-fuzz-") + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::atexit([] { std::filesystem::remove_all(folder); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lacuna::fuzz_form(form, {data, size}, folder);
  return 0;
}

// Half of the time the bytes as they lie; otherwise what is inside the outermost structure, which is then built anew.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  return lacuna::mutate_inside(form, data, size, most, seed / 2, LLVMFuzzerMutate);
}
