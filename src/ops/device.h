// The device that computes: the CPU, or a GPU through liblacuna_cuda.so, which is loaded if there is a driver. So
// one program serves machines with and without a GPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/ops.h"

namespace lacuna {

struct Device {
  bool cuda = false;
  int number = 0;  // of the GPU
};

// "cpu", "cuda", "cuda:1"; "auto" is the first GPU that can be used, otherwise the CPU. Exit::usage for anything
// else, and if a requested GPU cannot be used.
Device parse_device(const std::string& text);
std::string device_name(Device device);  // "cpu", "cuda:0"

// The device of networks made from now on; the CPU at first.
void set_device(Device device);
Device current_device();
// The fastest precision on the device.
Precision fastest_precision(Device device);

// How many trainings of this many bytes each should share the current device: several on a GPU, one on the CPU.
std::size_t trainings_at_once(double bytes);

struct Gpu {
  std::string name;
  std::size_t memory = 0;  // bytes
  int major = 0, minor = 0;  // compute capability
};
struct GpuReport {
  std::string absence;     // why no GPU can be used, one sentence; empty if one can
  int driver = 0;          // the newest CUDA that it speaks, 13000 = 13.0; 0 = there is no driver
  std::string library;     // the engine's file, where it was found
  std::vector<Gpu> gpus;
};
const GpuReport& gpu_report();  // looked up once
inline const std::string& cuda_absence() { return gpu_report().absence; }

std::unique_ptr<Ops<float>> make_cuda_ops(int number, Precision precision);
std::unique_ptr<Ops<float>> make_ops(Device device, Precision precision);

// Measured briefly: bytes per second of a copy, read and written, and FLOP/s of a product in bf16.
struct GpuSpeed {
  double copy = 0, product = 0;
  std::size_t free_memory = 0;
};
GpuSpeed measure_gpu(int number);

}  // namespace lacuna
