#include "experiments/similarity.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/random.h"
#include "experiments/cell.h"
#include "methods/channels.h"

namespace lacuna {

using nlohmann::json;

namespace {

// Sums of cosines over rows and the number of rows that have both views, for each pair of the 2m channels.
struct Cosines {
  Matrix<double> sum, rows;  // (2m, 2m)

  json means() const {
    json lines = json::array();
    for (std::size_t a = 0; a < sum.rows(); ++a) {
      json line = json::array();
      for (std::size_t b = 0; b < sum.cols(); ++b)
        line.push_back(rows(a, b) > 0 ? json(sum(a, b) / rows(a, b)) : json(nullptr));
      lines.push_back(std::move(line));
    }
    return lines;
  }
};

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return sum;
}

void add_row(const Items& items, const std::vector<Matrix<float>>& shared,
             const std::vector<Matrix<float>>& own, std::size_t i, Cosines& to) {
  const std::size_t m = items.views();
  const auto channel = [&](std::size_t a) { return a < m ? shared[a].row(i) : own[a - m].row(i); };
  for (std::size_t a = 0; a < 2 * m; ++a)
    for (std::size_t b = 0; b < 2 * m; ++b) {
      if (items.W(i, a % m) == 0 || items.W(i, b % m) == 0) continue;
      const double norms = std::sqrt(dot(channel(a), channel(a)) * dot(channel(b), channel(b)));
      to.sum(a, b) += norms > 0 ? dot(channel(a), channel(b)) / norms : 0;
      to.rows(a, b) += 1;
    }
}

class Watcher final : public FitContext {
 public:
  Watcher(const Model& model, const ChannelReader& reader, const Selection& test,
          std::vector<std::int64_t> epochs)
      : model_(model), reader_(reader), test_(test), epochs_(std::move(epochs)) {}

  void before_training(std::uint64_t, std::uint64_t) override { look(0); }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    if (stop_requested) fail(Exit::interrupted, "interrupted");
    if (record.fit() == 0) look(record.epoch);
    return true;
  }
  json found = json::array();
  std::size_t sample = 0;

 private:
  void look(std::int64_t epoch) {
    if (std::find(epochs_.begin(), epochs_.end(), epoch) == epochs_.end()) return;
    if (!items_) {  // the preparation is fitted by now
      const Dataset filled = model_.columns().filled(*test_.data);
      Selection test = test_;
      test.data = &filled;
      items_ = model_.preparation().apply(test, false);
      // A random one of the rows with the most views.
      std::size_t most = 0;
      std::vector<std::size_t> fitting;
      for (std::size_t i = 0; i < items_->rows(); ++i) {
        const auto row = items_->W.row(i);
        const auto views = static_cast<std::size_t>(std::count(row.begin(), row.end(), std::uint8_t{1}));
        if (views > most) most = views, fitting.clear();
        if (views == most) fitting.push_back(i);
      }
      sample = fitting[Random(seed, Purpose::search).below(fitting.size())];
    }
    std::vector<Matrix<float>> shared, own;
    reader_.channels(*items_, shared, own);
    const std::size_t width = 2 * items_->views();
    Cosines one{Matrix<double>(width, width), Matrix<double>(width, width)}, all = one;
    add_row(*items_, shared, own, sample, one);
    for (std::size_t i = 0; i < items_->rows(); ++i) add_row(*items_, shared, own, i, all);
    found.push_back({{"epoch", epoch}, {"sample", one.means()}, {"mean", all.means()}});
  }

  const Model& model_;
  const ChannelReader& reader_;
  const Selection& test_;
  std::vector<std::int64_t> epochs_;
  std::optional<Items> items_;
};

}  // namespace

json channel_similarity(Model& model, const std::vector<std::int64_t>& epochs, const Selection& train,
                        const Selection& val, const Selection& test, std::uint64_t seed) {
  const auto* reader = dynamic_cast<const ChannelReader*>(&model.method());
  if (reader == nullptr)
    fail(Exit::usage, "method {} has no shared and proprietary channels to compare; mtd:authors has",
         model.method().traits().name);
  Watcher watcher(model, *reader, test, epochs);
  watcher.seed = seed;
  model.fit(train, val, watcher);
  json views = json::array();
  for (const auto& view : test.data->views) views.push_back(view.name);
  return {{"views", views}, {"sample", test.rows[watcher.sample]}, {"epochs", watcher.found}};
}

}  // namespace lacuna
