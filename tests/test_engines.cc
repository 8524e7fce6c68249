// Every engine against the naive one, in float, on random shapes, gaps and labels.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "base/random.h"
#include "base/threads.h"
#include "ops/device.h"
#include "ops/ops.h"
#include "random_batch.h"

namespace lacuna {
namespace {

// Matrices in the memory of an engine, and what comes back from there.
class Bench {
 public:
  explicit Bench(const Ops<float>& engine) : ops(engine) {}
  const Ops<float>& ops;

  MatrixView<float> in(const Matrix<float>& matrix) { return send(matrix, floats_); }
  MatrixView<const std::uint8_t> in(const Matrix<std::uint8_t>& matrix) { return send(matrix, bytes_); }
  MatrixView<const std::int32_t> in(const Matrix<std::int32_t>& matrix) { return send(matrix, slots_); }
  template <class U>
  std::span<const U> in(const std::vector<U>& values) {
    static_assert(sizeof(U) % 4 == 0);
    Matrix<std::int32_t> words(1, values.size() * sizeof(U) / 4);
    if (!values.empty()) std::memcpy(words.data(), values.data(), values.size() * sizeof(U));
    return {reinterpret_cast<const U*>(send(words, slots_).data), values.size()};
  }
  // A result of the call; compared with that of another engine.
  MatrixView<float> out(const Matrix<float>& start) {
    results_.push_back(in(start));
    return results_.back();
  }
  double* value() {
    values_.push_back(ops.allocate_mapped(sizeof(double)));
    return static_cast<double*>(values_.back().get());
  }
  std::vector<Matrix<float>> results() {
    ops.wait(ops.mark());
    std::vector<Matrix<float>> all;
    for (const auto& view : results_) download<float>(ops, view, all.emplace_back(view.rows, view.cols));
    for (const auto& each : values_)
      all.emplace_back(1, 1)(0, 0) = static_cast<float>(*static_cast<double*>(each.get()));
    return all;
  }

 private:
  template <class U>
  MatrixView<U> send(const Matrix<U>& matrix, std::vector<EngineMatrix<U>>& owners) {
    auto& array = owners.emplace_back(ops, matrix.rows(), matrix.cols());
    upload<U>(ops, matrix, array);
    return array;
  }
  std::vector<EngineMatrix<float>> floats_;
  std::vector<EngineMatrix<std::uint8_t>> bytes_;
  std::vector<EngineMatrix<std::int32_t>> slots_;
  std::vector<MatrixView<float>> results_;
  std::vector<std::shared_ptr<void>> values_;
};

struct Subject {
  const char* name;
  Precision precision;
  float tolerance;  // of the functions with products; the others are held to 2e-5
};
std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << subject.name;
}

// The engine, or null where there is none: then the test says so.
std::unique_ptr<Ops<float>> engine_of(const Subject& subject) {
  if (std::string(subject.name).starts_with("cuda"))
    return cuda_absence().empty() ? make_cuda_ops(0, subject.precision) : nullptr;
  return make_cpu_ops(subject.precision);
}

class Agreement : public testing::TestWithParam<std::tuple<Subject, int>> {
 protected:
  Random random{static_cast<std::uint64_t>(std::get<1>(GetParam()) + 100), Purpose::test};
  Subject subject = std::get<0>(GetParam());
  std::unique_ptr<Ops<float>> engine = engine_of(subject), naive = make_reference_ops<float>();

  void SetUp() override {
    if (engine != nullptr) return;
    if (std::getenv("LACUNA_REQUIRE_GPU") != nullptr) FAIL() << "no GPU here: " << cuda_absence();
    GTEST_SKIP() << "no GPU here: " << cuda_absence();
  }
  // What call(bench) leaves must be the same.
  template <class F>
  void compare(const char* what, F&& call, float tolerance = 2e-5f) {
    Bench fast(*engine), slow(*naive);
    call(fast);
    call(slow);
    const auto a = fast.results(), b = slow.results();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t k = 0; k < a.size(); ++k) {
      // Relative to the matrix: single elements may be differences of large numbers.
      float largest = 0;
      for (const float x : b[k].values()) largest = std::max(largest, std::abs(x));
      for (std::size_t at = 0; at < a[k].values().size(); ++at)
        ASSERT_NEAR(a[k].values()[at], b[k].values()[at], tolerance * (1 + largest))
            << what << ", result " << k << ", element " << at << " of " << a[k].rows() << " x "
            << a[k].cols();
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Rounds, Agreement,
                         testing::Combine(testing::Values(Subject{"cpu", Precision::f32, 2e-5f},
                                                          Subject{"cuda", Precision::f32, 2e-5f},
                                                          Subject{"cuda-bf16", Precision::bf16, 2e-2f}),
                                          testing::Range(0, kRounds)));

TEST_P(Agreement, Losses) {
  const Gaps gaps(random);
  const std::size_t d = 1 + random.below(40);
  const Matrix<float> logits = random_matrix<float>(random, gaps.b, gaps.c, 2);
  const Matrix<float> start = random_matrix<float>(random, gaps.b, gaps.c);
  const auto labels = [&](Bench& bench, bool weighted = false) {
    LabelRows rows{bench.in(gaps.Y), bench.in(gaps.G), bench.in(gaps.rows)};
    if (weighted) rows.weights = {bench.in(gaps.weights).data, gaps.c};
    return rows;
  };
  Matrix<float> guesses(gaps.b + 3, gaps.c);
  for (float& g : guesses.values()) g = random.uniform();
  Matrix<float> views = random_matrix<float>(random, gaps.stack, gaps.c);
  for (const bool weighted : {false, true}) {
    for (const BceForm form : {BceForm::logarithm, BceForm::softplus})
      for (const BceDivisor divisor : {BceDivisor::known, BceDivisor::all})
        compare("bce", [&](Bench& e) {
          e.ops.bce(e.in(logits), labels(e, weighted), {.form = form, .divisor = divisor}, 2, e.out(start),
                    e.value());
        });
    compare("guess", [&](Bench& e) {
      e.ops.guess_loss(e.in(logits), labels(e, weighted), e.in(guesses), 2, e.out(start), e.value());
    });
    compare("view", [&](Bench& e) {
      const auto out = e.in(views), used = e.out(Matrix<float>(gaps.b, gaps.c));
      e.ops.view_loss(e.in(logits), labels(e, weighted), e.in(gaps.slots), .9, 3, out, e.value());
      e.ops.collect(out, e.in(gaps.slots), Share::sum, false, used);  // rows without a slot are undefined
    });
  }
  const Matrix<float> Z = random_matrix<float>(random, gaps.b, d),
                      dZ = random_matrix<float>(random, gaps.b, d);
  for (const bool normalise : {true, false})
    compare("graph", [&](Bench& e) {
      e.ops.graph_loss(e.in(Z), labels(e), {.eta = 3, .normalise = normalise, .pairwise = !normalise}, 2,
                       e.out(dZ), e.value());
    });
  const Matrix<float> S = random_matrix<float>(random, gaps.stack, d),
                      O = random_matrix<float>(random, gaps.stack, d),
                      dS = random_matrix<float>(random, gaps.stack, d);
  for (const ContrastPositives positives : {ContrastPositives::others, ContrastPositives::self})
    for (const ContrastCount count : {ContrastCount::views, ContrastCount::pairs})
      compare("contrast", [&](Bench& e) {
        const ContrastSettings settings{
            .share = positives == ContrastPositives::self ? Share::mean : Share::sum,
            .count = count,
            .positives = positives};
        e.ops.contrast_loss(e.in(S), e.in(O), e.in(gaps.slots), settings, 2, e.out(dS), e.out(dS), e.value());
      });
  compare("instance",
          [&](Bench& e) { e.ops.instance_loss(e.in(S), e.in(gaps.slots), .5, 2, e.out(dS), e.value()); });
  compare("reconstruction", [&](Bench& e) {
    const ReconstructionJob<float> jobs[] = {{e.in(Z), e.out(dZ), e.value()},
                                             {e.in(S), e.out(dS), e.value()}};
    e.ops.reconstruction_loss(jobs, gaps.b, 2);
  });
  compare("ranking",
          [&](Bench& e) { e.ops.ranking_loss(e.in(logits), labels(e), 4, 2, e.out(start), e.value()); });
  // Embeddings with more rows and columns than a tile of a product.
  const std::size_t rows = 1 + random.below(150), width = 1 + random.below(150);
  const Matrix<float> A = random_matrix<float>(random, rows, width, .3),
                      E = random_matrix<float>(random, rows, width, .3),
                      dA = random_matrix<float>(random, rows, width);
  for (const double orthogonal : {0., .5})
    compare("agreement", [&](Bench& e) {
      e.ops.agreement_loss(e.in(A), e.in(E), orthogonal, 2, e.out(dA), e.out(dA), e.value());
    });
}

TEST_P(Agreement, Rows) {
  const Gaps gaps(random);
  const std::size_t n = gaps.stack, d = 1 + random.below(150);
  const Matrix<float> X = random_matrix<float>(random, n, d), O = random_matrix<float>(random, n, d),
                      start = random_matrix<float>(random, n + 1, d),
                      F = random_matrix<float>(random, gaps.b, d);
  std::vector<std::uint32_t> rows;
  std::vector<Fragment> fragments;
  std::vector<float> factors;
  for (std::size_t r = 0; r <= n; ++r) {
    rows.push_back(static_cast<std::uint32_t>(random.below(n)));
    const auto begin = static_cast<std::uint32_t>(random.below(d));
    fragments.push_back({begin, begin + static_cast<std::uint32_t>(random.below(d - begin + 1))});
    factors.push_back(random.uniform());
  }
  const auto cut = [](auto list, std::size_t count) {
    return decltype(list)(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count));
  };
  for (const int kind : {0, 1, 2, 3})
    compare("gather", [&](Bench& e) {
      GatherJob<float> job{
          .source = RowSource(e.in(X)), .rows = e.in(cut(rows, kind == 3 ? n : n + 1)), .out = e.out(start)};
      if (kind > 0) job.hidden = e.in(fragments);
      if (kind == 2) job.factors = e.in(factors);
      const GatherJob<float> jobs[] = {
          job, {.source = RowSource(e.in(O)), .rows = e.in(cut(rows, n)), .out = e.out(O)}};
      e.ops.gather(jobs);
    });
  for (const Share share : {Share::sum, Share::mean})
    for (const bool add : {false, true}) {
      compare("collect", [&](Bench& e) { e.ops.collect(e.in(X), e.in(gaps.slots), share, add, e.out(F)); });
      compare("spread", [&](Bench& e) { e.ops.spread(e.in(F), e.in(gaps.slots), share, add, e.out(X)); });
    }
  compare("dropout", [&](Bench& e) {
    const DropoutJob<float> jobs[] = {{{3, 1, 4, e.in(cut(rows, n))}, e.out(X)},
                                      {{3, 1, 5, e.in(cut(rows, gaps.b))}, e.out(F)}};
    e.ops.dropout(.4, jobs);
  });
  for (const Activation f : {Activation::relu, Activation::leaky, Activation::sigmoid, Activation::centred}) {
    compare("activation", [&](Bench& e) { e.ops.activate_forward(f, e.in(X), e.out(O)); });
    compare("activation in place", [&](Bench& e) {
      const auto Y = e.out(X);
      e.ops.activate_forward(f, Y, Y);
    });
    compare("activation backward", [&](Bench& e) { e.ops.activate_backward(f, e.in(X), e.out(O)); });
  }
  for (const bool add : {false, true}) compare("copy", [&](Bench& e) { e.ops.copy(e.in(X), add, e.out(O)); });
  compare("zero", [&](Bench& e) { e.ops.zero(e.out(O).top(n)); });
  compare("gate", [&](Bench& e) { e.ops.gate_forward(e.in(X), e.in(O), e.out(O)); });
  compare("gate backward",
          [&](Bench& e) { e.ops.gate_backward(e.in(X), e.in(O), e.in(X), e.out(O), e.out(O)); });
}

UpdateRule rule_for(Random& random) {
  UpdateRule rule;
  constexpr Optimiser kAll[] = {Optimiser::sgd, Optimiser::adam, Optimiser::adamw,
                                Optimiser::rmsprop};
  rule.optimiser = kAll[random.below(4)];
  rule.rate = .01;
  // rmsprop divides by √v, which may be next to 0 here: a small ε would amplify the rounding of products.
  rule.epsilon = rule.optimiser == Optimiser::rmsprop ? .1 : 1e-3;
  rule.weight_decay = .1;
  rule.average = .9;
  rule.step = 3;
  return rule;
}

// A parameter with all of its state, of which the rule decides what is used; all of it is a result.
ParameterView<float> parameter(Bench& e, const Matrix<float>& start, bool decay) {
  Matrix<float> squares = start;
  for (float& x : squares.values()) x = x * x;
  const auto value = e.out(start), first = e.out(start), second = e.out(squares), mean = e.out(start);
  return {value, first, second, mean, decay};
}

TEST_P(Agreement, Norms) {
  const std::size_t n = 1 + random.below(90), d = 5 + random.below(150);
  const Matrix<float> X = random_matrix<float>(random, n, d), O = random_matrix<float>(random, n, d),
                      gamma = random_matrix<float>(random, 1, d), beta = random_matrix<float>(random, 1, d);
  const UpdateRule rule = rule_for(random);
  for (const std::size_t missing : {0, 5})
    compare(
        "batch norm",
        [&](Bench& e) {
          const auto g = parameter(e, gamma, false), b = parameter(e, beta, false);
          const auto running = e.out(Matrix<float>(2, d)), saved = e.out(Matrix<float>(2, d)), Y = e.out(O),
                     U = e.in(X);
          const NormForward<float> there{U, g.value, b.value, saved, Y, running, missing};
          e.ops.batch_norm_forward({&there, 1}, {});
          const auto dY = e.out(O);
          if (missing > 0) e.ops.zero(dY.slice(n - 1, 1));
          const NormBackward<float> back{U, saved, g, b, dY, missing};
          if (n > 2) e.ops.batch_norm_backward({&back, 1}, rule);
          const NormForward<float> apply{U, g.value, b.value, {}, e.out(O), running, 0};
          e.ops.batch_norm_apply({&apply, 1}, {});
        },
        2e-4f);
  compare(
      "layer norm",
      [&](Bench& e) {
        const auto g = parameter(e, gamma, false), b = parameter(e, beta, false);
        const auto saved = e.out(Matrix<float>(n, 2)), Y = e.out(O), U = e.in(X), dY = e.out(O);
        const NormForward<float> there{U, g.value, b.value, saved, Y};
        e.ops.layer_norm_forward({&there, 1}, 1e-5);
        const NormBackward<float> back{U, saved, g, b, dY};
        e.ops.layer_norm_backward({&back, 1}, rule);
      },
      1e-4f);
}

// Layers of all widths, several at once, with rows from none to more than one tile.
TEST_P(Agreement, Layers) {
  const int round = std::get<1>(GetParam());
  const std::size_t shapes[][3] = {{5, 7, 3},      {64, 100, 80},  {65, 130, 260}, {0, 40, 50},
                                   {128, 512, 64}, {80, 300, 515}, {200, 64, 33},  {300, 70, 90},
                                   {72, 1000, 900}};  // more tiles than a GPU has multiprocessors
  const UpdateRule rule = rule_for(random);
  std::vector<Matrix<float>> Xs, Ws, bs, dYs;
  std::vector<std::uint32_t> rows(400);
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = static_cast<std::uint32_t>(random.below(5000));
  for (int k = 0; k < 3; ++k) {
    const auto& shape = shapes[(round + k * 3) % std::size(shapes)];
    Xs.push_back(random_matrix<float>(random, shape[0], shape[1]));
    for (float& x : Xs.back().values()) x = std::max(x, 0.f);
    Ws.push_back(random_matrix<float>(random, shape[1], shape[2], .1));
    bs.push_back(random_matrix<float>(random, 1, shape[2]));
    dYs.push_back(random_matrix<float>(random, shape[0], shape[2], .1));
  }
  // The updates divide by roots of squares: rounding of small gradients is amplified where these are small.
  const float tolerance = subject.tolerance;
  for (const double dropout : {0., .4})
    compare(
        "forward",
        [&](Bench& e) {
          std::vector<ForwardJob<float>> jobs;
          for (std::size_t k = 0; k < Xs.size(); ++k) {
            auto& job = jobs.emplace_back(ForwardJob<float>{.X = e.in(Xs[k]),
                                                            .W = e.in(Ws[k]),
                                                            .b = e.in(bs[k]),
                                                            .relu = k % 2 == 0,
                                                            .Y = e.out(dYs[k])});
            job.dropout = dropout;
            const std::size_t dropped =
                Xs[k].rows() > 2 ? Xs[k].rows() - 1 : Xs[k].rows();  // not the last row
            job.draws = {
                3, 1, static_cast<std::uint32_t>(k),
                e.in(std::vector(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(dropped)))};
          }
          e.ops.linear_forward(jobs);
        },
        tolerance);
  for (const bool with_dX : {true, false})
    compare(
        "backward",
        [&](Bench& e) {
          std::vector<BackwardJob<float>> jobs;
          for (std::size_t k = 0; k < Xs.size(); ++k) {
            auto& job = jobs.emplace_back(BackwardJob<float>{.X = e.in(Xs[k]),
                                                             .dY = e.in(dYs[k]),
                                                             .mask_by_input = k != 1,
                                                             .W = parameter(e, Ws[k], true),
                                                             .b = parameter(e, bs[k], false)});
            if (with_dX) job.dX = e.out(Xs[k]);
            if (k == 2) job.dropout = .4, job.dropped = Xs[k].rows() / 2;
          }
          e.ops.linear_backward(jobs, rule);
        },
        tolerance);
}

// Layers one behind the other as networks hand them out, with forms of what they hand to each other, twice: a form of the
// first step must not reach into the second. Two chains of other rows go together; one has no rows in the second step.
TEST_P(Agreement, Chains) {
  const int round = std::get<1>(GetParam());
  const std::size_t rows[2][2] = {{1 + random.below(128), 1 + random.below(128)}, {1 + random.below(150), 0}};
  const std::size_t widths[] = {4 + 4 * random.below(80), 4 + 4 * random.below(80), 68 + 4 * random.below(70), 4 * (1 + random.below(20))};
  constexpr std::size_t kDepth = 3;
  UpdateRule rule = rule_for(random);
  rule.rate = 1e-9;  // the second step has the first one's signs
  const bool plain = round % 2 == 0;  // weights and momentum alone
  if (plain) rule.optimiser = Optimiser::sgd, rule.average = 0;
  std::vector<Matrix<float>> Ws, bs, sources, ends;
  std::vector<std::uint32_t> chosen(150);
  for (auto& r : chosen) r = static_cast<std::uint32_t>(random.below(160));
  for (std::size_t c = 0; c < 2; ++c) {
    sources.push_back(random_matrix<float>(random, 160, widths[0]));
    ends.push_back(random_matrix<float>(random, 150, widths[kDepth], 1000));
    for (std::size_t l = 0; l < kDepth; ++l) {
      Ws.push_back(random_matrix<float>(random, widths[l], widths[l + 1], l == 0 ? .1 : .01));
      bs.push_back(random_matrix<float>(random, 1, widths[l + 1]));
      for (float& x : bs.back().values()) x = x > 0 ? 12.f : -12.f;  // no sign of a hidden number depends on rounding
    }
  }
  compare(
      "chains",
      [&](Bench& e) {
        std::vector<ParameterView<float>> W, b;
        for (std::size_t k = 0; k < Ws.size(); ++k) {
          W.push_back(parameter(e, Ws[k], true));
          b.push_back(parameter(e, bs[k], false));
          for (auto* p : {&W.back(), &b.back()})
            if (plain) p->second = p->mean = {};
        }
        std::vector<MatrixView<float>> hidden[2], gradients[2];
        std::vector<FormPointer> forms[2], back_forms[2];
        MatrixView<const float> from[2];
        for (std::size_t c = 0; c < 2; ++c) {
          from[c] = e.in(sources[c]);
          for (std::size_t l = 0; l <= kDepth; ++l) {
            hidden[c].push_back(e.out(Matrix<float>(150, widths[l])));
            gradients[c].push_back(l == kDepth ? e.in(ends[c]) : e.out(Matrix<float>(150, widths[l])));
            forms[c].push_back(e.ops.on_host() ? nullptr : e.ops.step_form(129, widths[l]));
            back_forms[c].push_back(e.ops.on_host() ? nullptr : e.ops.step_form(129, widths[l]));
          }
        }
        const auto picked = e.in(chosen);
        for (const auto& step : rows) {
          std::vector<GatherJob<float>> gathers;
          for (std::size_t c = 0; c < 2; ++c)
            gathers.push_back({.source = RowSource(from[c]),
                               .rows = picked.first(step[c]),
                               .out = hidden[c][0].top(step[c]),
                               .form = forms[c][0].get()});
          e.ops.gather(gathers);
          for (std::size_t l = 0; l < kDepth; ++l) {
            std::vector<ForwardJob<float>> jobs;
            for (std::size_t c = 0; c < 2; ++c) {
              const std::size_t k = c * kDepth + l;
              jobs.push_back({.X = hidden[c][l].top(step[c]),
                              .X_form = forms[c][l].get(),
                              .W = W[k].value,
                              .b = b[k].value,
                              .relu = l + 1 < kDepth,
                              .Y = hidden[c][l + 1].top(step[c]),
                              .Y_form = forms[c][l + 1].get()});
            }
            e.ops.linear_forward(jobs);
          }
          for (std::size_t l = kDepth; l-- > 0;) {
            std::vector<BackwardJob<float>> jobs;
            for (std::size_t c = 0; c < 2; ++c) {
              const std::size_t k = c * kDepth + l;
              jobs.push_back({.X = hidden[c][l].top(step[c]),
                              .X_form = forms[c][l].get(),
                              .dY = gradients[c][l + 1].top(step[c]),
                              .dY_form = back_forms[c][l + 1].get(),
                              .mask_by_input = l > 0,
                              .W = W[k],
                              .b = b[k],
                              .dX = gradients[c][l].top(step[c]),
                              .dX_form = back_forms[c][l].get()});
            }
            e.ops.linear_backward(jobs, rule);
          }
        }
      },
      5 * subject.tolerance);
}

}  // namespace
}  // namespace lacuna
