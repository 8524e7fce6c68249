#include "experiments/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <string>

#include "ops/device.h"
#include "base/text.h"
#include "base/threads.h"

namespace lacuna {
namespace {

// The value behind "name :" in one of the kernel's text files, "" if it has none.
std::string kernel_value(const char* path, const std::string& name) {
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return "";
  char line[1024];
  std::string found;
  while (found.empty() && std::fgets(line, sizeof line, file) != nullptr) {
    const std::string_view text = trim(line);
    const auto colon = text.find(':');
    if (text.starts_with(name) && colon != std::string_view::npos) found = trim(text.substr(colon + 1));
  }
  std::fclose(file);
  return found;
}

}  // namespace

nlohmann::json machine_json() {
  utsname system{};
  uname(&system);
  char when[32] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {{"schema", "lacuna.run.1"},
          {"version", LACUNA_VERSION},
          {"finished", when},
          {"process", getpid()},
          {"processor", kernel_value("/proc/cpuinfo", "model name")},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"threads", threads()},
          {"device", device_name(current_device())},
          {"memory_bytes", static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                               static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))},
          {"system", std::string(system.sysname) + " " + system.release + " " + system.machine}};
}

double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void reset_peak_memory() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

std::uint64_t peak_memory() {
  const std::string text = kernel_value("/proc/self/status", "VmHWM");
  if (const auto kilobytes = parse_int(text.substr(0, text.find(' '))))
    return static_cast<std::uint64_t>(*kilobytes) * 1024;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace lacuna
