// MTD as a method: presets, the same bits for any number of threads, nothing allocated in a step, saving what
// prediction needs, and the channels doing what they are for on data whose factors are known.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/threads.h"
#include "data/simulate.h"
#include "methods/model.h"
#include "network_cases.h"
#include "ops/machine.h"

// Counts every allocation of this program while `counting` is set.
namespace {
std::atomic<bool> counting{false};
std::atomic<long> allocations{0};
[[maybe_unused]] void* counted(void* memory) {
  if (counting) ++allocations;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace
#if !defined(__SANITIZE_ADDRESS__)
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t bytes) {
  return counted(__libc_malloc(bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = counted(__libc_memalign(alignment, bytes));
  return 0;
}
}
#endif

namespace lacuna {
namespace {

std::vector<float> all_numbers(Network& network) {
  std::vector<float> all;
  network.visit([&](const std::string&, ParameterView<float> p, bool) {
    for (const auto& part : {p.value, p.first, p.second, p.mean})
      for (std::size_t i = 0; i < part.rows; ++i)
        all.insert(all.end(), part.row(i).begin(), part.row(i).end());
  });
  network.visit_buffers([&](const std::string&, MatrixView<float> buffer, bool) {
    for (std::size_t i = 0; i < buffer.rows; ++i)
      all.insert(all.end(), buffer.row(i).begin(), buffer.row(i).end());
  });
  return all;
}

const char* kPresetNames[] = {"best", "repaired", "authors", "paper"};

// Wide enough that work is split over threads.
MtdOptions medium_options(const std::string& preset) {
  return small_options(preset,
                       {{"encoder-widths", "0.8d,150"}, {"decoder-widths", "90,0.8d"}, {"embedding", "70"}});
}

TEST(MtdNetwork, SameBitsForAnyNumberOfThreads) {
  const Items items = random_items({.rows = 90, .columns = {130, 210, 70}, .labels = 33}, 2);
  const auto rows = all_rows(items);
  for (const char* preset : kPresetNames) {
    std::vector<float> first;
    for (const int count : {1, 2, 4}) {
      set_threads(count);
      MtdNetwork<float> network(medium_options(preset), network_shape_of(items), 3, make_cpu_ops(Precision::f32));
      network.keep({.second = true, .mean = true});
      UpdateRule rule;
      rule.optimiser = Optimiser::adamw;
      rule.rate = 1e-3;
      rule.average = .9;
      for (std::uint32_t step = 0; step < 3; ++step) {
        rule.step = step + 1;
        network.step({&items, std::span(rows).subspan(step * 7, 60), 5, 0, step}, rule);
      }
      const auto numbers = all_numbers(network);
      if (first.empty()) first = numbers;
      EXPECT_TRUE(numbers == first) << preset << " with " << count << " threads";
    }
  }
  set_threads(0);
}

// Threads share the blocks of rows, or the products of a block where blocks are few.
TEST(MtdNetwork, PredictionsHaveTheSameBitsForAnyNumberOfThreads) {
  const Items items =
      with_background(random_items({.rows = 2700, .columns = {40, 25}, .labels = 9}, 2), 0, true);
  for (const char* preset : {"best", "authors"})
    for (const Precision precision : {Precision::f32, Precision::bf16}) {
      MtdNetwork<float> network(medium_options(preset), network_shape_of(items), 3, make_cpu_ops(precision));
      Matrix<float> first;
      for (const int count : {1, 2, 4}) {
        set_threads(count);
        Matrix<float> scores(items.rows(), items.labels());
        network.predict(items, scores);
        if (first.empty()) first = scores;
        EXPECT_TRUE(std::ranges::equal(scores.values(), first.values()))
            << preset << ", " << count << " threads";
      }
    }
  set_threads(0);
}

TEST(MtdNetwork, AStepAllocatesNothing) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer owns the allocator";
#endif
  const Items items =
      with_background(random_items({.rows = 90, .columns = {130, 210, 70}, .labels = 33}, 2), 1, true);
  const auto rows = all_rows(items);
  set_threads(1);  // with several, one may meet its first chunk of a kind, and take its scratch memory, late
  for (const char* preset : kPresetNames) {
    MtdNetwork<float> network(medium_options(preset), network_shape_of(items), 3, make_cpu_ops(Precision::f32));
    network.keep({});
    const UpdateRule rule{.rate = 1e-3};
    // The first steps size everything, per thread too.
    for (std::uint32_t step = 0; step < 6; ++step) network.step({&items, rows, 5, 0, step}, rule);
    allocations = 0;
    counting = true;
    for (std::uint32_t step = 20; step < 25; ++step)
      network.step({&items, std::span(rows).first(80 + step % 3), 5, 1, step}, rule);
    counting = false;
    EXPECT_EQ(allocations.load(), 0) << preset;
  }
  set_threads(0);
}

TEST(MtdNetwork, PredictsRowsWithAnyViewsOrNone) {
  Items items = random_items({.rows = 20}, 3);
  for (std::size_t v = 0; v < items.views(); ++v) items.W(4, v) = 0;
  MtdNetwork<float> network(small_options("best", {{"classifier-bias", "-4"}}), network_shape_of(items), 3,
                            make_cpu_ops(Precision::f32));
  Matrix<float> scores(20, items.labels());
  network.predict(items, scores);
  for (std::size_t j = 0; j < items.labels(); ++j) EXPECT_NEAR(scores(4, j), 1 / (1 + std::exp(4.f)), 1e-6);
  for (const float score : scores.values()) EXPECT_TRUE(score > 0 && score < 1);
  // A row's scores do not depend on the rows beside it.
  Items one;
  for (const auto& X : items.X) {
    one.X.emplace_back(1, X.cols());
    std::ranges::copy(X.row(7), one.X.back().row(0).begin());
  }
  one.W = Matrix<std::uint8_t>(1, items.views());
  std::ranges::copy(items.W.row(7), one.W.row(0).begin());
  Matrix<float> alone(1, items.labels());
  network.predict(one, alone);
  for (std::size_t j = 0; j < items.labels(); ++j) EXPECT_NEAR(alone(0, j), scores(7, j), 1e-6);
}

// Soft labels: used from their epoch on, part of the state that a resumed run needs.
TEST(MtdNetwork, GuessesStartAtTheirEpochAndAreState) {
  const Items items = random_items({.rows = 30, .missing_labels = .6}, 3);
  const auto rows = all_rows(items);
  const auto options = small_options("best", {{"guess-weight", "0.3"}, {"guess-from", "1"}});
  MtdNetwork<float> network(options, network_shape_of(items), 3, make_cpu_ops(Precision::f32));
  network.keep({});
  const UpdateRule rule{.rate = .05};
  const auto has_guess = [](const Losses& losses) {
    return std::ranges::any_of(losses, [](const auto& entry) { return std::string(entry.name) == "guess"; });
  };
  EXPECT_FALSE(has_guess(network.step({&items, rows, 1, 0, 0}, rule)));
  EXPECT_TRUE(has_guess(network.step({&items, rows, 1, 1, 1}, rule)));
  // Copy the state into a fresh network in the middle of the epoch: the next step gives the same bits.
  MtdNetwork<float> other(options, network_shape_of(items), 99, make_cpu_ops(Precision::f32));
  other.keep({});
  std::vector<Matrix<float>> state;
  const auto save = [&](MatrixView<float> m) { state.emplace_back(m.rows, m.cols).copy_from(m); };
  network.visit([&](const std::string&, ParameterView<float> p, bool) { save(p.value), save(p.first); });
  network.visit_buffers([&](const std::string&, MatrixView<float> m, bool) { save(m); });
  std::size_t at = 0;
  const auto put = [&](MatrixView<float> m) {
    const Matrix<float>& from = state[at++];
    for (std::size_t i = 0; i < m.rows; ++i) std::ranges::copy(from.row(i), m.row(i).begin());
  };
  other.visit([&](const std::string&, ParameterView<float> p, bool) { put(p.value), put(p.first); });
  other.visit_buffers([&](const std::string&, MatrixView<float> m, bool) { put(m); });
  const double expected = network.step({&items, rows, 1, 1, 2}, rule).total();
  EXPECT_EQ(other.step({&items, rows, 1, 1, 2}, rule).total(), expected);
  EXPECT_TRUE(all_numbers(network) == all_numbers(other));
}

struct Mean {
  double sum = 0, count = 0;
  void add(double x) { sum += x, ++count; }
  double value() const { return count > 0 ? sum / count : 0; }
};

// Trains on data with planted shared and private factors and measures cosines between channels of the same
// item.
struct Channels {
  double shared_shared = 0;  // between the shared embeddings of different views
  double others = 0;         // |cos| of all pairs that should be apart
};
// Four factors that every view sees and that decide the labels, three of each view alone; X_v = [shared, own]
// A_v.
Items planted_items(std::size_t n) {
  Random random(8, Purpose::test);
  const std::vector<std::size_t> columns = {20, 24, 16};
  constexpr std::size_t kShared = 4, kOwn = 3, kLabels = 6;
  const auto normals = [&](std::size_t rows, std::size_t cols) {
    Matrix<float> matrix(rows, cols);
    for (float& value : matrix.values()) value = random.normal();
    return matrix;
  };
  const Matrix<float> shared = normals(n, kShared), B = normals(kShared, kLabels);
  Items items;
  items.W = Matrix<std::uint8_t>(n, columns.size());
  items.Y = Matrix<float>(n, kLabels);
  items.G = Matrix<std::uint8_t>(n, kLabels);
  std::ranges::fill(items.W.values(), std::uint8_t{1});
  std::ranges::fill(items.G.values(), std::uint8_t{1});
  for (const std::size_t d : columns) {
    const Matrix<float> own = normals(n, kOwn), A = normals(kShared + kOwn, d);
    auto& X = items.X.emplace_back(n, d);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < d; ++j) {
        for (std::size_t f = 0; f < kShared; ++f) X(i, j) += shared(i, f) * A(f, j);
        for (std::size_t f = 0; f < kOwn; ++f) X(i, j) += own(i, f) * A(kShared + f, j);
        X(i, j) = X(i, j) / std::sqrt(7.f) + .1f * random.normal();
      }
  }
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < kLabels; ++j) {
      float sum = 0;
      for (std::size_t f = 0; f < kShared; ++f) sum += shared(i, f) * B(f, j);
      items.Y(i, j) = sum > 0 ? 1.f : 0.f;
    }
  return items;
}

Channels train_channels(const std::string& beta) {
  const Items items = planted_items(400);
  const auto options = small_options(
      "repaired", {{"encoder-widths", "32"}, {"decoder-widths", "32"}, {"embedding", "16"}, {"beta", beta}});
  MtdNetwork<float> network(options, network_shape_of(items), 1, make_cpu_ops(Precision::f32));
  network.keep({});
  const auto rows = all_rows(items);
  const UpdateRule rule{.rate = .05};
  for (std::uint32_t step = 0; step < 300; ++step)
    network.step({&items, std::span(rows).subspan(step % 4 * 100, 100), 1, step / 4, step}, rule);
  Mean together, apart;
  for (std::size_t row = 0; row < 100; ++row) {
    const Matrix<float> similarity = network.channel_similarity(items, row);
    for (std::size_t a = 0; a < 6; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (a < 3) {
          together.add(static_cast<double>(similarity(a, b)));
        } else {
          apart.add(std::abs(static_cast<double>(similarity(a, b))));
        }
  }
  return {together.value(), apart.value()};
}

TEST(MtdNetwork, ContrastSeparatesSharedFromPrivate) {
  const Channels with = train_channels("0.01"), without = train_channels("0");
  EXPECT_GT(with.shared_shared, .7) << "shared channels of different views should agree";
  EXPECT_LT(with.others, .15) << "private channels should be apart from everything";
  EXPECT_GT(without.others, .4) << "without the loss they are not: it does this, not the data";
  EXPECT_LT(without.shared_shared - without.others, .3);
}

TEST(Mtd, PresetsDifferAndSingleSettingsComeAfter) {
  EXPECT_EQ(Model().method().traits().name, "lacuna");
  EXPECT_EQ(Model().preset(), "best");
  EXPECT_EQ(Model().options().find("channels")->text(), "1");
  EXPECT_EQ(Model("lacuna").options().find("prepare")->text(), "root-pca");
  EXPECT_THROW(Model("lacuna").set_preset("authors"), Error);
  Model model("mtd");
  EXPECT_EQ(model.preset(), "repaired");
  EXPECT_EQ(model.options().find("reconstruction-target")->text(), "clean");
  model.set_preset("authors");
  EXPECT_EQ(model.options().find("channels")->text(), "2");
  EXPECT_EQ(model.options().find("leaky-prepare")->text(), "false") << "leaks belong to the protocol";
  EXPECT_EQ(model.options().find("optimiser")->text(), "sgd");
  EXPECT_EQ(model.options().find("end-norm")->text(), "batch");
  EXPECT_EQ(model.options().find("prepare")->text(), "zscore");
  model.options().set("alpha", "0.5", "test");
  EXPECT_EQ(model.options().find("alpha")->text(), "0.5");
  EXPECT_THROW(model.set_preset("autors"), Error);
  EXPECT_THROW(model.set_preset("best"), Error);
  model.set_preset("repaired");
  EXPECT_EQ(model.options().json(), Model("mtd").options().json());
}

TEST(Presets, ANameSelectsItsMethod) {
  for (const char* name : {"best", "paired", "distilled"}) EXPECT_EQ(method_of_preset(name), "lacuna");
  for (const char* name : {"repaired", "authors", "paper"}) EXPECT_EQ(method_of_preset(name), "mtd");
  EXPECT_THROW(method_of_preset("worst"), Error);
}

TEST(Mtd, SettingsThatDoNotGoTogetherAreRefused) {
  MtdOptions options;
  options.beta = .1;
  EXPECT_THROW(options.check(), Error);  // one channel
  options = {};
  options.encoder_widths = {"wide"};
  EXPECT_THROW(options.check(), Error);
  options = {};
  options.guess_links = .5;
  EXPECT_THROW(options.check(), Error);  // there are no soft labels
  EXPECT_EQ(resolve_width("0.8d", 100, 512, 1), 80u);
  EXPECT_EQ(resolve_width("0.8d", 4096, 512, 1), 3277u);
  EXPECT_EQ(resolve_width("1e", 100, 512, .5), 256u);
  EXPECT_EQ(resolve_width("1500", 100, 512, .001), 2u);
  EXPECT_THROW(resolve_width("-3", 1, 1, 1), Error);
}

// The paper's network on the six views of Corel5k.
TEST(Mtd, TheAuthorsNetworkHasTheirNumberOfParameters) {
  struct Count : TwoChannelMethod {
    static MtdOptions take(Mtd& method) { return method.*(&Count::network_options_); }
  };
  Mtd method;
  PrepareOptions prepare;
  method.set_preset("authors", prepare);
  const std::uint64_t columns[] = {512, 4096, 100, 1000, 4096, 4096};
  std::uint64_t sum = 512 * 260 + 260;
  for (const std::uint64_t d : columns) {
    const std::uint64_t h = resolve_width("0.8d", d, 512, 1);
    const auto linear = [](std::uint64_t in, std::uint64_t out) { return in * out + out; };
    const std::uint64_t encoder = linear(d, h) + linear(h, h) + linear(h, 1500) + linear(1500, 512) + 2 * 512;
    const std::uint64_t decoder =
        linear(512, 512) + linear(512, 1500) + linear(1500, h) + linear(h, h) + linear(h, d);
    sum += 2 * encoder + decoder;
  }
  EXPECT_NEAR(static_cast<double>(sum), 288.65e6, .01e6);
  // One view of it, built.
  NetworkShape shape{.columns = {100}, .labels = 260};
  const MtdNetwork<float> network(Count::take(method), shape, 1, make_cpu_ops(Precision::f32));
  const std::uint64_t encoder = 100 * 80 + 80 + 80 * 80 + 80 + 80 * 1500 + 1500 + 1500 * 512 + 512 + 1024;
  const std::uint64_t decoder =
      512 * 512 + 512 + 512 * 1500 + 1500 + 1500 * 80 + 80 + 80 * 80 + 80 + 80 * 100 + 100;
  EXPECT_EQ(network.parameters(), 2 * encoder + decoder + 512 * 260 + 260);
  EXPECT_EQ(network.parameters_for_prediction(), 2 * encoder + 512 * 260 + 260);
}

TEST(Mtd, SavedModelPredictsTheSameAndHoldsOnlyWhatPredictionNeeds) {
  const Simulated simulated =
      simulate({.rows = 120, .views = 3, .labels = 5, .sizes = {12, 18, 9}, .seed = 2});
  for (const char* preset : kPresetNames) {
    Model model(method_of_preset(preset));
    model.set_preset(preset);
    for (const auto& [name, value] : Changes{{"epochs", "3"},
                                             {"batch", "32"},
                                             {"embedding", "8"},
                                             {"encoder-widths", "10"},
                                             {"decoder-widths", "10"},
                                             {"components", "6"}})
      model.options().set(name, value, "test");
    model.fit(select_all(simulated.data), .2, 3);
    const auto path =
        std::filesystem::temp_directory_path() / fmt::format("lacuna_mtd_{}_{}", preset, ::getpid());
    model.save(path.string());
    const Model loaded = Model::load(path.string());
    const Matrix<float> before = model.predict(simulated.data), after = loaded.predict(simulated.data);
    EXPECT_TRUE(std::ranges::equal(before.values(), after.values())) << preset;
    const Tensors file = Tensors::read(path.string());
    for (const auto& [name, tensor] : file.all())
      EXPECT_TRUE(name.find("decoder") == std::string::npos &&
                  name.find("view_classifier") == std::string::npos)
          << name;
    std::filesystem::remove(path);
  }
}

// `auto` follows the machine, a model says what it took, and a training goes on as it began.
TEST(Mtd, PrecisionIsNotedAndKeptByAResumedTraining) {
  static const auto written = [](const Tensors& file) {  // and read again: what was put is only borrowed
    const auto path = std::filesystem::temp_directory_path() / fmt::format("lacuna_noted_{}", ::getpid());
    file.write(path.string());
    Tensors read = Tensors::read(path.string());
    std::filesystem::remove(path);
    return read;
  };
  struct Interrupted : FitContext {
    Tensors state;
    bool resume = false;
    const Tensors* resume_from() override { return resume ? &state : nullptr; }
    bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
      if (record.epoch != 2 || resume) return true;
      Tensors file;
      snapshot(file);
      state = written(file);
      return true;
    }
  };
  const Items items = random_items({.rows = 60, .columns = {8, 5}, .labels = 4}, 2);
  const auto fitted = [&](const char* precision, Interrupted& context) {
    auto method = make_method("mtd");
    Options options;
    method->declare(options);
    for (const auto& [name, value] : Changes{{"epochs", "4"},
                                             {"embedding", "8"},
                                             {"encoder-widths", "10"},
                                             {"decoder-widths", "10"},
                                             {"precision", precision}})
      options.set(name, value, "test");
    method->fit(items, {}, context);
    Tensors file;
    method->save(file);
    return written(file);
  };
  const Isa before = isa();
  for (const Isa form : {Isa::plain, Isa::bf16}) {
    if (!has_isa(form)) continue;
    choose_isa(form);
    Interrupted context;
    EXPECT_EQ(fitted("auto", context).metadata.at("precision"), form == Isa::bf16 ? "bf16" : "f32");
  }
  choose_isa(Isa::plain);
  Interrupted context;
  const Tensors whole = fitted("bf16", context);
  context.resume = true;
  const Tensors resumed = fitted("auto", context);
  EXPECT_EQ(resumed.metadata.at("precision"), "bf16");
  for (const auto& [name, tensor] : whole.all())
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, resumed.all().at(name).bytes)) << name;
  choose_isa(before);
}

}  // namespace
}  // namespace lacuna
