#include "ops/device.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/library.h"
#include "base/text.h"
#include "ops/machine.h"

namespace lacuna {
namespace {

constexpr int kOldestDriver = 13000;   // the CUDA that the engine is built with
constexpr int kOldestCapability = 80;  // bf16 tensor cores
constexpr const char* kEngineFile = "liblacuna_cuda.so";

// The few functions of the driver's library that say what is there. Its own names.
struct Driver {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*cuInit)(unsigned) = nullptr;
  int (*cuDriverGetVersion)(int*) = nullptr;
  int (*cuDeviceGetCount)(int*) = nullptr;
  int (*cuDeviceGet)(int*, int) = nullptr;
  int (*cuDeviceGetName)(char*, int, int) = nullptr;
  int (*cuDeviceTotalMem_v2)(std::size_t*, int) = nullptr;
  int (*cuDeviceGetAttribute)(int*, int, int) = nullptr;

  template <class F>
  bool find(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    return function != nullptr;
  }
  bool complete() {
    return library != nullptr && find(cuInit, "cuInit") && find(cuDriverGetVersion, "cuDriverGetVersion") &&
           find(cuDeviceGetCount, "cuDeviceGetCount") && find(cuDeviceGet, "cuDeviceGet") &&
           find(cuDeviceGetName, "cuDeviceGetName") && find(cuDeviceTotalMem_v2, "cuDeviceTotalMem_v2") &&
           find(cuDeviceGetAttribute, "cuDeviceGetAttribute");
  }
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

using MakeOps = Ops<float>* (*)(int device, int precision);
using Measure = void (*)(int device, double* copy, double* product, std::size_t* free_memory);

// Functions of the engine's library, once it has been loaded; it stays.
struct EngineLibrary {
  MakeOps make = nullptr;
  Measure measure = nullptr;
};
EngineLibrary& engine_library() {
  static EngineLibrary library;
  return library;
}

std::string load_engine(std::string& why) {
  const auto found =
      load_library(kEngineFile, "LACUNA_CUDA_LIBRARY", {"lacuna_cuda_make", "lacuna_cuda_measure"});
  if (!found.why.empty()) {
    why = found.missing ? fmt::format("{}; it is built with nvcc (make build)", found.why) : found.why;
    return {};
  }
  engine_library() = {reinterpret_cast<MakeOps>(found.functions[0]),
                      reinterpret_cast<Measure>(found.functions[1])};
  return found.place;
}

GpuReport look_up() {
  GpuReport report;
  Driver driver;
  if (!driver.complete()) {
    report.absence = "there is no NVIDIA driver (libcuda.so.1)";
    return report;
  }
  int count = 0;
  if (const int code = driver.cuInit(0); code != 0) {
    report.absence = code == 100 ? "the NVIDIA driver finds no GPU"
                                 : fmt::format("the NVIDIA driver does not start (error {} of cuInit)", code);
    return report;
  }
  if (driver.cuDriverGetVersion(&report.driver) != 0 || report.driver < kOldestDriver) {
    report.absence = fmt::format("the NVIDIA driver supports CUDA {}, {} is needed; install a newer driver",
                                 version_text(report.driver), version_text(kOldestDriver));
    return report;
  }
  if (driver.cuDeviceGetCount(&count) != 0 || count == 0) {
    report.absence = "the NVIDIA driver finds no GPU";
    return report;
  }
  bool able = false;
  for (int k = 0; k < count; ++k) {
    constexpr int kMajor = 75, kMinor = 76;  // the driver's numbers of these attributes
    Gpu& gpu = report.gpus.emplace_back();
    int handle = 0;
    char name[256] = "?";
    if (driver.cuDeviceGet(&handle, k) != 0) continue;
    driver.cuDeviceGetName(name, sizeof name - 1, handle);
    driver.cuDeviceTotalMem_v2(&gpu.memory, handle);
    driver.cuDeviceGetAttribute(&gpu.major, kMajor, handle);
    driver.cuDeviceGetAttribute(&gpu.minor, kMinor, handle);
    gpu.name = name;
    able |= 10 * gpu.major + gpu.minor >= kOldestCapability;
  }
  if (!able) {
    report.absence = fmt::format("{} has compute capability {}.{}, 8.0 is needed (Ampere or newer)",
                                 report.gpus[0].name, report.gpus[0].major, report.gpus[0].minor);
    return report;
  }
  report.library = load_engine(report.absence);
  if (!report.library.empty()) report.absence.clear();
  return report;
}

void check_gpu(int number) {
  const GpuReport& report = gpu_report();
  if (!report.absence.empty()) fail(Exit::usage, "--device cuda: {}; use --device cpu", report.absence);
  const auto count = static_cast<int>(report.gpus.size());
  if (number >= count)
    fail(Exit::usage, "--device cuda:{}: there {} {} GPU{} here (cuda:0{})", number,
         count == 1 ? "is" : "are", count, count == 1 ? "" : "s",
         count == 1 ? "" : fmt::format(" to cuda:{}", count - 1));
  const Gpu& gpu = report.gpus[static_cast<std::size_t>(number)];
  if (10 * gpu.major + gpu.minor < kOldestCapability)
    fail(Exit::usage, "--device cuda:{}: {} has compute capability {}.{}, 8.0 is needed", number, gpu.name,
         gpu.major, gpu.minor);
}

}  // namespace

const GpuReport& gpu_report() {
  static const GpuReport report = look_up();
  return report;
}

Device parse_device(const std::string& text) {
  if (text == "cpu") return {};
  if (text == "auto") return {.cuda = gpu_report().absence.empty()};
  int number = 0;
  if (text != "cuda") {
    const auto parsed = text.starts_with("cuda:") ? parse_int(text.substr(5)) : std::nullopt;
    if (!parsed || *parsed < 0 || *parsed > 1000)
      fail(Exit::usage, "--device takes auto, cpu, cuda or cuda:N, not '{}'", text);
    number = static_cast<int>(*parsed);
  }
  check_gpu(number);
  return {.cuda = true, .number = number};
}

std::string device_name(Device device) {
  return device.cuda ? fmt::format("cuda:{}", device.number) : "cpu";
}

namespace {
std::atomic<Device>& chosen_device() {
  static std::atomic<Device> device{Device{}};
  return device;
}
}  // namespace

void set_device(Device device) {
  chosen_device() = device;
}
Device current_device() {
  return chosen_device();
}

Precision fastest_precision(Device device) {
  return device.cuda || isa() >= Isa::bf16 ? Precision::bf16 : Precision::f32;
}

std::size_t trainings_at_once(double bytes) {
  constexpr double kMost = 5,
                   kShare = .7;  // more at once are no faster (docs/cuda.md); memory that they may take
  const Device device = current_device();
  if (!device.cuda) return 1;
  const auto memory =
      static_cast<double>(gpu_report().gpus.at(static_cast<std::size_t>(device.number)).memory);
  return static_cast<std::size_t>(std::clamp(kShare * memory / std::max(bytes, 1.), 1., kMost));
}

std::unique_ptr<Ops<float>> make_cuda_ops(int number, Precision precision) {
  check_gpu(number);
  return std::unique_ptr<Ops<float>>(engine_library().make(number, static_cast<int>(precision)));
}

std::unique_ptr<Ops<float>> make_ops(Device device, Precision precision) {
  return device.cuda ? make_cuda_ops(device.number, precision) : make_cpu_ops(precision);
}

GpuSpeed measure_gpu(int number) {
  check_gpu(number);
  GpuSpeed speed;
  engine_library().measure(number, &speed.copy, &speed.product, &speed.free_memory);
  return speed;
}

}  // namespace lacuna
