// The products of the layers at the shapes of both networks, beside the machine's limit and the packaged
// libraries.
//
//   bench_gemm [--seconds S] [--threads T] [--rows N] [--packed] [--no-peers] [--cpu-time]
//       JSON lines on stdout, one a measurement; --packed: of weights that were packed once, alone
//   bench_gemm --peer NAME N IN OUT S T
//       one library at one shape: the program calls itself, so that the libraries' thread pools do not
//       disturb each other
#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/threads.h"
#include "lines.h"
#include "ops/gemm.h"
#include "ops/peaks.h"

namespace lacuna {
namespace {

bool cpu_time = false;

struct Shape {
  std::size_t in, out;
};
// The paper's network on Corel5k: encoders of the 4096-column views, of the 512-column view; then `best`.
constexpr Shape kShapes[] = {{4096, 3277}, {3277, 3277}, {3277, 1500}, {1500, 512}, {512, 410},
                             {1000, 800},  {512, 260},   {96, 1024},   {1024, 512}};

Matrix<float> random_matrix(std::size_t rows, std::size_t cols) {
  Matrix<float> A(rows, cols);
  Random random(rows * 7919 + cols, Purpose::test);
  for (float& x : A.values()) x = random.uniform(-1, 1);
  return A;
}

using CblasSgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
using DnnlSgemm = int (*)(char trans_a, char trans_b, std::int64_t m, std::int64_t n, std::int64_t k,
                          float alpha, const float* a, std::int64_t lda, const float* b, std::int64_t ldb,
                          float beta, float* c, std::int64_t ldc);

template <class F>
F symbol(void* library, const char* name) {
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    fmt::print(stderr, "bench_gemm: no {} (tools/install-packages.sh bench)\n", name);
    std::exit(1);
  }
  return reinterpret_cast<F>(found);
}

// A matrix laid out as networks keep theirs: rows begin with cache lines. The libraries get the same.
struct Rows {
  Matrix<float> memory;
  MatrixView<float> view;
  Rows(std::size_t rows, std::size_t cols, bool random = false)
      : memory(rows, row_stride<float>(cols)), view(memory.data(), rows, cols, memory.cols()) {
    if (random) memory = random_matrix(rows, memory.cols()), view.data = memory.data();
  }
};

int run_peer(const std::string& name, std::size_t n, std::size_t in, std::size_t out, double seconds,
             int count) {
  const Rows X(n, in, true), W(in, out, true), Y(n, out);
  const int m = static_cast<int>(n), k = static_cast<int>(in), columns = static_cast<int>(out);
  const int x_stride = static_cast<int>(X.view.stride), w_stride = static_cast<int>(W.view.stride);
  Timing t;
  if (name == "onednn") {
    setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_BF16", 1);  // its AMX kernels fail on some machines
    const auto gemm = symbol<DnnlSgemm>(dlopen("libdnnl.so.2", RTLD_NOW), "dnnl_sgemm");
    t = measure(seconds, [&] {
      gemm('N', 'N', m, columns, k, 1, X.view.data, x_stride, W.view.data, w_stride, 0, Y.view.data,
           w_stride);
    });
  } else {
    void* library = dlopen("libopenblas.so.0", RTLD_NOW);
    const auto gemm = symbol<CblasSgemm>(library, "cblas_sgemm");
    symbol<void (*)(int)>(library, "openblas_set_num_threads")(count);
    t = measure(seconds, [&] {
      gemm(101, 111, 111, m, columns, k, 1, X.view.data, x_stride, W.view.data, w_stride, 0, Y.view.data,
           w_stride);
    });
  }
  fmt::print("{}\n", t.best);
  return 0;
}

// The library's time at this shape, in a process of its own; 0 if it is not installed.
double peer_seconds(const std::string& program, const std::string& environment, const std::string& name,
                    std::size_t n, const Shape& shape, double seconds, int count) {
  const std::string command =
      fmt::format("OMP_NUM_THREADS={} {} '{}' --peer {} {} {} {} {} {}{}", count, environment, program, name,
                  n, shape.in, shape.out, seconds, count, cpu_time ? " --cpu-time" : "");
  std::FILE* pipe = popen(command.c_str(), "r");
  double result = 0;
  if (pipe == nullptr || std::fscanf(pipe, "%lf", &result) != 1) result = 0;
  if (pipe != nullptr) pclose(pipe);
  return result;
}

// The best of the packaged libraries at a shape. It is asked again between our own measurements, so that both
// see the same moods of the machine.
class Peer {
 public:
  Peer() = default;
  Peer(const std::string& program, std::size_t n, const Shape& shape, double seconds, int count) {
    const auto offer = [&](const std::string& label, const std::string& environment,
                           const std::string& name) {
      const auto ask = [=] { return peer_seconds(program, environment, name, n, shape, seconds, count); };
      const double t = ask();
      if (t <= 0 || (seconds_ > 0 && t >= seconds_)) return;
      label_ = label;
      seconds_ = t;
      ask_ = ask;
    };
    offer("oneDNN sgemm", "", "onednn");
    offer("OpenBLAS (own choice of kernel)", "", "openblas");
    offer("OpenBLAS (SkylakeX)", "OPENBLAS_CORETYPE=SkylakeX", "openblas");
  }
  void again() {
    if (ask_) seconds_ = std::min(seconds_, ask_());
  }
  const std::string& label() const { return label_; }
  double seconds() const { return seconds_; }

 private:
  std::string label_;
  double seconds_ = 0;
  std::function<double()> ask_;
};

// Best and median of all rounds of `work`, the peer in between.
template <class F>
Timing take_turns(double seconds, Peer& peer, F&& work) {
  constexpr int kRounds = 3;
  Timing all = measure(seconds, work);
  std::vector<double> medians = {all.median};
  for (int round = 1; round < kRounds; ++round) {
    peer.again();
    const Timing t = measure(seconds, work);
    all.best = std::min(all.best, t.best);
    medians.push_back(t.median);
  }
  std::sort(medians.begin(), medians.end());
  all.median = medians[kRounds / 2];
  return all;
}

// With weights packed once, as predictions have them. On a machine that others use too, a core can lose half
// of its rate, or of its caches, for some milliseconds. So products and the raw loop take turns of a fraction
// of a millisecond, and the figure of each is the rate that one of its turns in ten exceeds: that of
// undisturbed turns, unless there were hardly any.
template <class F>
void print_packed(const std::string& name, double work, double seconds, int count, F&& product) {
  constexpr double kTurn = .2e-3;
  std::vector<double> rates, raw;
  product();
  for (const double begin = clock_seconds(); clock_seconds() - begin < 2 * seconds;) {
    raw.push_back(peak_bf16(count, 0));
    const double start = clock_seconds();
    double done = 0, time = 0;
    for (; time < kTurn; time = clock_seconds() - start, done += work) product();
    rates.push_back(done / time);
  }
  const auto undisturbed = [](std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() * 9 / 10];
  };
  const double rate = undisturbed(rates), limit = undisturbed(raw);
  print({.name = name,
         .value = rate * 1e-9,
         .unit = "GFLOP/s",
         .limit = limit * 1e-9,
         .share = limit > 0 ? rate / limit : 0,
         .spread = rates.back() / rate - 1});
}

// The plain product of bf16 rows and bf16 weights; the same with bias, ReLU and the result in bf16 again, as
// hidden layers have it; with bias, ReLU and f32 on both sides, the rows packed every time.
void bench_packed(std::size_t n, const Shape& shape, double seconds, int count) {
  const Rows inputs(n, shape.in, true), weights(shape.in, shape.out, true), outputs(n, shape.out);
  const MatrixView<float> X = inputs.view, Y = outputs.view;
  const Matrix<float> bias(1, shape.out);
  const std::span<const float> b = bias.row(0);
  const PackedWeights packed(weights.view);
  PackedRows rows, result;
  rows.pack(X);
  const double work = 2. * static_cast<double>(n * shape.in) * static_cast<double>(shape.out);
  const std::string size = fmt::format("{}x{}x{}", n, shape.in, shape.out);
  print_packed("gemm bf16 of packed rows, plain " + size, work, seconds, count,
               [&] { linear_forward(rows, packed, {}, false, Y); });
  print_packed("gemm bf16 of packed rows, to packed rows " + size, work, seconds, count,
               [&] { linear_forward(rows, packed, b, true, result); });
  print_packed("gemm bf16 of f32 rows, packed weights " + size, work, seconds, count,
               [&] { linear_forward(X, packed, b, true, Y); });
}

void bench_layer(const std::string& program, std::size_t n, const Shape& shape, double seconds, int count,
                 double f32, double bf16, bool peers) {
  const double work = 2. * static_cast<double>(n * shape.in) * static_cast<double>(shape.out);
  const Rows X(n, shape.in, true), dY(n, shape.out, true), W(shape.in, shape.out, true),
      momentum(shape.in, shape.out), Y(n, shape.out), dX(n, shape.in);
  Matrix<float> b(1, shape.out), b_momentum(1, shape.out);
  Rows rectified(n, shape.in, true);
  double share_above_zero = 0;
  for (float& x : rectified.memory.values()) {
    x = std::max(x, 0.f);
    share_above_zero += x > 0 ? 1 / static_cast<double>(rectified.memory.values().size()) : 0;
  }
  UpdateRule rule;
  rule.rate = 1e-6;
  const std::string size = fmt::format("{}x{}x{}", n, shape.in, shape.out);
  Peer peer = peers ? Peer(program, n, shape, seconds, count) : Peer();
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const bool low = precision == Precision::bf16;
    const double limit = low ? bf16 : f32;
    const char* label = low ? "bf16" : "f32";
    const auto product = [&] { linear_forward(X.view, W.view, b.row(0), true, precision, Y.view); };
    const Timing forward = low ? measure(seconds, product) : take_turns(seconds, peer, product);
    print({fmt::format("gemm {} forward {}", label, size), work / forward.best * 1e-9, "GFLOP/s",
           peer.label(), peer.seconds() / forward.best, limit * 1e-9, work / forward.best / limit,
           forward.spread()});
    const auto backward = [&](const Rows& inputs, const char* kind, double needed) {
      const Timing t = measure(seconds, [&] {
        linear_backward(inputs.view, dY.view, true, precision, rule, {W.view, momentum.view, {}, {}},
                        {b, b_momentum, {}, {}}, dX.view);
      });
      const double rate = 2 * work * needed / t.best;
      print({fmt::format("gemm {} backward{} with update {}", label, kind, size), rate * 1e-9, "GFLOP/s", "",
             0, limit * 1e-9, rate / limit, t.spread()});
    };
    backward(X, "", 1);
    if (!low) backward(rectified, " of ReLU's outputs (what is not zero counts)", share_above_zero);
  }
}

int run(int argc, char** argv) {
  if (std::strcmp(argv[argc - 1], "--cpu-time") == 0) use_clock(Clock::cpu);
  if (argc >= 8 && std::strcmp(argv[1], "--peer") == 0)
    return run_peer(argv[2], std::strtoul(argv[3], nullptr, 10), std::strtoul(argv[4], nullptr, 10),
                    std::strtoul(argv[5], nullptr, 10), std::strtod(argv[6], nullptr), std::atoi(argv[7]));
  double seconds = .3;
  int count = threads();
  bool peers = true, packed_only = false;
  std::vector<std::size_t> rows = {128, 64};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
      seconds = std::strtod(argv[++i], nullptr);
    else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
      count = std::atoi(argv[++i]);
    else if (std::strcmp(argv[i], "--rows") == 0 && i + 1 < argc)
      rows = {std::strtoul(argv[++i], nullptr, 10)};
    else if (std::strcmp(argv[i], "--packed") == 0)
      packed_only = true;
    else if (std::strcmp(argv[i], "--cpu-time") == 0) {
      count = 1;
      cpu_time = true;
      use_clock(Clock::cpu);
    } else if (std::strcmp(argv[i], "--no-peers") == 0)
      peers = false;
    else {
      fmt::print(
          stderr,
          "usage: bench_gemm [--seconds S] [--threads T] [--rows N] [--packed] [--no-peers] [--cpu-time]\n");
      return 2;
    }
  }
  set_threads(count);
  const double f32 = peak_f32(count), bf16 = peak_bf16(count), bandwidth = triad(count);
  print({.name = "peak f32", .value = f32 * 1e-9, .unit = "GFLOP/s"});
  print({.name = "peak bf16", .value = bf16 * 1e-9, .unit = "GFLOP/s"});
  print({.name = "triad", .value = bandwidth * 1e-9, .unit = "GB/s"});
  for (std::size_t n : rows)
    for (const Shape& shape : kShapes) {
      if (!packed_only) bench_layer(argv[0], n, shape, seconds, count, f32, bf16, peers);
      bench_packed(n, shape, seconds, count);
    }
  if (!packed_only) {
    const auto A = random_matrix(3500, 3500), B = random_matrix(3500, 3500);
    Matrix<float> C(3500, 3500);
    Peer peer = peers ? Peer(argv[0], 3500, {3500, 3500}, seconds, count) : Peer();
    const Timing t = take_turns(seconds, peer, [&] { multiply(A, B, Transpose::none, false, C); });
    const double rate = 2 * 3500. * 3500 * 3500 / t.best;
    print({"multiply f32 3500x3500x3500", rate * 1e-9, "GFLOP/s", peer.label(), peer.seconds() / t.best,
           f32 * 1e-9, rate / f32, t.spread()});
  }
  return 0;
}

}  // namespace
}  // namespace lacuna

int main(int argc, char** argv) {
  return lacuna::run(argc, argv);
}
