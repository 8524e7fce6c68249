// An engine without a GPU, for tests: liblacuna_cuda.so that computes in the host's memory as if it were a device's, and
// is lost where FAKE_LOST_AFTER says: so many backward passes of layers, of all trainings of the process together; or
// FAKE_LOST_AFTER_FORWARD: so many forward passes. From then on every call fails, as with a GPU. FAKE_ROOM: bytes that may
// be allocated.
#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "ops/cpu.h"

namespace lacuna {
namespace {

std::size_t number(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class FakeOps final : public CpuOps {
 public:
  using CpuOps::CpuOps;
  int place() const override { return 1; }
  Blocks blocks() const override { return {512, false, false}; }
  std::shared_ptr<void> allocate(std::size_t bytes) const override {
    check();
    static std::atomic<std::size_t> taken{0};
    static const std::size_t room = number("FAKE_ROOM", ~std::size_t{0});
    if ((taken += bytes) > room)
      fail(Exit::failed, "the GPU has {} bytes, {} are needed", room, taken.load());
    return CpuOps::allocate(bytes);
  }
  void upload(ByteRows<const std::byte> host, ByteRows<std::byte> to, std::size_t width,
              std::size_t rows) const override {
    check();
    CpuOps::upload(host, to, width, rows);
  }
  void download(ByteRows<const std::byte> from, ByteRows<std::byte> host, std::size_t width,
                std::size_t rows) const override {
    check();
    CpuOps::download(from, host, width, rows);
  }
  void linear_forward(std::span<const ForwardJob<float>> jobs) const override {
    check(1, 0);
    CpuOps::linear_forward(jobs);
  }
  void linear_backward(std::span<const BackwardJob<float>> jobs, const UpdateRule& rule) const override {
    check(0, 1);
    CpuOps::linear_backward(jobs, rule);
  }

 private:
  static void check(std::size_t forward = 0, std::size_t backward = 0) {
    static const std::size_t most_forward = number("FAKE_LOST_AFTER_FORWARD", ~std::size_t{0}),
                             most_backward = number("FAKE_LOST_AFTER", ~std::size_t{0});
    static std::atomic<std::size_t> forwards{0}, backwards{0};
    const bool spent = (forwards += forward) > most_forward;
    if ((backwards += backward) > most_backward || spent)
      throw DeviceLost("the GPU was lost (a test); go on with --resume");
  }
};

}  // namespace
}  // namespace lacuna

extern "C" __attribute__((visibility("default"))) lacuna::Ops<float>* lacuna_cuda_make(int, int precision) {
  return new lacuna::FakeOps(static_cast<lacuna::Precision>(precision));
}
extern "C" __attribute__((visibility("default"))) void lacuna_cuda_measure(int, double* copy, double* product,
                                                                           std::size_t* free_memory) {
  *copy = *product = 1;
  *free_memory = 1 << 30;
}
