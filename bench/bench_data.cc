// Reading: the six views of Corel5k from a MATLAB file against SciPy (seconds and peak memory, each in
// processes of their own), and opening a native data set of 4 GB. Prints lines of JSON.
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/inflate.h"
#include "data/npy.h"
#include "data/readers.h"

namespace lacuna {
namespace {

constexpr int kRepeats = 5;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Cost {
  double seconds = 1e300, megabytes = 1e300;
};

// Runs a command that prints "seconds megabytes"; the best of what was seen is kept.
void measure(const std::string& command, Cost& cost) {
  std::FILE* pipe = popen(command.c_str(), "r");
  char line[256] = "";
  const bool read = pipe != nullptr && std::fgets(line, sizeof line, pipe) != nullptr;
  if (pipe == nullptr || pclose(pipe) != 0 || !read) fail(Exit::failed, "failed: {}", command);
  const auto words = split(trim(line), ' ');
  cost.seconds = std::min(cost.seconds, parse_double(words.at(0)).value_or(1e300));
  cost.megabytes = std::min(cost.megabytes, parse_double(words.at(1)).value_or(1e300));
}

// The child's side: reads the data set and tells what that took.
int read_once(const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  const Dataset data = read_dataset(path);
  const double seconds = seconds_since(begin);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} {}\n", seconds, static_cast<double>(usage.ru_maxrss) * 1024e-6);
  return data.rows > 0 ? 0 : 1;
}

// What nobody can avoid: decompressing every variable, with one thread and without keeping anything.
double inflate_seconds(const std::string& path) {
  const auto file = MappedFile::open(path);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::byte> scratch(1 << 18);
  for (std::size_t at = 128; at + 8 <= file->size();) {
    std::uint32_t tag[2];
    std::memcpy(tag, file->bytes().data() + at, sizeof(tag));
    Inflate stream(file->bytes().subspan(at + 8, tag[1]), Inflate::Wrapping::zlib, path, at);
    while (stream.read(scratch) == scratch.size()) {
    }
    at += 8 + tag[1];
  }
  return seconds_since(begin);
}

void print(const std::string& name, double value, const char* unit, double peer, double limit) {
  nlohmann::json line = {
      {"name", name}, {"value", value}, {"unit", unit}, {"limit", limit}, {"share", limit / value}};
  line["peer"] = peer > 0 ? nlohmann::json(peer) : nlohmann::json();
  line["ratio"] = peer > 0 ? nlohmann::json(peer / value) : nlohmann::json();
  fmt::print("{}\n", line.dump());
}

void bench_mat(const std::string& self) {
  const std::string path = std::string(LACUNA_SOURCE_DIR) + "/../shared/data/corel5k/corel5k_six_view.mat";
  if (!std::filesystem::exists(path)) {
    fmt::print(stderr, "bench_data: {} is not there; reading it is left out\n", path);
    return;
  }
  Cost ours, theirs;
  double limit = 1e300;
  for (int r = 0; r < kRepeats; ++r) {
    measure(fmt::format("'{}' --read '{}'", self, path), ours);
    measure(fmt::format("/usr/bin/python3 '{}/bench/scipy_loadmat.py' '{}'", LACUNA_SOURCE_DIR, path),
            theirs);
    limit = std::min(limit, inflate_seconds(path));
  }
  const double values = 4999.0 * (512 + 4096 + 100 + 1000 + 4096 + 4096);
  print("reading corel5k_six_view.mat, against SciPy's loadmat and astype(float32); limit: decompression",
        ours.seconds, "s", theirs.seconds, limit);
  print("peak memory of it; limit: the float32 values", ours.megabytes, "MB", theirs.megabytes,
        values * 4e-6);
}

// A native folder of 4 GB: 100,000 items, 10,486 columns, 100 labels. The file has holes where its zeros are.
void bench_native(const std::string& self) {
  constexpr std::size_t kRows = 100'000, kColumns = 10'486, kLabels = 100;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("lacuna_bench_{}", getpid());
  std::filesystem::create_directories(folder);
  Array view;
  view.shape = {kRows, kColumns};
  const std::string header = npy_header(view);
  write_text((folder / "view0.npy").string(), header);
  std::filesystem::resize_file(folder / "view0.npy", header.size() + kRows * kColumns * sizeof(float));
  Matrix<std::int8_t> labels(kRows, kLabels);
  write_npy((folder / "labels.npy").string(), borrow("labels", std::as_const(labels).view()));
  write_text((folder / "dataset.toml").string(),
             fmt::format("schema = \"lacuna.dataset.1\"\nrows = {}\nchecked = true\n[[views]]\nname = "
                         "\"v\"\nfile = \"view0.npy\"\n"
                         "[labels]\nfile = \"labels.npy\"\ncode = \"01-unknown\"\n",
                         kRows));
  Cost cost;
  for (int r = 0; r < kRepeats; ++r) measure(fmt::format("'{}' --read '{}'", self, folder.string()), cost);
  std::filesystem::remove_all(folder);
  print("opening a native data set of 4 GB; limit: the 50 ms allowed", 1e3 * cost.seconds, "ms", 0, 50);
  print("resident memory of it; limit: the 50 MB allowed", cost.megabytes, "MB", 0, 50);
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string(argv[1]) == "--read") return lacuna::read_once(argv[2]);
    lacuna::bench_mat(argv[0]);
    lacuna::bench_native(argv[0]);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_data: {}\n", error.what());
    return 1;
  }
}
