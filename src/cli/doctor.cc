// lacuna doctor: what this machine can do, what was chosen for it and why, with brief measurements.
#include <fmt/core.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/verbs.h"
#include "ops/device.h"
#include "ops/gemm.h"
#include "ops/machine.h"
#include "ops/peaks.h"

namespace lacuna::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The word in brackets is the one in force: "always [madvise] never".
std::string huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const auto open = line.find('['), close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? "unknown"
                                                                 : line.substr(open + 1, close - open - 1);
}

bool writable(const std::filesystem::path& folder) {
  return access(folder.c_str(), W_OK) == 0;
}

// FLOP/s of a layer's forward product at a batch of 128 rows, in cache.
double product_rate(Precision precision) {
  constexpr std::size_t kRows = 128, kSide = 1024;
  Matrix<float> X(kRows, kSide), W(kSide, kSide), Y(kRows, kSide);
  Random random(1, Purpose::test);
  for (auto* matrix : {&X, &W})
    for (float& x : matrix->values()) x = random.uniform(-1, 1);
  const Timing t = measure(.1, [&] { linear_forward(X, W, {}, true, precision, Y); });
  return 2. * kRows * kSide * kSide / t.best;
}

// Every GPU that can be used, measured briefly; or why there is none.
Json gpus() {
  const GpuReport& found = gpu_report();
  Json list = Json::array();
  for (std::size_t k = 0; k < found.gpus.size(); ++k) {
    const Gpu& gpu = found.gpus[k];
    Json entry = {{"name", gpu.name},
                  {"memory_bytes", gpu.memory},
                  {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)}};
    if (found.absence.empty() && gpu.major >= 8) {
      const GpuSpeed speed = measure_gpu(static_cast<int>(k));
      entry["free_bytes"] = speed.free_memory;
      entry["copy_bytes_per_second"] = speed.copy;
      entry["bf16_flops"] = speed.product;
    }
    list.push_back(entry);
  }
  return {{"absence", found.absence},
          {"driver_cuda", fmt::format("{}.{}", found.driver / 1000, found.driver % 1000 / 10)},
          {"engine", found.library},
          {"list", list}};
}

Json disk(const std::filesystem::path& folder) {
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  return {
      {"path", folder.string()}, {"writable", writable(folder)}, {"free_bytes", error ? 0 : space.available}};
}

Json examine() {
  const auto& cpu = cpu_features();
  const int count = threads();
  const auto pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)),
             page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  Json available = Json::array();
  for (const Isa candidate : available_isas()) available.push_back(isa_name(candidate));
  Json report;
  report["schema"] = "lacuna.doctor.1";
  report["cpu"] = {{"vendor", cpu.vendor},
                   {"model", cpu.model},
                   {"avx2", cpu.avx2},
                   {"avx512", cpu.avx512},
                   {"avx512_bf16", cpu.avx512_bf16},
                   {"amx_bf16", cpu.amx_bf16},
                   {"amx_granted", cpu.amx_granted}};
  report["products"] = {{"available", available}, {"chosen", isa_name(isa())}, {"reason", isa_reason()}};
  report["threads"] = count;
  report["memory_bytes"] = pages * page;
  report["huge_pages"] = huge_pages();
  report["measured"] = {{"bandwidth_bytes_per_second", triad(count)},
                        {"f32_peak_flops", peak_f32(count)},
                        {"f32_product_flops", product_rate(Precision::f32)},
                        {"bf16_peak_flops", peak_bf16(count)},
                        {"bf16_product_flops", product_rate(Precision::bf16)}};
  report["gpu"] = gpus();
  report["folders"] =
      Json::array({disk(std::filesystem::temp_directory_path()), disk(std::filesystem::current_path())});
  report["libraries"] = {
      {"compiler", __VERSION__},
      {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
      {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                    NLOHMANN_JSON_VERSION_PATCH)},
      {"zlib", zlibVersion()}};
  return report;
}

std::string words(const Json& names) {
  std::vector<std::string> list;
  for (const auto& name : names) list.push_back(name.get<std::string>());
  return join(list, ", ");
}

void print(const Json& r) {
  const auto line = [](const char* what, const std::string& text) { fmt::print("{:<12} {}\n", what, text); };
  const auto& cpu = r["cpu"];
  std::vector<std::string> features;
  for (const char* name : {"avx2", "avx512", "avx512_bf16", "amx_bf16"})
    if (cpu[name].get<bool>()) features.push_back(name);
  line("cpu", fmt::format("{} ({})", cpu["model"].get<std::string>(), cpu["vendor"].get<std::string>()));
  line("features", features.empty() ? "nothing beyond SSE2" : join(features, ", "));
  line("products",
       fmt::format("{}: {} (can run: {}; LACUNA_ISA overrides)", r["products"]["chosen"].get<std::string>(),
                   r["products"]["reason"].get<std::string>(), words(r["products"]["available"])));
  line("threads", fmt::format("{}", r["threads"].get<int>()));
  line("memory", fmt::format("{}, huge pages: {}", bytes_text(r["memory_bytes"].get<double>()),
                             r["huge_pages"].get<std::string>()));
  const auto& m = r["measured"];
  line("bandwidth", fmt::format("{:.1f} GB/s (triad)", m["bandwidth_bytes_per_second"].get<double>() * 1e-9));
  for (const char* precision : {"f32", "bf16"}) {
    const double rate = m[std::string(precision) + "_product_flops"].get<double>(),
                 peak = m[std::string(precision) + "_peak_flops"].get<double>();
    line(precision,
         peak > 0 ? fmt::format("{:.0f} GFLOP/s, {:.0f} % of a raw loop's {:.0f}", rate * 1e-9,
                                100 * rate / peak, peak * 1e-9)
                  : fmt::format("{:.0f} GFLOP/s (no bf16 instruction here: rounded, then f32)", rate * 1e-9));
  }
  const auto& gpu = r["gpu"];
  if (const auto absence = gpu["absence"].get<std::string>(); !absence.empty())
    line("gpu", "none: " + absence);
  for (const auto& g : gpu["list"]) {
    std::string text =
        fmt::format("{}, {}, compute capability {}, driver for CUDA {}", g["name"].get<std::string>(),
                    bytes_text(g["memory_bytes"].get<double>()), g["compute_capability"].get<std::string>(),
                    gpu["driver_cuda"].get<std::string>());
    if (g.contains("bf16_flops"))
      text += fmt::format(", {} free, copies at {:.2f} TB/s, bf16 at {:.0f} TFLOP/s",
                          bytes_text(g["free_bytes"].get<double>()),
                          g["copy_bytes_per_second"].get<double>() * 1e-12,
                          g["bf16_flops"].get<double>() * 1e-12);
    line("gpu", text);
  }
  for (const auto& folder : r["folders"])
    line("folder", fmt::format("{}: {}, {} free", folder["path"].get<std::string>(),
                               folder["writable"].get<bool>() ? "writable" : "NOT writable",
                               bytes_text(folder["free_bytes"].get<double>())));
  for (const auto& [name, version] : r["libraries"].items())
    line("library", fmt::format("{} {}", name, version.get<std::string>()));
}

}  // namespace

int doctor(const Arguments& arguments) {
  bool json = false;
  int count = 0;
  Options options;
  options.add("json", json, "print one JSON document");
  options.add("threads", count, "threads to measure with, 0 = all").range(0, 1024);
  parse_or_help(
      options, arguments, "doctor",
      "Shows what this machine can do and which instruction set was chosen for matrix products and why, with "
      "brief measurements.",
      "  lacuna doctor\n  LACUNA_ISA=avx2 lacuna doctor --json\n");
  set_threads(count);
  const Json report = examine();
  if (json)
    fmt::print("{}\n", report.dump(2));
  else
    print(report);
  return 0;
}

}  // namespace lacuna::cli
