// A libFuzzer target for the reader of one form (LACUNA_FUZZ_FORM).
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/threads.h"
#include "fuzz_forms.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string folder = [] {
    lacuna::set_threads(1);
    const char* base = std::filesystem::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    const std::string path = std::string(base) + "/lacuna-fuzz-" + std::to_string(getpid());
    std::filesystem::create_directories(path);
    return path;
  }();
  lacuna::fuzz_form(LACUNA_FUZZ_FORM, {data, size}, folder);
  return 0;
}
