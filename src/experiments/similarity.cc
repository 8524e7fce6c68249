#include "experiments/similarity.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "experiments/cell.h"
#include "methods/mtd.h"

namespace lacuna {

using nlohmann::json;

namespace {

// Sums of cosines over rows and the number of rows that have both views, for each pair of channels.
struct Cosines {
  Matrix<double> sum, rows;  // (h, h)

  void add(const Items& items, std::size_t i, MatrixView<const float> cosines) {
    if (sum.empty()) sum = Matrix<double>(cosines.rows, cosines.cols), rows = sum;
    for (std::size_t a = 0; a < cosines.rows; ++a)
      for (std::size_t b = 0; b < cosines.cols; ++b) {
        if (items.W(i, a % items.views()) == 0 || items.W(i, b % items.views()) == 0) continue;
        sum(a, b) += static_cast<double>(cosines(a, b));
        rows(a, b) += 1;
      }
  }
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

class Watcher final : public FitContext {
 public:
  Watcher(const Model& model, const NetworkMethod& network, const Selection& test,
          std::vector<std::int64_t> epochs)
      : model_(model), network_(network), test_(test), epochs_(std::move(epochs)) {}

  void before_training(std::uint64_t, std::uint64_t) override { look(0); }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    if (stop_requested) fail(Exit::interrupted, "interrupted");
    look(record.epoch);
    return true;
  }
  json found = json::array();
  std::size_t sample = 0;

 private:
  void look(std::int64_t epoch) {
    if (std::find(epochs_.begin(), epochs_.end(), epoch) == epochs_.end()) return;
    if (!items_) {  // the preparation is fitted by now
      items_ = model_.preparation().apply(test_, false);
      std::size_t most = 0;
      for (std::size_t i = 0; i < items_->rows(); ++i) {
        const auto row = items_->W.row(i);
        const auto views = static_cast<std::size_t>(std::count(row.begin(), row.end(), std::uint8_t{1}));
        if (views > most) most = views, sample = i;
      }
    }
    Cosines one, all;
    for (std::size_t i = 0; i < items_->rows(); ++i) {
      const Matrix<float> cosines = network_.channel_similarity(*items_, i);
      all.add(*items_, i, cosines);
      if (i == sample) one.add(*items_, i, cosines);
    }
    found.push_back({{"epoch", epoch}, {"sample", one.means()}, {"mean", all.means()}});
  }

  const Model& model_;
  const NetworkMethod& network_;
  const Selection& test_;
  std::vector<std::int64_t> epochs_;
  std::optional<Items> items_;
};

}  // namespace

json channel_similarity(Model& model, const std::vector<std::int64_t>& epochs, const Selection& train,
                        const Selection& val, const Selection& test, std::uint64_t seed) {
  const auto* network = dynamic_cast<const NetworkMethod*>(&model.method());
  if (network == nullptr)
    fail(Exit::usage, "method {} has no channels to compare; mtd has", model.method().traits().name);
  Watcher watcher(model, *network, test, epochs);
  watcher.seed = seed;
  model.fit(train, val, watcher);
  json views = json::array();
  for (const auto& view : test.data->views) views.push_back(view.name);
  return {{"views", views}, {"sample", test.rows[watcher.sample]}, {"epochs", watcher.found}};
}

}  // namespace lacuna
