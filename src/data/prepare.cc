#include "data/prepare.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <list>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "data/moments.h"
#include "data/observed.h"
#include "data/principal.h"
#include "data/squash.h"
#include "data/strips.h"
#include "ops/linalg.h"

namespace lacuna {
namespace {

constexpr double kRootPower = .25;              // of root-pca
constexpr std::size_t kKernelDirections = 256;  // before a kernel
constexpr std::size_t kSquashes = 2;            // of a view that are in memory at the same time, usually

std::string checked_kind(const std::string& kind, const std::string& where) {
  if (std::find(prepare_kinds().begin(), prepare_kinds().end(), kind) == prepare_kinds().end())
    fail(Exit::usage, "{}: there is no preparation '{}'{} (there are {})", where, kind,
         did_you_mean(kind, prepare_kinds()), join(prepare_kinds(), ", "));
  return kind;
}

// The kind of every view: the common one, then the exceptions "name=kind".
std::vector<std::string> kinds_of_views(const Dataset& data, const PrepareOptions& options) {
  std::vector<std::string> result(data.views.size(), checked_kind(options.kind, "prepare"));
  std::vector<std::string> names;
  for (const auto& view : data.views) names.push_back(view.name);
  for (const auto& entry : options.per_view) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos)
      fail(Exit::usage, "prepare-view: '{}' is not of the form name=kind (timbre=zscore)", entry);
    const std::string name = entry.substr(0, equals);
    const std::size_t at = data.view_index(name);
    if (at == data.views.size())
      fail(Exit::usage, "prepare-view: {} has no view '{}'{} (it has {})", data.name, name,
           did_you_mean(name, names), join(names, ", "));
    result[at] = checked_kind(entry.substr(equals + 1), "prepare-view " + name);
  }
  return result;
}

Squash squash_of(const Preparation::ViewMap& map) {
  return {static_cast<float>(map.log_scale), static_cast<float>(map.power)};
}

// What can be told from the values alone.
struct Look {
  std::size_t values = 0, zeros = 0;
  bool integers = true, negative = false, equal_norms = true;
  float largest = 0;
};

Look look_at(const View& view, const std::vector<std::uint32_t>& rows) {
  Look look;
  std::vector<float> row(view.columns());
  double low_norm = std::numeric_limits<double>::infinity(), high_norm = 0;
  const auto look_at_row = [&](std::uint32_t i) {
    view.copy_row(i, row);
    double squares = 0;
    for (const float x : row) {
      look.zeros += x == 0;
      look.integers = look.integers && x == std::trunc(x);
      look.negative = look.negative || x < 0;
      look.largest = std::max(look.largest, std::abs(x));
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    low_norm = std::min(low_norm, std::sqrt(squares));
    high_norm = std::max(high_norm, std::sqrt(squares));
  };
  for_slabs(view, rows, [&](std::size_t first, std::size_t count) {
    for (std::size_t r = first; r < first + count; ++r) look_at_row(rows[r]);
  });
  look.values = rows.size() * view.columns();
  look.equal_norms = !rows.empty() && high_norm > 0 && low_norm >= .98 * high_norm;
  return look;
}

// The rules of `auto`. They look at what the values are, never at labels.
PrepareAdvice advise(const View& view, const std::vector<std::uint32_t>& rows, std::int64_t components) {
  if (rows.empty()) return {"none", "no instance is observed"};
  const Look look = look_at(view, rows);
  const double zeros =
      static_cast<double>(look.zeros) / static_cast<double>(std::max<std::size_t>(look.values, 1));
  const bool wide = view.columns() > static_cast<std::size_t>(components);
  if (look.integers && !look.negative && look.largest > 1)
    return {"log-pca", fmt::format("counts: non-negative integers up to {:.0f}, {:.0f} % zeros", look.largest,
                                   100 * zeros)};
  if (look.equal_norms && look.negative)
    return wide ? PrepareAdvice{"pca",
                                fmt::format("embeddings: rows of equal length, {} columns", view.columns())}
                : PrepareAdvice{"none", "embeddings: rows of equal length, few columns"};
  if (!look.negative && zeros >= .1 && !look.integers)
    return {"log-pca",
            fmt::format("histograms: non-negative up to {:.3g}, {:.0f} % zeros", look.largest, 100 * zeros)};
  if (look.integers && look.largest <= 1 && wide) return {"pca", "indicators: only 0, 1 and -1"};
  if (wide)
    return {"log-pca",
            fmt::format("real numbers: {} columns, more than {} directions", view.columns(), components)};
  return {"zscore", view.columns() == 1
                        ? "real numbers in one column"
                        : fmt::format("real numbers: {} columns of their own units", view.columns())};
}

// The fitted rows of a view as a table of their own, squashed.
Csr gather(const Csr& csr, const std::vector<std::uint32_t>& rows, const Squash& squash) {
  std::size_t nonzeros = 0;
  for (const std::uint32_t i : rows) nonzeros += csr.start(0, i + 1) - csr.start(0, i);
  Matrix<std::uint64_t> start(1, rows.size() + 1);
  Matrix<std::uint32_t> index(1, nonzeros);
  Matrix<float> value(1, nonzeros);
  std::size_t at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::uint64_t p = csr.start(0, rows[r]); p < csr.start(0, rows[r] + 1); ++p, ++at) {
      index(0, at) = csr.index(0, p);
      value(0, at) = csr.value(0, p);
    }
    start(0, r + 1) = at;
  }
  squash.apply(value.values());
  return {std::move(start), std::move(index), std::move(value), csr.columns};
}

Csr scale_columns(Csr csr, std::span<const float> scale) {
  Matrix<float> value(1, csr.value.cols());
  for (std::size_t p = 0; p < value.cols(); ++p) value(0, p) = csr.value(0, p) * scale[csr.index(0, p)];
  csr.value = std::move(value);
  return csr;
}

void fit_scaling(const View& view, const std::vector<std::uint32_t>& rows, Preparation::ViewMap& map) {
  const Moments m = moments(view, rows);
  for (std::size_t j = 0; j < map.columns; ++j) {
    const bool constant = !(m.low[j] < m.high[j]);
    if (map.kind == "zscore") {
      map.shift(0, j) = static_cast<float>(m.mean[j]);
      map.scale(0, j) = constant ? 0.f : static_cast<float>(1 / m.deviation[j]);
    } else {
      map.shift(0, j) = m.low[j];
      map.scale(0, j) = constant ? 0.f : 1 / (m.high[j] - m.low[j]);
    }
  }
}

// Shift and scale of one dense row, in place, within what the map allows.
void transform_row(const Preparation::ViewMap& map, std::span<float> x) {
  squash_of(map).apply(x);
  if (!map.scale.empty()) {
    const auto shift = map.shift.row(0), scale = map.scale.row(0);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] = (x[j] - shift[j]) * scale[j];
  }
  if (map.clamp)
    for (float& value : x) value = std::clamp(value, 0.f, 1.f);
  else
    keep_within(x, map.directions.empty() ? kMostPrepared : map.most_projected());
}

// Prepared rows begin..end of the selection into X; rows without the view stay zero.
void apply_dense(const Preparation::ViewMap& map, const Selection& selection, std::size_t from,
                 std::size_t begin, std::size_t end, MatrixView<float> X) {
  const View& view = selection.data->views[from];
  thread_local Matrix<float> scratch;  // fresh memory for every few rows would cost more than their product
  if (!map.directions.empty() && (scratch.rows() < end - begin || scratch.cols() != map.columns))
    scratch = Matrix<float>(end - begin, map.columns);
  const MatrixView<float> raw = scratch.view().top(map.directions.empty() ? 0 : end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    const auto row = map.directions.empty() ? X.row(i) : raw.row(i - begin);
    if (!selection.has(i, from)) {
      std::ranges::fill(row, 0.f);
      continue;
    }
    view.copy_row(selection.rows[i], row);
    transform_row(map, row);
  }
  if (map.directions.empty()) return;
  const MatrixView<float> out = X.slice(begin, end - begin);
  multiply(raw, map.directions.view(), Transpose::none, false, out);  // a row's bits are its own
  for (std::size_t i = 0; i < out.rows; ++i) {
    for (float& value : out.row(i)) value *= map.gain;
    keep_within(out.row(i), kMostPrepared);
  }
}

// The same from sparse rows: only nonzeros meet the directions; `offset` is the image of the shift.
void apply_sparse(const Preparation::ViewMap& map, const Selection& selection, std::size_t from,
                  std::span<const float> offset, std::size_t begin, std::size_t end, MatrixView<float> X) {
  const auto& csr = std::get<Csr>(selection.data->views[from].features);
  const Squash squash = squash_of(map);
  const float most = map.most_projected();
  for (std::size_t i = begin; i < end; ++i) {
    if (!selection.has(i, from)) continue;
    const std::size_t row = selection.rows[i];
    const auto out = X.row(i);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = -offset[k];
    for (std::uint64_t p = csr.start(0, row); p < csr.start(0, row + 1); ++p) {
      const std::uint32_t j = csr.index(0, p);
      const float y = std::clamp(squash(csr.value(0, p)) * map.scale(0, j), -most, most);
      const auto direction = map.directions.row(j);
      for (std::size_t k = 0; k < out.size(); ++k) out[k] += y * direction[k];
    }
    for (float& value : out) value *= map.gain;
    keep_within(out, kMostPrepared);
  }
}

// All rows of the selection into X, before the kernel.
void project(const Preparation::ViewMap& map, const Selection& selection, std::size_t from,
             MatrixView<float> X) {
  const bool sparse = selection.data->views[from].sparse() && !map.directions.empty();
  std::vector<float> offset(sparse ? X.cols : 0);
  if (sparse)
    for (std::size_t j = 0; j < map.columns; ++j)
      for (std::size_t k = 0; k < offset.size(); ++k)
        offset[k] += map.shift(0, j) * map.scale(0, j) * map.directions(j, k);
  parallel_for(X.rows, 64, [&](std::size_t begin, std::size_t end) {
    sparse ? apply_sparse(map, selection, from, offset, begin, end, X)
           : apply_dense(map, selection, from, begin, end, X);
  });
}

// Projected rows X (n, directions) -> (n, width): the kernel's coordinates, and the linear ones that stay.
Matrix<float> with_kernel(const Preparation::ViewMap& map, const Matrix<float>& X) {
  Matrix<float> mapped(X.rows(), map.kernel.columns());
  map.kernel.apply(X, mapped);
  if (map.linear == 0) return mapped;
  Matrix<float> result(X.rows(), map.width());
  const std::vector<std::size_t> sources = map.sources();
  for (std::size_t i = 0; i < X.rows(); ++i)
    for (std::size_t j = 0; j < sources.size(); ++j)
      result(i, j) = sources[j] < X.cols() ? X(i, sources[j]) : mapped(i, sources[j] - X.cols());
  return result;
}

// The image of zero, if it is what most of the view is: Items::common. Some of the rows tell.
Matrix<float> background(const Preparation::ViewMap& map, const Items& items, std::size_t v) {
  constexpr std::size_t kNarrow = 256, kRows = 64;
  constexpr double kMostDiffer = .25;
  if (!map.directions.empty() || map.columns < kNarrow) return {};
  Matrix<float> zero(1, map.columns), row(1, map.columns);
  transform_row(map, zero.row(0));
  std::size_t differ = 0, seen = 0;
  const std::size_t step = std::max<std::size_t>(1, items.rows() / kRows);
  for (std::size_t i = 0; i < items.rows(); i += step) {
    if (items.W(i, v) == 0) continue;
    seen += map.columns;
    items.copy_rows(v, i, row);
    for (std::size_t j = 0; j < map.columns; ++j) differ += row(0, j) != zero(0, j);
    items.leave(i, 1);
  }
  if (static_cast<double>(differ) > kMostDiffer * static_cast<double>(seen)) return {};
  return zero;
}

// Sets shift and scale, and finds the directions of the squashed rows.
Principal directions_of(Observed& observed, std::size_t K, const PrepareOptions& options,
                        Preparation::ViewMap& map) {
  const std::uint64_t seed = options.seed;
  const View& view = observed.view();
  const std::vector<std::uint32_t>& rows = observed.rows();
  if (view.sparse()) {
    View gathered;
    gathered.features = gather(std::get<Csr>(view.features), rows, squash_of(map));
    std::vector<std::uint32_t> all(rows.size());
    std::iota(all.begin(), all.end(), 0u);
    centre(moments(gathered, all), map.shift, map.scale);
    Matrix<float> shift(1, map.columns);
    for (std::size_t j = 0; j < map.columns; ++j) shift(0, j) = map.shift(0, j) * map.scale(0, j);
    const Csr scaled = scale_columns(std::get<Csr>(gathered.features), map.scale.row(0));
    return principal_directions(scaled, shift.row(0), K, seed);
  }
  if (rows.size() * map.columns * sizeof(float) > options.most_bytes) {
    centre(moments(ViewStrips(view, rows, squash_of(map))), map.shift, map.scale);
    const ViewStrips centred(view, rows, squash_of(map), map.shift.row(0), map.scale.row(0));
    return principal_directions(centred, K, seed);
  }
  CentredRows& centred = observed.centred(squash_of(map));
  map.shift = centred.shift();
  map.scale = centred.scale();
  const MatrixView<const float> X = centred.X();
  return needs_gram(X.rows, X.cols, K) ? principal_directions(X, centred.gram(), K, seed)
                                       : principal_directions(X, K, seed);
}

void fit_projection(const Dataset& data, std::size_t v, Observed& observed, const PrepareOptions& options,
                    Preparation::ViewMap& map) {
  const std::vector<std::uint32_t>& rows = observed.rows();
  const bool both = map.kind == "root-rbf-pca", kernel = both || map.kind == "rbf-pca";
  if (map.kind == "log-pca" || map.kind == "rbf-pca") map.log_scale = observed.reach().largest <= 1 ? 100 : 1;
  if ((map.kind == "root-pca" || both) && !observed.reach().two_sided()) map.power = kRootPower;
  const auto components = static_cast<std::size_t>(options.components);
  const std::size_t K = kernel ? std::max(kKernelDirections, both ? components : 1) : components;
  Principal principal = directions_of(observed, K, options, map);
  map.directions = std::move(principal.directions);
  if (both) map.linear = std::min(components, map.directions.cols());
  const std::size_t used = both ? map.linear : principal.variances.size();  // whose mean variance becomes 1
  double mean = 0;
  for (std::size_t k = 0; k < principal.variances.size(); ++k) {
    const double variance = principal.variances[k], first = principal.variances[0];
    map.variances.push_back(static_cast<float>(variance));
    const double factor =
        options.whiten > 0 && variance > 0 && !kernel ? std::pow(variance / first, -options.whiten / 2) : 1;
    if (factor != 1)
      for (std::size_t j = 0; j < map.columns; ++j) map.directions(j, k) *= static_cast<float>(factor);
    if (k < used) mean += variance * factor * factor / static_cast<double>(used);
  }
  map.residual = principal.residual;
  map.gain = mean > 0 ? static_cast<float>(1 / std::sqrt(mean)) : 0.f;
  if (!kernel || rows.empty()) return;
  Selection fitted;
  fitted.data = &data;
  fitted.rows = rows;
  if (rows.size() * map.directions.cols() * sizeof(float) > options.most_bytes) {  // the anchors alone
    fitted.rows.resize(KernelMap::kMostAnchors);
    for (std::size_t i = 0; i < fitted.rows.size(); ++i)
      fitted.rows[i] = rows[i * rows.size() / fitted.rows.size()];
  }
  Matrix<float> Z(fitted.rows.size(), map.directions.cols());
  project(map, fitted, v, Z);
  const std::int64_t coordinates =
      options.kernel_components > 0 ? options.kernel_components : options.components;
  map.kernel = KernelMap::fit(Z, static_cast<std::size_t>(coordinates), options.seed);
}

bool projects(const std::string& kind) {
  return kind.ends_with("pca");
}

Preparation::ViewMap fit_view(const Selection& train, std::size_t v, const std::string& kind,
                              const PrepareOptions& options, Observed& observed) {
  const View& view = observed.view();
  const std::vector<std::uint32_t>& rows = observed.rows();
  Preparation::ViewMap map;
  map.name = view.name;
  map.kind = kind;
  map.columns = view.columns();
  if (kind == "auto") {
    const PrepareAdvice advice = advise(view, rows, options.components);
    map.kind = advice.kind;
    map.reason = advice.reason;
  }
  if (map.kind == "none") return map;
  map.shift = Matrix<float>(1, map.columns);
  map.scale = Matrix<float>(1, map.columns);
  map.clamp = map.kind == "minmax";
  if (rows.empty()) {  // a view never seen in training keeps scale 0 and says nothing
    if (projects(map.kind)) map.kind = "zscore";
  } else if (projects(map.kind)) {
    fit_projection(*train.data, v, observed, options, map);
  } else {
    fit_scaling(view, rows, map);
  }
  return map;
}

// Whose view is whose: the widest first, each to the rank that has the fewest columns so far.
std::vector<int> owners_of_views(const Dataset& data, const Ranks& ranks) {
  std::vector<std::size_t> order(data.views.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t v) { return data.views[v].columns(); });
  std::vector<std::size_t> loads(static_cast<std::size_t>(ranks.size()));
  std::vector<int> owners(order.size());
  for (const std::size_t v : order) {
    const auto least = std::ranges::min_element(loads);
    *least += data.views[v].columns();
    owners[v] = static_cast<int>(least - loads.begin());
  }
  return owners;
}

}  // namespace

const std::vector<std::string>& prepare_kinds() {
  static const std::vector<std::string> names = {"none",     "zscore",  "minmax",       "pca", "log-pca",
                                                 "root-pca", "rbf-pca", "root-rbf-pca", "auto"};
  return names;
}

std::vector<std::size_t> Preparation::ViewMap::sources() const {
  std::vector<std::size_t> result;
  for (std::size_t k = 0; k < std::max(linear, kernel.columns()); ++k) {
    if (k < linear) result.push_back(k);
    if (k < kernel.columns()) result.push_back(directions.cols() + k);
  }
  return result;
}

PrepareAdvice advise_preparation(const Selection& selection, std::size_t v, std::int64_t components) {
  return advise(selection.data->views[v], Observed(selection, v, false).rows(), components);
}

void PrepareOptions::declare(Options& options) {
  const auto group = options.group("preparation of the inputs");
  options.add("prepare", kind, "preparation of every view").choices(prepare_kinds());
  options.add("prepare-view", per_view, "preparation of single views: name=kind").metavar("NAME=KIND");
  options.add("components", components, "maximum number of principal directions").range(1, 65536).symbol("K");
  options
      .add("kernel-components", kernel_components,
           "maximum number of Gaussian kernel coordinates (rbf kinds); 0 = as many as directions")
      .range(0, 2000);
  options
      .add("whiten", whiten,
           "whitening of the directions: 0 keeps their variances, 1 makes them equal, between: variance to "
           "the power 1 - whiten")
      .range(0, 1);
  options.add("leaky-prepare", leaky,
              "fit the preparation on all rows, test rows included, as the authors do");
}

Preparation Preparation::fit(const Selection& train, const PrepareOptions& options, const Ranks& ranks) {
  return std::move(fit(train, std::vector{options}, ranks).front());
}

std::vector<Preparation> Preparation::fit(const Selection& train, const std::vector<PrepareOptions>& forms,
                                          const Ranks& ranks) {
  const std::vector<int> owners = owners_of_views(*train.data, ranks);
  std::vector<std::size_t> views;  // of this rank
  for (std::size_t v = 0; v < owners.size(); ++v)
    if (owners[v] == ranks.rank()) views.push_back(v);
  std::vector<Preparation> own = fit_views(train, forms, views);
  if (ranks.alone()) return own;
  std::vector<Preparation> all;
  for (const Preparation& form : own) {
    Tensors file;
    form.save(file, "");
    std::vector<Preparation> parts;  // of each rank, its own views in order
    for (const std::string& text : all_gather(ranks, file.text())) {
      const auto bytes = std::make_shared<const std::string>(text);
      parts.push_back(load(Tensors::parse(bytes, std::as_bytes(std::span(*bytes)), "another rank"), ""));
    }
    Preparation& result = all.emplace_back();
    std::vector<std::size_t> taken(parts.size());
    for (const int owner : owners) {
      const auto r = static_cast<std::size_t>(owner);
      result.views_.push_back(std::move(parts[r].views_[taken[r]++]));
    }
  }
  return all;
}

// Many small views: each thread fits one after the other, because most of a fit is done by one thread. Few or large ones:
// all threads fit each, and what a view's preparations share is released before the next view.
std::vector<Preparation> Preparation::fit_views(const Selection& train,
                                                const std::vector<PrepareOptions>& forms,
                                                const std::vector<std::size_t>& views) {
  constexpr std::size_t kMostNumbers = std::size_t{1} << 28;  // of views that are at work at the same time
  std::size_t columns = 0;
  struct One {
    std::size_t form, at, work;
  };
  std::vector<One> fits;
  std::vector<std::vector<std::string>> kinds;
  std::vector<Preparation> all(forms.size());
  for (const std::size_t v : views) columns += train.data->views[v].columns();
  for (std::size_t f = 0; f < forms.size(); ++f) {
    kinds.push_back(kinds_of_views(*train.data, forms[f]));
    all[f].views_.resize(views.size());
    for (std::size_t at = 0; at < views.size(); ++at) {
      const bool kernel = kinds[f][views[at]] == "rbf-pca";
      const std::size_t K = kernel ? kKernelDirections : static_cast<std::size_t>(forms[f].components);
      fits.push_back({f, at, train.data->views[views[at]].columns() * K});
    }
  }
  std::list<Observed> observed;  // per view, then once more for preparations that are fitted on all rows
  for (const bool leaky : {false, true})
    for (const std::size_t v : views) observed.emplace_back(train, v, leaky);
  std::vector<Observed*> of;
  for (Observed& each : observed) of.push_back(&each);
  const auto fit_one = [&](const One& one) {
    const auto& [f, at, work] = one;
    all[f].views_[at] = fit_view(train, views[at], kinds[f][views[at]], forms[f],
                                 *of[forms[f].leaky ? views.size() + at : at]);
  };
  if (fits.size() >= static_cast<std::size_t>(threads()) &&
      kSquashes * train.rows.size() * columns <= kMostNumbers) {
    std::ranges::stable_sort(fits, std::ranges::greater(), &One::work);
    parallel_for(fits.size(), 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = begin; k < end; ++k) fit_one(fits[k]);
    });
    return all;
  }
  std::ranges::stable_sort(fits, std::ranges::less(), &One::at);
  for (std::size_t k = 0; k < fits.size(); ++k) {
    fit_one(fits[k]);
    if (k + 1 == fits.size() || fits[k + 1].at != fits[k].at)
      for (const std::size_t at : {fits[k].at, views.size() + fits[k].at}) of[at]->let_go();
  }
  return all;
}

Items Preparation::apply(const Selection& selection, bool with_labels,
                         const std::vector<bool>& wanted) const {
  std::vector<int> source(views_.size());
  for (std::size_t v = 0; v < source.size(); ++v) source[v] = static_cast<int>(v);
  return apply(selection, source, with_labels, wanted);
}

Items Preparation::apply(const Selection& selection, const std::vector<int>& source, bool with_labels,
                         const std::vector<bool>& wanted) const {
  const Dataset& data = *selection.data;
  const std::size_t n = selection.rows.size(), m = views_.size();
  Items items;
  Matrix<std::uint8_t> W(n, m);
  for (std::size_t v = 0; v < m; ++v) {
    const ViewMap& map = views_[v];
    const auto from = static_cast<std::size_t>(std::max(source[v], 0));
    if (source[v] >= 0) {
      const View& view = data.views[from];
      if (view.columns() != map.columns)
        fail(Exit::mismatch, "{}: view '{}' has {} columns, the model expects {}", data.name, view.name,
             view.columns(), map.columns);
      for (std::size_t i = 0; i < n; ++i) W(i, v) = selection.has(i, from);
    }
    if (!wanted.empty() && !wanted[v]) {
      items.X.push_back(elsewhere(n, map.width()));
      continue;
    }
    Matrix<float> X(n, map.directions.empty() ? map.columns : map.directions.cols());
    if (source[v] >= 0) project(map, selection, from, X);
    if (!map.kernel.empty()) {
      X = with_kernel(map, X);
      for (std::size_t i = 0; i < n; ++i)
        if (W(i, v) == 0) std::ranges::fill(X.row(i), 0.f);
    }
    items.X.emplace_back(std::move(X));
  }
  items.W = std::move(W);
  find_backgrounds(items, wanted);
  if (with_labels && !data.labels.empty()) {
    const std::size_t c = data.label_count();
    Matrix<float> Y(n, c);
    Matrix<std::uint8_t> G(n, c);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < c; ++j) {
        const std::int8_t label = selection.label(i, j);
        G(i, j) = label != kUnknown;
        Y(i, j) = label == 1 ? 1.f : 0.f;
      }
    items.Y = std::move(Y);
    items.G = std::move(G);
  }
  return items;
}

void Preparation::find_backgrounds(Items& items, const std::vector<bool>& wanted) const {
  items.common.clear();
  for (std::size_t v = 0; v < views_.size(); ++v)
    items.common.push_back(wanted.empty() || wanted[v] ? background(views_[v], items, v) : Matrix<float>());
}

}  // namespace lacuna
