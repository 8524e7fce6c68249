#include "methods/estimate.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"

namespace lacuna {
namespace {

constexpr double kLong = 15 * 60;  // seconds
// Beside what cost() counts: the program, and what each thread predicts blocks with.
constexpr double kProgramBytes = 48e6, kThreadBytes = 8e6, kColumnBytes = 6e3;

}  // namespace

FitSize fit_size(const Items& train) {
  FitSize size{
      .rows = train.rows(), .labels = train.labels(), .columns = {}, .present = {}, .mapped = train.mapped};
  for (std::size_t v = 0; v < train.views(); ++v) {
    size.columns.push_back(train.X[v].cols());
    std::size_t present = 0;
    for (std::size_t i = 0; i < train.rows(); ++i) present += train.W(i, v);
    size.present.push_back(present);
  }
  train.for_rows([&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin * size.labels; i < end * size.labels; ++i)
      size.positives += train.G.values()[i] && train.Y.values()[i] > .5f;
  });
  return size;
}

FitSize fit_size(const Selection& train, std::size_t components) {
  FitSize size{.rows = train.rows.size(), .labels = train.data->label_count(), .columns = {}, .present = {}};
  for (std::size_t v = 0; v < train.data->views.size(); ++v) {
    const std::size_t columns = train.data->views[v].columns();
    size.columns.push_back(components > 0 ? std::min(components, columns) : columns);
    std::size_t present = 0;
    for (std::size_t i = 0; i < train.rows.size(); ++i) present += train.has(i, v);
    size.present.push_back(present);
  }
  for (std::size_t i = 0; i < train.rows.size(); ++i)
    for (std::size_t j = 0; j < size.labels; ++j) size.positives += train.label(i, j) == 1;
  return size;
}

std::uint64_t machine_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGE_SIZE));
}

namespace {

Cost cost_of_rank(const Method& method, const FitSize& size, FitContext& context) {
  const double ranks = context.ranks().size();  // each takes its share
  const Cost cost = method.cost(size);
  return {cost.core_seconds / ranks, cost.bytes / ranks, cost.kept / ranks};
}

}  // namespace

void check_memory_limit(const Method& method, const FitSize& size, FitContext& context) {
  if (context.memory_limit == 0) return;
  const auto widest = static_cast<double>(*std::ranges::max_element(size.columns));
  const double needed = cost_of_rank(method, size, context).bytes + kProgramBytes +
                        (kThreadBytes + kColumnBytes * widest) * threads(),
               limit = static_cast<double>(context.memory_limit);
  if (needed > limit)
    fail(Exit::failed,
         "{} needs about {} for {} rows, {} views and {} labels, with the rows themselves in files, and the "
         "memory "
         "limit is {}: allow more, or use a smaller network or --shuffle-window",
         method.traits().name, bytes_text(needed), size.rows, size.columns.size(), size.labels,
         bytes_text(limit));
}

void announce_cost(const Method& method, const FitSize& size, int fits, FitContext& context) {
  check_memory_limit(method, size, context);
  const Cost cost = cost_of_rank(method, size, context);
  const auto memory = static_cast<double>(machine_memory());
  if (cost.bytes > memory)
    fail(Exit::failed,
         "{} would need about {} for {} rows, {} views and {} labels, and this machine has {}: use fewer "
         "rows, or another "
         "method (lacuna methods {} lists settings that may save memory)",
         method.traits().name, bytes_text(cost.bytes), size.rows, size.columns.size(), size.labels,
         bytes_text(memory), method.traits().name);
  const double seconds = fits * cost.core_seconds / static_cast<double>(threads());
  if (seconds > kLong)
    context.remark(fmt::format("{} will take about {} here, by its own estimate", method.traits().name,
                               duration_text(seconds)));
}

double floor_ap(const Items& train, const Items& val) {
  std::vector<float> frequency(train.labels());
  std::vector<double> known(train.labels()), positive(train.labels());
  train.for_rows([&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < frequency.size(); ++j)
        if (train.G(i, j)) known[j] += 1, positive[j] += static_cast<double>(train.Y(i, j));
  });
  for (std::size_t j = 0; j < frequency.size(); ++j)
    frequency[j] = known[j] > 0 ? static_cast<float>(positive[j] / known[j]) : 0;
  Matrix<float> scores(val.rows(), val.labels());
  for (std::size_t i = 0; i < scores.rows(); ++i) std::ranges::copy(frequency, scores.row(i).begin());
  return evaluate(scores, truth_of(val)).ap;
}

}  // namespace lacuna
