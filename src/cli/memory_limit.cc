#include "cli/memory_limit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <new>

#include "base/error.h"
#include "base/mapping.h"
#include "base/text.h"

namespace lacuna::cli {

void MemoryFlags::declare(Options& options) {
  const auto group = options.group("running");
  options
      .add("memory-limit", limit,
           "train within this much memory (2G, 800M): prepared rows go to MODEL.prepared and are read in "
           "large blocks; DATA is a native folder")
      .metavar("SIZE");
  options
      .add("prepared", prepared,
           "with --memory-limit: keep the prepared rows in this folder and reuse them for the same rows and "
           "preparation")
      .metavar("DIR")
      .needs("memory-limit");
}

std::uint64_t MemoryFlags::bytes() const {
  if (!given()) return 0;
  std::string number = limit;
  if (!number.empty() && std::toupper(static_cast<unsigned char>(number.back())) == 'B') number.pop_back();
  if (!number.empty() && number.back() == 'i') number.pop_back();
  constexpr std::string_view kUnits = "KMGT";
  double factor = 1;
  if (!number.empty()) {
    const auto unit = kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(number.back()))));
    if (unit != std::string_view::npos) {
      number.pop_back();
      for (std::size_t k = 0; k <= unit; ++k) factor *= 1024;
    }
  }
  const auto value = parse_double(number);
  constexpr double kLeast = 1 << 20, kMost = 1e15;
  if (!value || !(*value * factor >= kLeast && *value * factor <= kMost))
    fail(Exit::usage, "--memory-limit {}: write a size from 1M on, such as 800M or 2G", limit);
  return static_cast<std::uint64_t>(*value * factor);
}

void check_in_files(const Dataset& data, const std::string& path, std::uint64_t limit) {
  constexpr double kCopies = 3;  // of a sparse view while it is prepared
  for (const View& view : data.views) {
    if (view.rows() == 0) continue;
    const auto* csr = std::get_if<Csr>(&view.features);
    const Bytes bytes =
        std::as_bytes(csr != nullptr ? csr->value.row(0) : std::get<Table<float>>(view.features).row(0));
    if (csr != nullptr && 2 * kCopies * 2 * static_cast<double>(bytes.size()) > static_cast<double>(limit))
      fail(Exit::usage,
           "--memory-limit: view '{}' is sparse and takes {} in memory while it is prepared, more than half "
           "of {}: "
           "allow more",
           view.name, bytes_text(kCopies * 2 * static_cast<double>(bytes.size())),
           bytes_text(static_cast<double>(limit)));
    if (bytes.empty() || is_mapped(bytes)) continue;
    fail(Exit::usage,
         "--memory-limit: view '{}' of {} was read into memory; rows are read in passes from a native "
         "folder: lacuna "
         "data convert {} FOLDER",
         view.name, path, path);
  }
}

namespace {

std::atomic<std::uint64_t> refused_at{0};

// Called where memory is refused. Takes none itself.
void remember_and_refuse() {
  char text[128] = {};
  if (const int file = open("/proc/self/statm", O_RDONLY); file >= 0) {
    const ssize_t size = read(file, text, sizeof(text) - 1);
    close(file);
    unsigned long long data = 0;  // the sixth number, in pages
    if (size > 0 && std::sscanf(text, "%*u %*u %*u %*u %*u %llu", &data) == 1)
      refused_at = data * static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
  }
  throw std::bad_alloc();
}

}  // namespace

void fail_beyond_limit(std::uint64_t bytes) {
  fail(
      Exit::failed,
      "--memory-limit: the training had taken {} of {} and needed more; allow more, or use a smaller network",
      bytes_text(static_cast<double>(refused_at.load())), bytes_text(static_cast<double>(bytes)));
}

void limit_memory(std::uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(bytes, limit.rlim_max);
  if (setrlimit(RLIMIT_DATA, &limit) != 0)
    fail(Exit::failed, "--memory-limit: the system refuses to limit memory");
  std::set_new_handler(remember_and_refuse);
}

}  // namespace lacuna::cli
