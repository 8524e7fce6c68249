#include "data/simulate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/names.h"
#include "data/npy.h"

namespace lacuna {
namespace {

// The paper's sets: rows, labels, labels a row.
struct Likeness {
  const char* name;
  std::int64_t rows, labels;
  double cardinality;
};
constexpr Likeness kLikenesses[] = {{"corel5k", 4999, 260, 3.4},
                                    {"pascal07", 9963, 20, 1.47},
                                    {"espgame", 20770, 268, 4.69},
                                    {"iaprtc12", 19627, 291, 5.72},
                                    {"mirflickr", 25000, 38, 4.72}};
struct NamedSize {
  const char* name;
  std::size_t columns;
};
constexpr NamedSize kPaperViews[] = {{"gist", 512},       {"hsv", 4096}, {"densehue", 100},
                                     {"densesift", 1000}, {"rgb", 4096}, {"lab", 4096}};
constexpr std::array<std::size_t, 4> kDefaultSizes = {64, 48, 32, 24};
constexpr float kLabelNoise = .3f, kHomeWeight = .6f;

// What a stream of draws is for; `of` tells views apart.
enum class Stage : std::uint32_t {
  shared,
  own,
  loadings,
  features,
  affinity,
  label_noise,
  counts,
  tail,
  view_scale
};
Random stream(std::uint64_t seed, Stage stage, std::size_t of = 0, std::size_t row = 0) {
  return {seed, Purpose::simulate, static_cast<std::uint32_t>(stage) << 24 | static_cast<std::uint32_t>(of),
          static_cast<std::uint32_t>(row)};
}

// Two independent N(0, 1) values from 64 bits: features come by the million.
void add_normals(std::span<float> out, float scale, Random& random) {
  for (std::size_t j = 0; j < out.size(); j += 2) {
    const float u = static_cast<float>((random.bits() >> 8) + 1) * 0x1p-24f;  // (0, 1]
    const float radius = scale * std::sqrt(-2 * std::log(u)), angle = 6.2831853f * random.uniform();
    out[j] += radius * std::cos(angle);
    if (j + 1 < out.size()) out[j + 1] += radius * std::sin(angle);
  }
}

Matrix<float> normals(std::size_t rows, std::size_t cols, float scale, std::uint64_t seed, Stage stage,
                      std::size_t of = 0) {
  Matrix<float> result(rows, cols);
  parallel_for(rows, 256, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      Random random = stream(seed, stage, of, i);
      add_normals(result.row(i), scale, random);
    }
  });
  return result;
}

struct Shape {
  std::size_t rows, labels, shared, own;
  double cardinality;
  std::vector<std::string> names;  // of the views
  std::vector<std::size_t> columns;
};

Shape shape_of(const SimulateOptions& o, std::size_t given_rows, std::size_t given_labels) {
  Shape shape{};
  const Likeness* like = nullptr;
  std::vector<std::string> known;
  for (const auto& candidate : kLikenesses) {
    known.emplace_back(candidate.name);
    if (o.like == candidate.name) like = &candidate;
  }
  if (!o.like.empty() && like == nullptr)
    fail(Exit::usage, "nothing is known about the sizes of '{}'{} (known are {})", o.like,
         did_you_mean(o.like, known), join(known, ", "));
  const auto pick = [](std::int64_t given, std::int64_t of_like, bool has_like, std::int64_t otherwise) {
    return static_cast<std::size_t>(given > 0 ? given : has_like ? of_like : otherwise);
  };
  shape.rows = given_rows > 0 ? given_rows : pick(o.rows, like ? like->rows : 0, like != nullptr, 1000);
  shape.labels =
      given_labels > 0 ? given_labels : pick(o.labels, like ? like->labels : 0, like != nullptr, 20);
  shape.cardinality = o.cardinality > 0 ? o.cardinality : like != nullptr ? like->cardinality : 2;
  shape.cardinality = std::min(shape.cardinality, static_cast<double>(shape.labels));

  if (!o.sizes.empty()) {
    if (o.views > 0 && static_cast<std::size_t>(o.views) != o.sizes.size())
      fail(Exit::usage, "{} views, but sizes for {}", o.views, o.sizes.size());
    for (const double size : o.sizes) {
      if (size < 1 || size != std::floor(size)) fail(Exit::usage, "a view cannot have {} columns", size);
      shape.columns.push_back(static_cast<std::size_t>(size));
    }
  } else if (like != nullptr && o.views == 0) {
    for (const auto& view : kPaperViews) {
      shape.names.emplace_back(view.name);
      shape.columns.push_back(view.columns);
    }
  } else {
    for (std::size_t v = 0; v < (o.views > 0 ? static_cast<std::size_t>(o.views) : 4); ++v)
      shape.columns.push_back(kDefaultSizes[v % kDefaultSizes.size()]);
  }
  if (shape.names.empty()) shape.names = numbered_names("view", shape.columns.size());
  const double by_labels = std::round(1.5 * std::sqrt(static_cast<double>(shape.labels)));
  shape.shared = static_cast<std::size_t>(o.shared_factors > 0 ? static_cast<double>(o.shared_factors)
                                                               : std::clamp(by_labels, 4., 64.));
  shape.own = static_cast<std::size_t>(o.private_factors);
  return shape;
}

// View v sees factor f if it is one of the ceil(m / 2) views that follow view f (cyclically): every factor is
// seen, and no view sees them all when there are several.
Matrix<std::uint8_t> plan_of_sight(std::size_t views, std::size_t factors) {
  Matrix<std::uint8_t> seen(views, factors);
  for (std::size_t f = 0; f < factors; ++f)
    for (std::size_t t = 0; t < (views + 1) / 2; ++t) seen((f + t) % views, f) = 1;
  return seen;
}

// X_v from the factors, any rows of it at a time.
class ViewDrawer {
 public:
  ViewDrawer(const Simulated& s, std::size_t v, std::size_t columns, const SimulateOptions& options)
      : s_(s), v_(v), options_(options) {
    for (std::size_t f = 0; f < s.shared.cols(); ++f)
      if (s.seen(v, f) != 0) factors_.push_back(f);
    const std::size_t sources = factors_.size() + s.own[v].cols();
    const float loading = 1 / std::sqrt(static_cast<float>(std::max<std::size_t>(sources, 1)));
    A_ = normals(sources, columns, loading, options.seed, Stage::loadings, v);
    // Views come in different units: preparation has something to do.
    Random unit = stream(options.seed, Stage::view_scale, v);
    scale_ = std::pow(10.f, unit.uniform(-1, 1));
    shift_ = scale_ * unit.uniform(-3, 3);
  }

  Table<float> rows(std::size_t first, std::size_t count) const {
    Matrix<float> X(count, A_.cols());
    parallel_for(count, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) draw(first + i, X.row(i));
    });
    return X;
  }

 private:
  void draw(std::size_t i, std::span<float> x) const {
    for (std::size_t q = 0; q < A_.rows(); ++q) {
      const float z = q < factors_.size() ? s_.shared(i, factors_[q]) : s_.own[v_](i, q - factors_.size());
      const auto a = A_.row(q);
      for (std::size_t j = 0; j < x.size(); ++j) x[j] += z * a[j];
    }
    Random random = stream(options_.seed, Stage::features, v_, i);
    add_normals(x, static_cast<float>(options_.noise), random);
    for (auto& value : x) value = scale_ * value + shift_;
  }
  const Simulated& s_;
  std::size_t v_;
  const SimulateOptions& options_;
  std::vector<std::size_t> factors_;
  Matrix<float> A_;
  float scale_ = 1, shift_ = 0;
};

void draw_views(Simulated& s, const Shape& shape, const SimulateOptions& options) {
  for (std::size_t v = 0; v < shape.columns.size(); ++v)
    s.data.views.push_back(
        {shape.names[v], ViewDrawer(s, v, shape.columns[v], options).rows(0, s.data.rows), {}, "float32"});
}

// L (n, c). Labels of a group of five share half of their direction.
Matrix<float> draw_affinity(const Simulated& s, std::size_t labels, std::uint64_t seed) {
  const std::size_t k = s.shared.cols(), own = s.own[0].cols(), groups = std::max<std::size_t>(1, labels / 5);
  const Matrix<float> group = normals(groups, k, 1, seed, Stage::affinity, 1);
  const Matrix<float> single = normals(labels, k, 1, seed, Stage::affinity, 2);
  const Matrix<float> home = normals(labels, own, 1, seed, Stage::affinity, 3);
  Matrix<float> B(labels, k + own);  // (c, k + k_v), rows of length 1
  for (std::size_t j = 0; j < labels; ++j) {
    const auto b = B.row(j);
    for (std::size_t f = 0; f < k; ++f) b[f] = group(j % groups, f) + single(j, f);
    for (std::size_t f = 0; f < own; ++f) b[k + f] = kHomeWeight * 2 * home(j, f);
    float length = 0;
    for (const float value : b) length += value * value;
    for (float& value : b) value /= std::sqrt(std::max(length, 1e-20f));
  }
  Matrix<float> L(s.shared.rows(), labels);
  parallel_for(L.rows(), 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < labels; ++j) {
        float sum = 0;
        for (std::size_t f = 0; f < k; ++f) sum += s.shared(i, f) * B(j, f);
        for (std::size_t f = 0; f < own; ++f) sum += s.own[j % s.own.size()](i, f) * B(j, k + f);
        L(i, j) = sum;
      }
  });
  return L;
}

// How many labels each row gets: 1 + Poisson where there is room for it, with the total exactly as asked.
std::vector<std::size_t> draw_counts(std::size_t rows, std::size_t labels, double cardinality,
                                     std::uint64_t seed) {
  Random random = stream(seed, Stage::counts);
  const auto poisson = [&](double mean) {
    const double floor = std::exp(-mean);
    std::size_t count = 0;
    for (double product = random.uniform_double(); product > floor; product *= random.uniform_double())
      ++count;
    return count;
  };
  const auto wanted = static_cast<std::size_t>(std::llround(cardinality * static_cast<double>(rows)));
  const std::size_t least = wanted >= rows ? 1 : 0;
  std::vector<std::size_t> counts(rows);
  std::size_t total = 0;
  for (auto& count : counts) {
    count =
        least == 1 ? std::min(labels, 1 + poisson(cardinality - 1)) : random.uniform_double() < cardinality;
    total += count;
  }
  while (total != wanted) {
    auto& count = counts[random.below(rows)];
    if (total < wanted && count < labels) ++count, ++total;
    if (total > wanted && count > least) --count, --total;
  }
  return counts;
}

// Frequencies of the labels: a power law, capped, in random order, with the given sum.
std::vector<double> draw_tail(std::size_t labels, double cardinality, std::uint64_t seed) {
  std::vector<double> wanted(labels);
  for (std::size_t j = 0; j < labels; ++j) wanted[j] = std::pow(static_cast<double>(j) + 3, -.9);
  const double cap = std::max(.4, 1.5 * cardinality / static_cast<double>(labels));
  for (int round = 0; round < 50; ++round) {
    const double sum = std::accumulate(wanted.begin(), wanted.end(), 0.);
    for (auto& w : wanted) w = std::min(std::min(cap, 1.), w * cardinality / sum);
  }
  Random random = stream(seed, Stage::tail);
  random.shuffle(wanted);
  return wanted;
}

// Each row takes its `count` best labels by noisy affinity minus offset; offsets move until the frequencies
// fit the tail.
Matrix<std::int8_t> choose_labels(const Matrix<float>& affinity, double cardinality, std::uint64_t seed) {
  const std::size_t n = affinity.rows(), c = affinity.cols();
  const auto counts = draw_counts(n, c, cardinality, seed);
  const auto tail = draw_tail(c, cardinality, seed);
  Matrix<float> noisy = normals(n, c, kLabelNoise, seed, Stage::label_noise);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < c; ++j) noisy(i, j) += affinity(i, j);
  std::vector<float> offset(c, 0.f);
  Matrix<std::int8_t> Y(n, c);
  constexpr int kRounds = 25;
  for (int round = 0; round < kRounds; ++round) {
    parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
      std::vector<std::uint32_t> order(c);
      for (std::size_t i = begin; i < end; ++i) {
        std::iota(order.begin(), order.end(), 0u);
        const auto better = [&](std::uint32_t a, std::uint32_t b) {
          const float x = noisy(i, a) - offset[a], y = noisy(i, b) - offset[b];
          return x > y || (x == y && a < b);
        };
        const auto cut = order.begin() + static_cast<std::ptrdiff_t>(counts[i]);
        if (cut != order.end()) std::nth_element(order.begin(), cut, order.end(), better);
        const auto y = Y.row(i);
        std::fill(y.begin(), y.end(), std::int8_t{0});
        for (auto at = order.begin(); at != cut; ++at) y[*at] = 1;
      }
    });
    if (round + 1 == kRounds) break;
    for (std::size_t j = 0; j < c; ++j) {
      double frequency = .5;  // half a row, so that a label without positives has a logarithm
      for (std::size_t i = 0; i < n; ++i) frequency += Y(i, j);
      offset[j] += .4f * static_cast<float>(std::log(frequency / (tail[j] * static_cast<double>(n) + .5)));
    }
  }
  return Y;
}

}  // namespace

void SimulateOptions::declare(Options& o) {
  std::vector<std::string> names = {""};
  for (const auto& likeness : kLikenesses) names.emplace_back(likeness.name);
  o.add("rows", rows, "number of items (0: 1000, or that of --like)").range(0, 4e9).symbol("n");
  o.add("views", views, "number of views (0: 4, or that of --like)").range(0, 4096).symbol("m");
  o.add("labels", labels, "number of labels (0: 20, or that of --like)").range(0, 1e6).symbol("c");
  o.add("sizes", sizes, "columns of the views, separated by commas").metavar("64,32,...");
  o.add("shared-factors", shared_factors, "factors that affect several views (0: by the number of labels)")
      .range(0, 4096);
  o.add("private-factors", private_factors, "factors that affect one view only, per view").range(0, 4096);
  o.add("cardinality", cardinality, "labels per row (0: 2, or that of --like)").range(0, 1e6);
  o.add("noise", noise, "standard deviation of the features' noise; that of the signal is 1").range(0, 1e6);
  o.add("like", like, "the sizes of one of the paper's data sets").choices(names).metavar("NAME");
  o.add("seed", seed, "seed of all draws");
}

namespace {

Simulated plant(const SimulateOptions& options, const Shape& shape) {
  Simulated s;
  s.data.name = options.like.empty() ? "simulated" : "simulated-" + options.like;
  s.data.source = fmt::format("simulated, seed {}", options.seed);
  s.data.rows = shape.rows;
  s.data.label_names = numbered_names("label", shape.labels);
  s.shared = normals(shape.rows, shape.shared, 1, options.seed, Stage::shared);
  for (std::size_t v = 0; v < shape.columns.size(); ++v)
    s.own.push_back(normals(shape.rows, shape.own, 1, options.seed, Stage::own, v));
  s.seen = plan_of_sight(shape.columns.size(), shape.shared);
  s.affinity = draw_affinity(s, shape.labels, options.seed);
  s.data.labels = choose_labels(s.affinity, shape.cardinality, options.seed);
  return s;
}

Shape shape_for(const Dataset& labelled, const SimulateOptions& options) {
  if (labelled.labels.empty()) fail(Exit::data, "{} has no labels to draw views for", labelled.name);
  if (options.rows > 0 || options.labels > 0 || options.cardinality > 0)
    fail(Exit::usage, "rows, labels and cardinality are those of {}; do not give them", labelled.name);
  return shape_of(options, labelled.rows, labelled.label_count());
}

Simulated plant(const Dataset& labelled, const SimulateOptions& options, const Shape& shape) {
  const std::size_t n = labelled.rows, c = labelled.label_count();
  Simulated s;
  s.data.name = labelled.name;
  s.data.source = fmt::format("views simulated, seed {}; labels: {}", options.seed,
                              labelled.source.empty() ? labelled.name : labelled.source);
  s.data.licence = labelled.licence;
  s.data.rows = n;
  s.data.labels = labelled.labels;
  s.data.label_names = labelled.label_names;
  s.data.ids = labelled.ids;

  // Factors = the mean direction of the item's labels, and as much of its own: half of the variance tells the
  // labels.
  const auto planted = [&](std::size_t factors, Stage stage, std::size_t of) {
    const Matrix<float> direction = normals(c, factors, 1, options.seed, Stage::affinity, 16 + of);
    Matrix<float> Z = normals(n, factors, std::sqrt(.5f), options.seed, stage, of);
    parallel_for(n, 64, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto y = labelled.labels.row(i);
        const auto positives = std::count(y.begin(), y.end(), std::int8_t{1});
        if (positives == 0) continue;
        const float weight = std::sqrt(.5f / static_cast<float>(positives));
        for (std::size_t j = 0; j < c; ++j)
          for (std::size_t f = 0; y[j] == 1 && f < factors; ++f) Z(i, f) += weight * direction(j, f);
      }
    });
    return Z;
  };
  s.shared = planted(shape.shared, Stage::shared, 0);
  for (std::size_t v = 0; v < shape.columns.size(); ++v)
    s.own.push_back(planted(shape.own, Stage::own, v + 1));
  s.seen = plan_of_sight(shape.columns.size(), shape.shared);
  return s;
}

// All rows of the planted data, block after block; what is left has views without rows.
void draw_blocks(Simulated& s, const Shape& shape, const SimulateOptions& options, BlockSink sink) {
  constexpr std::size_t kBlock = 2048;
  std::vector<ViewDrawer> drawers;
  for (std::size_t v = 0; v < shape.columns.size(); ++v)
    drawers.emplace_back(s, v, shape.columns[v], options);
  for (std::size_t first = 0; first < s.data.rows; first += kBlock) {
    const std::size_t count = std::min(kBlock, s.data.rows - first);
    Dataset block;
    block.name = s.data.name;
    block.source = s.data.source;
    block.licence = s.data.licence;
    block.rows = count;
    block.label_names = s.data.label_names;
    Matrix<std::int8_t> labels(count, s.data.label_count());
    labels.copy_from(s.data.labels.view().slice(first, count));
    block.labels = std::move(labels);
    if (!s.data.ids.empty())
      block.ids.assign(s.data.ids.begin() + static_cast<std::ptrdiff_t>(first),
                       s.data.ids.begin() + static_cast<std::ptrdiff_t>(first + count));
    for (std::size_t v = 0; v < drawers.size(); ++v)
      block.views.push_back({shape.names[v], drawers[v].rows(first, count), {}, "float32"});
    sink(block);
  }
  for (std::size_t v = 0; v < drawers.size(); ++v)
    s.data.views.push_back(
        {shape.names[v], Table<float>(nullptr, {nullptr, 0, shape.columns[v]}), {}, "float32"});
}

}  // namespace

Simulated simulate(const SimulateOptions& options) {
  const Shape shape = shape_of(options, 0, 0);
  Simulated s = plant(options, shape);
  draw_views(s, shape, options);
  return s;
}

Simulated simulate(const SimulateOptions& options, BlockSink sink) {
  const Shape shape = shape_of(options, 0, 0);
  Simulated s = plant(options, shape);
  draw_blocks(s, shape, options, sink);
  return s;
}

Simulated simulate_views(const Dataset& labelled, const SimulateOptions& options) {
  const Shape shape = shape_for(labelled, options);
  Simulated s = plant(labelled, options, shape);
  draw_views(s, shape, options);
  return s;
}

Simulated simulate_views(const Dataset& labelled, const SimulateOptions& options, BlockSink sink) {
  const Shape shape = shape_for(labelled, options);
  Simulated s = plant(labelled, options, shape);
  draw_blocks(s, shape, options, sink);
  return s;
}

void write_truth(const Simulated& s, const std::string& path) {
  std::vector<Array> arrays = {borrow("shared", s.shared), borrow("seen", s.seen)};
  for (std::size_t v = 0; v < s.own.size(); ++v)
    if (!s.own[v].empty()) arrays.push_back(borrow("own_" + s.data.views[v].name, s.own[v]));
  if (!s.affinity.empty()) arrays.push_back(borrow("affinity", s.affinity));
  write_npz(path, arrays);
}

}  // namespace lacuna
