// The floor: every item gets each label's frequency among the known training labels. First row of every
// table.
#include "methods/all.h"

namespace lacuna {
namespace {

class Prior final : public Method {
 public:
  Traits traits() const override {
    return {.name = "prior",
            .title = "prior (floor)",
            .source = "label frequency",
            .iterative = false,
            .probabilities = true,
            .prepare = "none"};
  }
  void declare(Options&) override {}

  void fit(const Items& train, const Items&, FitContext&) override {
    frequency_.assign(train.labels(), 0.f);
    for (std::size_t j = 0; j < train.labels(); ++j) {
      double positive = 0, known = 0;
      for (std::size_t i = 0; i < train.rows(); ++i) {
        known += train.G(i, j);
        positive += train.G(i, j) ? static_cast<double>(train.Y(i, j)) : 0;
      }
      frequency_[j] = static_cast<float>(known > 0 ? positive / known : 0);
    }
  }
  void predict(const Items& items, MatrixView<float> scores) const override {
    for (std::size_t i = 0; i < items.rows(); ++i)
      std::copy(frequency_.begin(), frequency_.end(), scores.row(i).begin());
  }
  void save(Tensors& file) const override { file.put("prior.frequency", std::span(frequency_)); }
  void load(const Tensors& file, const ItemShape& shape) override {
    frequency_.resize(shape.labels);
    file.get("prior.frequency", MatrixView<float>(frequency_.data(), 1, shape.labels));
  }
  std::uint64_t parameters() const override { return frequency_.size(); }

 private:
  std::vector<float> frequency_;
};

}  // namespace

std::unique_ptr<Method> make_prior() {
  return std::make_unique<Prior>();
}

}  // namespace lacuna
