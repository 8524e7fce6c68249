// Every form of the products that this machine can run, against the naive reference: one list of cases, run
// for each instruction set and precision.
#include "ops/gemm.h"
#include "ops/gemm_kernels.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/random.h"
#include "base/threads.h"
#include "ops/gemm_reference.h"
#include "ops/machine.h"
#include "ops/sparse.h"

namespace lacuna {
namespace {

constexpr float kUntouched = 1234.5f;  // fills the memory between rows, where nothing may be written

// A matrix whose rows are `stride` apart and start at an odd address, or with cache lines where the stride
// allows it.
struct Strided {
  std::size_t start;
  Matrix<float> memory;
  MatrixView<float> view;

  Strided(std::size_t rows, std::size_t cols, std::size_t gap)
      : start((cols + gap) % 16 == 0 ? 16 : 1),
        memory(1, rows * (cols + gap) + start + gap),
        view(memory.data() + start, rows, cols, cols + gap) {
    for (float& x : memory.values()) x = kUntouched;
  }
  Strided(std::size_t rows, std::size_t cols, std::size_t gap, Random& random, float zeros = 0)
      : Strided(rows, cols, gap) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j)
        view(i, j) = random.uniform() < zeros ? 0 : random.uniform(-1, 1);
  }
  void expect_gaps_untouched(const std::string& what) const {
    for (std::size_t at = 0; at < memory.cols(); ++at) {
      const bool inside =
          at >= start && (at - start) / view.stride < view.rows && (at - start) % view.stride < view.cols;
      if (inside) continue;
      ASSERT_EQ(memory(0, at), kUntouched) << what << ": wrote outside, offset " << at;
    }
  }
};

Matrix<double> to_double(MatrixView<const float> A) {
  Matrix<double> D(A.rows, A.cols);
  for (std::size_t i = 0; i < A.rows; ++i)
    for (std::size_t j = 0; j < A.cols; ++j) D(i, j) = static_cast<double>(A(i, j));
  return D;
}

// |got - expected| within what sums of `depth` f32 terms of total size `magnitude` may lose.
void expect_near(MatrixView<const float> got, MatrixView<const double> expected, double depth,
                 double largest_term, const std::string& what) {
  ASSERT_EQ(got.rows, expected.rows);
  ASSERT_EQ(got.cols, expected.cols);
  const double bound = 0x1p-23 * (depth + 4) * (largest_term * std::sqrt(depth + 1) + 1);
  for (std::size_t i = 0; i < got.rows; ++i)
    for (std::size_t j = 0; j < got.cols; ++j)
      ASSERT_NEAR(static_cast<double>(got(i, j)), expected(i, j), bound)
          << what << " at (" << i << ", " << j << ")";
}

struct Shape {
  std::size_t n, in, out, gap;
  std::string text() const { return fmt::format("n {} in {} out {} gap {}", n, in, out, gap); }
};

// Sizes around the tiles: all of 1..40, and the neighbours of 64 and 128.
std::size_t any_size(Random& random) {
  constexpr std::size_t kLarge[] = {63, 64, 65, 66, 127, 128, 129, 130};
  const std::size_t draw = random.below(48);
  return draw < 40 ? draw + 1 : kLarge[draw - 40];
}

std::vector<Shape> shapes(std::size_t count) {
  Random random(5, Purpose::test);
  std::vector<Shape> list;
  for (std::size_t s = 1; s <= 130; ++s) list.push_back({s, 130 - s + 1, s % 37 + 1, s % 3});
  for (std::size_t s = 0; s < count; ++s)
    list.push_back(
        {random.below(20) == 0 ? 0 : any_size(random), any_size(random), any_size(random), random.below(4)});
  return list;
}

using Case = std::tuple<Isa, Precision>;

class Products : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!has_isa(std::get<0>(GetParam())))
      GTEST_SKIP() << "this CPU (" << cpu_features().model << ") has no "
                   << isa_name(std::get<0>(GetParam()));
    before_ = isa();
    choose_isa(std::get<0>(GetParam()));
  }
  void TearDown() override {
    choose_isa(before_);
    set_threads(0);
  }
  Precision precision() const { return std::get<1>(GetParam()); }

 private:
  Isa before_ = isa();
};

TEST_P(Products, ForwardAgreesWithReference) {
  Random random(1, Purpose::test);
  auto list = shapes(250);
  list.push_back({7, 1100, 33, 1});     // several blocks of depth
  list.push_back({600, 40, 50, 1});     // several chunks of rows
  list.push_back({3, 70, 1500, 1});     // few rows, several tasks
  list.push_back({5, 0, 9, 0});         // nothing to sum
  list.push_back({30, 1024, 70, 0});    // rows of X that crowd in the cache
  list.push_back({20, 300, 1024, 0});   // rows of W that crowd, too many to be used where they lie
  list.push_back({20, 100, 1024, 0});   // and few enough
  list.push_back({33, 530, 2100, 1});   // several tasks of columns, several blocks of depth
  list.push_back({33, 530, 2100, 12});  // the same, rows begin with cache lines
  list.push_back({70, 200, 4100, 12});  // many columns for each of up to four threads
  list.push_back({64, 96, 260, 12});    // and few
  for (const Shape& shape : list) {
    const Strided X(shape.n, shape.in, shape.gap, random), W(shape.in, shape.out, shape.gap, random);
    const Strided b(1, shape.out, 0, random);
    const bool with_bias = random.below(2) == 0, relu = random.below(2) == 0;
    Strided Y(shape.n, shape.out, shape.gap);
    const std::span<const float> bias = with_bias ? b.view.row(0) : std::span<float>();
    linear_forward(X.view, W.view, bias, relu, precision(), Y.view);
    Matrix<double> expected(shape.n, shape.out);
    const auto b64 = to_double(b.view);
    reference::linear_forward<double>(to_double(X.view), to_double(W.view),
                                      with_bias ? b64.row(0) : std::span<const double>(), relu, precision(),
                                      expected);
    expect_near(Y.view, expected, static_cast<double>(shape.in), 1, "Y, " + shape.text());
    Y.expect_gaps_untouched("Y, " + shape.text());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Products, PackedWeightsAgreeWithReference) {
  if (precision() == Precision::f32) GTEST_SKIP() << "packed weights are bf16 alone";
  Random random(8, Purpose::test);
  auto list = shapes(200);
  list.push_back({7, 1100, 33, 1});  // several blocks of depth
  list.push_back({600, 40, 50, 1});  // several chunks of rows
  list.push_back({3, 70, 1500, 1});  // few rows, several tasks
  list.push_back({33, 530, 2100, 12});
  for (const Shape& shape : list) {
    const Strided X(shape.n, shape.in, shape.gap, random), W(shape.in, shape.out, shape.gap, random);
    const Strided b(1, shape.out, 0, random);
    const bool with_bias = random.below(2) == 0, relu = random.below(2) == 0;
    const std::span<const float> bias = with_bias ? b.view.row(0) : std::span<float>();
    const PackedWeights packed(W.view);
    Matrix<double> expected(shape.n, shape.out);
    const auto b64 = to_double(b.view);
    reference::linear_forward<double>(to_double(X.view), to_double(W.view),
                                      with_bias ? b64.row(0) : std::span<const double>(), relu, precision(),
                                      expected);
    std::vector<float> first;
    for (const int count : {1, 2, 4}) {
      set_threads(count);
      Strided Y(shape.n, shape.out, shape.gap);
      linear_forward(X.view, packed, bias, relu, Y.view);
      expect_near(Y.view, expected, static_cast<double>(shape.in), 1, "Y, " + shape.text());
      Y.expect_gaps_untouched("Y, " + shape.text());
      if (HasFatalFailure()) return;
      if (count == 1) first.assign(Y.memory.values().begin(), Y.memory.values().end());
      ASSERT_TRUE(std::ranges::equal(first, Y.memory.values()))
          << shape.text() << ", " << count << " threads";
    }
  }
}

// A layer that packs its result for the next one: as if that had been given the result itself.
TEST_P(Products, PackedRowsAreTheRowsThemselves) {
  if (precision() == Precision::f32) GTEST_SKIP() << "packed weights are bf16 alone";
  struct Widths {
    std::size_t n, in, hidden, out;
  };
  Random random(9, Purpose::test);
  std::vector<Widths> list = {{128, 96, 1024, 40}, {33, 1100, 520, 70},  {40, 530, 2100, 33},
                              {700, 300, 600, 50}, {128, 4096, 130, 17}, {0, 5, 4, 3}};
  for (std::size_t i = 0; i < 100; ++i)
    list.push_back(
        {1 + random.below(130), 1 + random.below(130), 1 + random.below(130), 1 + random.below(130)});
  PackedRows hidden;  // grows and shrinks
  for (const Widths& w : list) {
    const std::string text = fmt::format("{} x {} x {} x {}", w.n, w.in, w.hidden, w.out);
    const Strided X(w.n, w.in, 3, random), W(w.in, w.hidden, 0, random), V(w.hidden, w.out, 1, random),
        b(1, w.hidden, 0, random);
    const PackedWeights first(W.view), second(V.view);
    const bool relu = random.below(2) == 0;
    Strided Y(w.n, w.hidden, 0), expected(w.n, w.out, 0);
    set_threads(1);
    linear_forward(X.view, first, b.view.row(0), relu, Y.view);
    linear_forward(Y.view, second, {}, false, expected.view);
    for (const int count : {1, 2, 4}) {
      set_threads(count);
      linear_forward(X.view, first, b.view.row(0), relu, hidden);
      ASSERT_EQ(hidden.rows(), w.n);
      ASSERT_EQ(hidden.cols(), w.hidden);
      Strided Z(w.n, w.out, 2);
      linear_forward(hidden, second, {}, false, Z.view);
      for (std::size_t i = 0; i < w.n; ++i)
        ASSERT_TRUE(std::ranges::equal(Z.view.row(i), expected.view.row(i)))
            << text << ", row " << i << ", " << count << " threads";
      Z.expect_gaps_untouched(text);
    }
  }
}

struct Layer {
  Strided value, first, second, mean;
  Layer(std::size_t rows, std::size_t cols, std::size_t gap, Random& random)
      : value(rows, cols, gap, random),
        first(rows, cols, gap, random),
        second(rows, cols, gap, random),
        mean(rows, cols, gap, random) {
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < cols; ++j) second.view(i, j) = 1 + std::abs(second.view(i, j));
  }
  ParameterView<float> parameter(const UpdateRule& rule) {
    return {value.view, first.view, rule.optimiser == Optimiser::sgd ? MatrixView<float>() : second.view,
            rule.average > 0 ? mean.view : MatrixView<float>()};
  }
};

struct DoubleLayer {
  Matrix<double> value, first, second, mean;
  explicit DoubleLayer(const Layer& from)
      : value(to_double(from.value.view)),
        first(to_double(from.first.view)),
        second(to_double(from.second.view)),
        mean(to_double(from.mean.view)) {}
  ParameterView<double> parameter(const UpdateRule& rule) {
    return {value, first, rule.optimiser == Optimiser::sgd ? MatrixView<double>() : second.view(),
            rule.average > 0 ? mean.view() : MatrixView<double>()};
  }
};

void expect_near(Layer& got, DoubleLayer& expected, double depth, double factor, const std::string& what) {
  expect_near(got.value.view, expected.value, depth, factor, what + " value");
  expect_near(got.first.view, expected.first, depth, factor, what + " first");
  expect_near(got.second.view, expected.second, depth, factor * (depth + 1), what + " second");
  expect_near(got.mean.view, expected.mean, depth, factor, what + " mean");
  for (const Strided* part : {&got.value, &got.first, &got.second, &got.mean})
    part->expect_gaps_untouched(what);
}

UpdateRule some_rule(Random& random) {
  UpdateRule rule;
  constexpr Optimiser kAll[] = {Optimiser::sgd, Optimiser::adam, Optimiser::adamw,
                                Optimiser::rmsprop};
  rule.optimiser = kAll[random.below(4)];
  rule.rate = .1;
  rule.momentum = random.below(2) == 0 ? .9 : .5;
  rule.weight_decay = random.below(2) == 0 ? 0 : .3;
  rule.average = random.below(2) == 0 ? 0 : .75;
  rule.step = 1 + static_cast<std::int64_t>(random.below(9));
  if (rule.optimiser == Optimiser::rmsprop) rule.epsilon = .1;  // without it the first step jumps where a gradient is 0
  return rule;
}

TEST_P(Products, BackwardAgreesWithReference) {
  Random random(2, Purpose::test);
  auto list = shapes(250);
  list.push_back({6, 35, 1100, 1});  // several blocks of outputs
  list.push_back({9, 300, 31, 1});   // several tasks
  for (const Shape& shape : list) {
    const UpdateRule rule = some_rule(random);
    const bool mask = random.below(2) == 0, wants_dX = random.below(4) != 0, with_bias = random.below(4) != 0;
    const Strided X(shape.n, shape.in, shape.gap, random, random.below(2) == 0 ? .3f : .7f),
        dY(shape.n, shape.out, shape.gap, random);
    Layer W(shape.in, shape.out, shape.gap, random), b(1, shape.out, 0, random);
    DoubleLayer W64(W), b64(b);
    Strided dX(wants_dX ? shape.n : 0, shape.in, shape.gap);
    linear_backward(X.view, dY.view, mask, precision(), rule, W.parameter(rule),
                    with_bias ? b.parameter(rule) : ParameterView<float>{}, dX.view);
    Matrix<double> dX64(wants_dX ? shape.n : 0, shape.in);
    reference::linear_backward<double>(to_double(X.view), to_double(dY.view), mask, precision(), rule,
                                       W64.parameter(rule),
                                       with_bias ? b64.parameter(rule) : ParameterView<double>{}, dX64);
    const std::string what = shape.text() + fmt::format(" optimiser {}", static_cast<int>(rule.optimiser));
    if (wants_dX && shape.n != 0)
      expect_near(dX.view, dX64, static_cast<double>(shape.out), 1, "dX, " + what);
    dX.expect_gaps_untouched("dX, " + what);
    // The optimiser's division magnifies what the gradient lost by at most rate / (1 - momentum).
    expect_near(W, W64, static_cast<double>(shape.n), 4, "W, " + what);
    expect_near(b, b64, static_cast<double>(shape.n), 4, "b, " + what);
    if (HasFatalFailure()) return;
  }
}

// Also where it does not pay: every entry, or none, and negative ones, which ReLU never gives.
TEST_P(Products, GatedBackwardAgreesWithReference) {
  if (precision() == Precision::bf16) GTEST_SKIP() << "gated layers are f32 alone";
  Random random(8, Purpose::test);
  auto list = shapes(120);
  list.push_back({40, 300, 700, 12});  // several tasks, blocks and strips
  list.push_back({70, 129, 256, 0});
  for (const Shape& shape : list) {
    const UpdateRule rule = some_rule(random);
    const bool with_bias = random.below(4) != 0;
    constexpr float kZeros[] = {0, .5f, .95f, 1};
    const Strided X(shape.n, shape.in, shape.gap, random, kZeros[random.below(4)]),
        dY(shape.n, shape.out, shape.gap, random);
    const Layer W(shape.in, shape.out, shape.gap, random), b(1, shape.out, 0, random);
    DoubleLayer W64(W), b64(b);
    Matrix<double> dX64(shape.n, shape.in);
    reference::linear_backward<double>(to_double(X.view), to_double(dY.view), true, precision(), rule,
                                       W64.parameter(rule),
                                       with_bias ? b64.parameter(rule) : ParameterView<double>{}, dX64);
    std::vector<float> first;
    for (const int count : {1, 2, 4}) {
      set_threads(count);
      Layer W32 = W, b32 = b;
      for (auto [copy, from] : {std::pair{&W32, &W}, std::pair{&b32, &b}})
        for (Strided Layer::*part : {&Layer::value, &Layer::first, &Layer::second, &Layer::mean})
          (copy->*part).view.data = (copy->*part).memory.data() + (from->*part).start;
      Strided dX(shape.n, shape.in, shape.gap);
      gated_backward(kernels(precision()), X.view, dY.view, rule, W32.parameter(rule),
                     with_bias ? b32.parameter(rule) : ParameterView<float>{}, dX.view);
      const std::string what = shape.text() + fmt::format(", {} threads", count);
      expect_near(dX.view, dX64, static_cast<double>(shape.out), 1, "dX, " + what);
      dX.expect_gaps_untouched("dX, " + what);
      expect_near(W32, W64, static_cast<double>(shape.n), 4, "W, " + what);
      expect_near(b32, b64, static_cast<double>(shape.n), 4, "b, " + what);
      if (HasFatalFailure()) return;
      std::vector<float> all;
      for (const Strided* part : {&dX, &W32.value, &W32.first, &W32.second, &W32.mean, &b32.value})
        all.insert(all.end(), part->memory.values().begin(), part->memory.values().end());
      if (count == 1) first = all;
      ASSERT_TRUE(first == all) << what << ": other bits than with one thread";
    }
  }
}

TEST_P(Products, MultiplyAgreesWithReference) {
  if (precision() == Precision::bf16) GTEST_SKIP() << "multiply is f32 alone";
  Random random(3, Purpose::test);
  auto list = shapes(200);
  list.push_back({520, 40, 20, 1});
  list.push_back({20, 9000, 10, 0});
  for (const Shape& shape : list)
    for (Transpose transpose : {Transpose::none, Transpose::left, Transpose::right}) {
      const bool left = transpose == Transpose::left, right = transpose == Transpose::right;
      const Strided A(left ? shape.in : shape.n, left ? shape.n : shape.in, shape.gap, random);
      const Strided B(right ? shape.out : shape.in, right ? shape.in : shape.out, shape.gap, random);
      Strided C(shape.n, shape.out, shape.gap, random);
      const bool accumulate = random.below(2) == 0;
      auto expected = to_double(C.view);
      multiply(A.view, B.view, transpose, accumulate, C.view);
      reference::multiply<double>(to_double(A.view), to_double(B.view), transpose, accumulate, expected);
      expect_near(C.view, expected, static_cast<double>(shape.in), 1, "C, " + shape.text());
      C.expect_gaps_untouched("C, " + shape.text());
      if (HasFatalFailure()) return;
    }
}

// Which items wait together must not show in what each of them gets.
TEST_P(Products, ARowHasTheSameBitsWhateverRowsAreBesideIt) {
  if (precision() == Precision::bf16) GTEST_SKIP() << "multiply is f32 alone";
  Random random(5, Purpose::test);
  for (const Shape& shape :
       {Shape{61, 700, 300, 1}, Shape{600, 90, 33, 0}, Shape{40, 2500, 16, 0}, Shape{13, 130, 1024, 0}})
    for (Transpose transpose : {Transpose::none, Transpose::right}) {
      const bool right = transpose == Transpose::right;
      const Strided A(shape.n, shape.in, shape.gap, random),
          B(right ? shape.out : shape.in, right ? shape.in : shape.out, shape.gap, random);
      Strided whole(shape.n, shape.out, shape.gap);
      multiply(A.view, B.view, transpose, false, whole.view);
      for (const std::size_t count : {1, 2, 3, 5, 8, 11}) {
        const std::size_t begin = random.below(static_cast<std::uint32_t>(shape.n - count + 1));
        Strided part(count, shape.out, shape.gap);
        multiply(A.view.slice(begin, count), B.view, transpose, false, part.view);
        for (std::size_t i = 0; i < count; ++i)
          ASSERT_TRUE(std::ranges::equal(part.view.row(i), whole.view.row(begin + i)))
              << shape.text() << " rows from " << begin << ", " << count;
      }
    }
}

// Results as bytes, for comparison over thread counts.
std::vector<float> all_results(const Shape& shape, float zeros, Precision precision) {
  Random random(4, Purpose::test);
  const Strided X(shape.n, shape.in, shape.gap, random, zeros), dY(shape.n, shape.out, shape.gap, random);
  const UpdateRule rule = some_rule(random);
  Layer W(shape.in, shape.out, shape.gap, random), b(1, shape.out, 0, random);
  Strided Y(shape.n, shape.out, shape.gap), dX(shape.n, shape.in, shape.gap),
      C(shape.in, shape.out, shape.gap);
  linear_forward(X.view, W.value.view, b.value.view.row(0), true, precision, Y.view);
  multiply(X.view, dY.view, Transpose::left, false, C.view);
  linear_backward(X.view, dY.view, true, precision, rule, W.parameter(rule), b.parameter(rule), dX.view);
  std::vector<float> all;
  for (const Strided* part : {&Y, &dX, &C, &W.value, &W.first, &W.second, &W.mean, &b.value, &b.first})
    all.insert(all.end(), part->memory.values().begin(), part->memory.values().end());
  return all;
}

TEST_P(Products, SameBitsForAnyNumberOfThreads) {
  for (const Shape& shape : {Shape{128, 300, 700, 1}, Shape{3, 500, 900, 0}, Shape{64, 96, 1024, 0},
                             Shape{65, 513, 40, 0}, Shape{129, 1024, 33, 0}, Shape{40, 300, 2100, 12}})
    for (float zeros : {.3f, .6f}) {
      set_threads(1);
      const auto one = all_results(shape, zeros, precision());
      for (int count : {2, 4}) {
        set_threads(count);
        const auto more = all_results(shape, zeros, precision());
        ASSERT_EQ(one.size(), more.size());
        for (std::size_t i = 0; i < one.size(); ++i)
          ASSERT_EQ(one[i], more[i]) << shape.text() << ", " << count << " threads";
      }
    }
}

// Inputs that are a background but for some entries, hidden in parts.
struct SparseInputs {
  Strided X;
  Matrix<float> background;
  std::vector<Fragment> hidden;
  Deviations deviations;

  SparseInputs(const Shape& shape, Precision precision, Random& random)
      : X(shape.n, shape.in, shape.gap), background(1, shape.in), hidden(shape.n) {
    constexpr float kShares[] = {0, .05f, .3f, 1};
    const float share = kShares[random.below(4)];
    const bool zero = random.below(4) == 0;
    for (float& x : background.values()) x = zero ? 0 : random.uniform(-1, 1);
    for (std::size_t r = 0; r < shape.n; ++r) {
      const auto a = static_cast<std::uint32_t>(random.below(shape.in + 1)),
                 b = static_cast<std::uint32_t>(random.below(shape.in + 1));
      const std::size_t kind = random.below(5);
      if (kind == 0) hidden[r] = {0, static_cast<std::uint32_t>(shape.in)};  // everything
      if (kind > 1) hidden[r] = {std::min(a, b), std::max(a, b)};            // else nothing
      for (std::size_t j = 0; j < shape.in; ++j) {
        const float x = random.uniform() < share ? random.uniform(-1, 1) : background(0, j);
        X.view(r, j) = j >= hidden[r].begin && j < hidden[r].end ? 0 : x;
      }
    }
    deviations.find(X.view, hidden, background.row(0), precision);
  }
};

TEST_P(Products, SparseInputsAgreeWithReference) {
  Random random(6, Purpose::test);
  auto list = shapes(150);
  list.push_back({20, 600, 40, 12});  // several tasks that search
  list.push_back({9, 30, 1100, 12});  // several tasks of outputs
  list.push_back({130, 300, 200, 8});
  for (const Shape& shape : list) {
    SparseInputs inputs(shape, precision(), random);
    const UpdateRule rule = some_rule(random);
    const bool with_bias = random.below(4) != 0, relu = random.below(2) == 0;
    const Strided dY(shape.n, shape.out, shape.gap, random);
    Layer W(shape.in, shape.out, shape.gap, random), b(1, shape.out, 0, random);
    DoubleLayer W64(W), b64(b);
    Strided Y(shape.n, shape.out, shape.gap);
    Matrix<double> Y64(shape.n, shape.out);
    const auto X64 = to_double(inputs.X.view);
    sparse_forward(inputs.deviations, W.value.view, with_bias ? b.value.view.row(0) : std::span<float>(),
                   relu, Y.view);
    reference::linear_forward<double>(X64, W64.value, with_bias ? b64.value.row(0) : std::span<double>(),
                                      relu, precision(), Y64);
    expect_near(Y.view, Y64, 3 * static_cast<double>(shape.in), 1, "Y, " + shape.text());
    Y.expect_gaps_untouched("Y, " + shape.text());
    sparse_backward(inputs.deviations, dY.view, rule, W.parameter(rule),
                    with_bias ? b.parameter(rule) : ParameterView<float>{});
    reference::linear_backward<double>(X64, to_double(dY.view), false, precision(), rule, W64.parameter(rule),
                                       with_bias ? b64.parameter(rule) : ParameterView<double>{}, {});
    expect_near(W, W64, 3 * static_cast<double>(shape.n), 4, "W, " + shape.text());
    expect_near(b, b64, static_cast<double>(shape.n), 4, "b, " + shape.text());
    if (HasFatalFailure()) return;
  }
}

TEST_P(Products, SparseInputsGiveTheSameBitsForAnyNumberOfThreads) {
  const auto results = [this](const Shape& shape, int count) {
    set_threads(count);
    Random random(7, Purpose::test);
    SparseInputs inputs(shape, precision(), random);
    const UpdateRule rule = some_rule(random);
    const Strided dY(shape.n, shape.out, shape.gap, random);
    Layer W(shape.in, shape.out, shape.gap, random), b(1, shape.out, 0, random);
    Strided Y(shape.n, shape.out, shape.gap);
    sparse_forward(inputs.deviations, W.value.view, b.value.view.row(0), true, Y.view);
    sparse_backward(inputs.deviations, dY.view, rule, W.parameter(rule), b.parameter(rule));
    std::vector<float> all;
    for (const Strided* part : {&Y, &W.value, &W.first, &W.second, &W.mean, &b.value, &b.first})
      all.insert(all.end(), part->memory.values().begin(), part->memory.values().end());
    return all;
  };
  for (const Shape& shape : {Shape{64, 700, 1100, 0}, Shape{33, 300, 90, 6}, Shape{5, 40, 3000, 8}})
    for (const int count : {2, 4})
      ASSERT_EQ(results(shape, 1), results(shape, count)) << shape.text() << ", " << count << " threads";
}

TEST_P(Products, ZeroRowsStillMoveTheMomentum) {
  UpdateRule rule;
  Matrix<float> W(40, 50), m(40, 50), b(1, 50), bm(1, 50);
  for (float& x : m.values()) x = 1;
  for (float& x : bm.values()) x = 2;
  linear_backward({nullptr, 0, 40}, {nullptr, 0, 50}, true, precision(), rule, {W, m, {}, {}},
                  {b, bm, {}, {}}, {});
  for (float x : W.values()) ASSERT_FLOAT_EQ(x, -.09f);
  for (float x : m.values()) ASSERT_FLOAT_EQ(x, .9f);
  for (float x : b.values()) ASSERT_FLOAT_EQ(x, -.18f);
  linear_forward({nullptr, 0, 40}, W, b.row(0), true, precision(), {nullptr, 0, 50});
}

// The momentum of a weight without a gradient comes to an end and does not become a subnormal number.
TEST_P(Products, MomentumFadesAway) {
  Random random(4, Purpose::test);
  const unsigned before = _mm_getcsr();
  for (const Optimiser optimiser : {Optimiser::sgd, Optimiser::adamw})
    for (const int count : {1, 4}) {
      set_threads(count);
      UpdateRule rule;
      rule.optimiser = optimiser;
      const Strided dY(20, 90, 0, random);
      const Matrix<float> X(20, 70);  // zero, so only the biases get a gradient
      Matrix<float> dX(20, 70), W(70, 90), m(70, 90), v(70, 90), b(1, 90), bm(1, 90), bv(1, 90);
      for (float& x : m.values()) x = 1e-35f * random.uniform(-1, 1);
      const bool sgd = optimiser == Optimiser::sgd;
      for (rule.step = 1; rule.step <= 120; ++rule.step)
        linear_backward(X, dY.view, true, precision(), rule, {W, m, sgd ? MatrixView<float>() : v, {}},
                        {b, bm, sgd ? MatrixView<float>() : bv, {}}, dX);
      for (const float x : m.values())
        ASSERT_TRUE(std::abs(x) < 2e-37f && std::fpclassify(x) != FP_SUBNORMAL) << x;
      for (const float x : bm.values()) ASSERT_TRUE(std::isnormal(x));
    }
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, before & ~0x3fu) << "the caller's arithmetic has changed";
  set_threads(0);
}

TEST_P(Products, NotANumberIsSeen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t n : {1u, 20u}) {
    Matrix<float> X(n, 33), W(33, 17), Y(n, 17);
    for (float& x : X.values()) x = 1;
    W(32, 16) = nan;
    linear_forward(X, W, {}, false, precision(), Y);
    for (std::size_t r = 0; r < n; ++r) {
      EXPECT_TRUE(std::isnan(Y(r, 16)));
      for (std::size_t j = 0; j < 16; ++j) EXPECT_EQ(Y(r, j), 0);
    }
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return fmt::format("{}_{}", isa_name(std::get<0>(info.param)),
                     std::get<1>(info.param) == Precision::f32 ? "f32" : "bf16");
}
INSTANTIATE_TEST_SUITE_P(Everywhere, Products,
                         testing::Combine(testing::Values(Isa::plain, Isa::avx2, Isa::avx512, Isa::bf16,
                                                          Isa::amx),
                                          testing::Values(Precision::f32, Precision::bf16)),
                         case_name);

TEST(RoundBf16, TiesGoToEven) {
  EXPECT_EQ(reference::round_bf16(1.f), 1.f);
  EXPECT_EQ(reference::round_bf16(1.f + 0x1p-8f), 1.f);
  EXPECT_EQ(reference::round_bf16(1.f + 0x3p-8f), 1.f + 0x1p-6f);
  EXPECT_EQ(reference::round_bf16(1.f + 0x1.02p-8f), 1.f + 0x1p-7f);
  EXPECT_EQ(reference::round_bf16(-std::numeric_limits<float>::infinity()),
            -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(reference::round_bf16(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Machine, NamesAndRefusals) {
  for (Isa candidate : {Isa::plain, Isa::avx2, Isa::avx512, Isa::bf16, Isa::amx}) {
    EXPECT_EQ(parse_isa(isa_name(candidate)), candidate);
    if (has_isa(candidate)) continue;
    EXPECT_THROW(choose_isa(candidate), Error);
  }
  EXPECT_FALSE(parse_isa("mmx"));
  EXPECT_TRUE(has_isa(Isa::plain));
  EXPECT_FALSE(isa_reason().empty());
}

}  // namespace
}  // namespace lacuna
