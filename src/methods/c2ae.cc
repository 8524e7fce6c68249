// C2AE (AAAI 2017) after its authors' program (nn/c2ae.h). A single-view method: one model per view, of which
// the best on validation is kept. Their unused second decoder is left out, and the last batch of an epoch is not
// filled up. Theirs are 500 rows per step and momentum .99, which a view with a thousand rows does
// not survive: a step takes 100 rows here, momentum is .9 and the rate half of theirs (docs/methods.md).
#include "nn/c2ae.h"

#include <algorithm>

#include "methods/adapt.h"
#include "methods/all.h"
#include "methods/network_method.h"
#include "ops/device.h"

namespace lacuna {
namespace {

class C2ae final : public NetworkMethod {
 public:
  C2ae() {
    train_options_.epochs = 100;
    train_options_.batch = 100;
    train_options_.optimiser = Optimiser::rmsprop;
    train_options_.rate = 5e-5;
    train_options_.momentum = .9;
    train_options_.beta2 = .9;
    train_options_.epsilon = 1e-12;
    train_options_.weight_decay = 1e-3;
    train_options_.select = "AP";
    train_options_.patience = 30;
    precision_ = "f32";  // gradients are divided by their size: the roundings of small ones count
  }
  Traits traits() const override {
    return {.name = "c2ae",
            .title = "C2AE",
            .source = "AAAI 2017",
            .multi_view = false,
            .missing_views = false,
            .probabilities = true,
            .prepare = "auto"};
  }
  void declare(Options& o) override {
    options_.declare(o);
    o.add("epochs", train_options_.epochs, "passes over the training rows").range(1, 1e9);
    o.add("batch", train_options_.batch, "rows per step").range(1, 1e9);
    o.add("rate", train_options_.rate, "learning rate")
        .range(0, 1e3)
        .symbol("η")
        .tunable({"2e-5", "5e-5", "1e-4"});
    o.add("momentum", train_options_.momentum, "momentum").range(0, .999999);
    o.add("squares", train_options_.beta2, "decay of the running mean of squared gradients").range(0, .999999);
    o.add("weight-decay", train_options_.weight_decay, "weight decay of the matrices").range(0, 1e3);
    o.add("patience", train_options_.patience, "stop after this many epochs without improvement; 0 = never")
        .range(0, 1e9);
    o.add("select", train_options_.select,
          "which epoch to keep: best AP, best micro-F1 + macro-F1 as its authors do (F1), or the last")
        .choices({"AP", "F1", "last"});
    declare_precision(o);
  }
  std::vector<Variant> variants() const override {
    return {{"original",
             {{"batch", "500"},
              {"momentum", "0.99"},
              {"rate", "1e-4"},
              {"epochs", "50"},
              {"patience", "0"},
              {"select", "F1"},
              {"prepare", "zscore"}}}};
  }
  Cost cost(const FitSize& size) const override {
    const double n = static_cast<double>(size.rows), c = static_cast<double>(size.labels),
                 d = static_cast<double>(size.columns[0]), h = static_cast<double>(options_.hidden),
                 k = options_.reduction * c;
    const double weights = d * h + h * h + h * k + 2 * (c * h + h * k);
    const double epochs = static_cast<double>(train_options_.epochs),
                 steps = n / static_cast<double>(train_options_.batch),
                 rate = precision() == Precision::bf16 ? 80e9 : 50e9;
    return {current_device().cuda ? 20 * weights * steps * epochs / 2e12 : epochs * n * 6 * weights / rate,
            20 * weights + 4 * n * (d + 2 * c)};
  }

  void fit(const Items& train, const Items& val, FitContext& context) override {
    options_.complete = std::all_of(train.G.values().begin(), train.G.values().end(),
                                    [](std::uint8_t known) { return known != 0; });
    NetworkMethod::fit(train, val, context);
  }

 protected:
  std::unique_ptr<Network> make_network(const NetworkShape& shape, std::uint64_t seed) const override {
    return std::make_unique<C2aeNetwork<float>>(options_, shape, seed,
                                                make_ops(current_device(), precision()));
  }

 private:
  C2aeOptions options_;
};

}  // namespace

std::unique_ptr<Method> make_c2ae() {
  return per_view([]() -> std::unique_ptr<Method> { return std::make_unique<C2ae>(); });
}

}  // namespace lacuna
