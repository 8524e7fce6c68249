#include "methods/network_method.h"

#include <cassert>

namespace lacuna {

void NetworkMethod::declare_precision(Options& options) {
  options.add("precision", precision_, "of products: f32, or bf16 factors with f32 sums; auto takes f32")
      .choices({"auto", "f32", "bf16"});
}

void NetworkMethod::fit(const Items& train, const Items& val, FitContext& context) {
  NetworkShape shape{.columns = {}, .labels = train.labels(), .training_rows = train.rows()};
  for (const auto& X : train.X) shape.columns.push_back(X.cols());
  network_ = make_network(shape, context.seed);
  train_network(*network_, train, val, train_options_, context);
}

void NetworkMethod::predict(const Items& items, MatrixView<float> scores) const {
  assert(network_);
  network_->predict(items, scores);
}

void NetworkMethod::save(Tensors& file) const {
  network_->visit([&](const std::string& name, ParameterView<float> p, bool for_prediction) {
    if (for_prediction) file.put(name, p.mean.empty() ? p.value : p.mean);
  });
  network_->visit_buffers([&](const std::string& name, MatrixView<float> buffer) {
    if (name.ends_with(".running")) file.put(name, buffer);
  });
}

// A lying file cannot ask for more memory than it has bytes: the settings' own count is checked first.
void NetworkMethod::load(const Tensors& file, const ItemShape& items) {
  NetworkShape shape{.columns = items.columns, .labels = items.labels, .prediction_only = true};
  for (const auto& [name, tensor] : file.all()) shape.most_parameters += tensor.bytes.size() / sizeof(float);
  network_ = make_network(shape, 0);
  network_->visit([&](const std::string& name, ParameterView<float> p, bool) { file.get(name, p.value); });
  network_->visit_buffers([&](const std::string& name, MatrixView<float> buffer) { file.get(name, buffer); });
}

}  // namespace lacuna
