#include "methods/network_method.h"

#include <cassert>
#include <nlohmann/json.hpp>

#include "base/tensors.h"
#include "nn/stored.h"
#include "ops/device.h"

namespace lacuna {
namespace {

Precision precision_from(const std::string& name) {
  return name == "bf16" ? Precision::bf16 : Precision::f32;
}
const char* precision_name(Precision precision) {
  return precision == Precision::bf16 ? "bf16" : "f32";
}

// What a network for predictions needs.
void read(const Tensors& file, Network& network) {
  const auto get = [&](const std::string& name, MatrixView<float> to) {
    get_tensor(network.engine(), file, name, to);
  };
  network.visit([&](const std::string& name, ParameterView<float> p, bool) { get(name, p.value); });
  network.visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool) { get(name, buffer); });
  network.settle();
}

}  // namespace

void NetworkMethod::declare_precision(Options& options) {
  options
      .add("precision", precision_,
           "precision of matrix products: f32, or bf16 with f32 accumulation; auto uses bf16 if the CPU or "
           "GPU supports it")
      .choices({"auto", "f32", "bf16"});
}

Precision NetworkMethod::chosen() const {
  if (precision_ != "auto") return precision_from(precision_);
  return fastest_precision(current_device());
}

void NetworkMethod::fit(const Items& train, const Items& val, FitContext& context) {
  NetworkShape shape{.columns = {}, .labels = train.labels(), .training_rows = train.rows()};
  shape.ranks = &context.ranks();
  for (const auto& X : train.X) shape.columns.push_back(X.cols());
  used_ = chosen();
  if (const Tensors* state = context.resume_from()) {  // continues as it began, on any machine
    const auto begun = state->metadata.find(kTrainPrecision);
    if (begun != state->metadata.end() && begun->is_string()) used_ = precision_from(*begun);
  }
  train_options_.precision = precision_name(used_);
  const nlohmann::json* first = context.follows();
  train_options_.last_epoch = first == nullptr ? 0 : first->at("epoch").get<std::int64_t>();
  network_ = make_network(shape, context.seed);
  try {
    kept_epoch_ = train_network(*network_, train, val, train_options_, context);
  } catch (const Diverged& diverged) {
    if (diverged.kept) settle(shape);
    throw;
  }
  settle(shape);
}

nlohmann::json NetworkMethod::selected() const {
  return {{"epoch", kept_epoch_}};
}

// Predictions are those of the file from here on, bit for bit. A network that was divided for its training becomes whole
// on every rank: from here on each of them can do without the others.
void NetworkMethod::settle(const NetworkShape& shape) {
  trained_parameters_ = network_->parameters();
  if (network_->ranks().alone()) return network_->settle();
  Tensors file;
  NetworkMethod::save(file);  // of the network alone
  gather(network_->ranks(), Wanted::by_everyone, file);
  NetworkShape whole{.columns = shape.columns, .labels = shape.labels, .prediction_only = true};
  auto network = make_network(whole, 0);
  read(file, *network);
  network_ = std::move(network);
}

void NetworkMethod::predict(const Items& items, MatrixView<float> scores) const {
  assert(network_);
  network_->predict(items, scores);
}

void NetworkMethod::predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const {
  assert(network_);
  if (!network_->predict_sets(items, sets, values)) Method::predict_sets(items, sets, values);
}

void NetworkMethod::save(Tensors& file) const {
  file.metadata[kTrainPrecision] = precision_name(used_);
  network_->visit([&](const std::string& name, ParameterView<float> p, bool for_prediction) {
    if (for_prediction) put_tensor(network_->engine(), p.mean.empty() ? p.value : p.mean, name, file);
  });
  network_->visit_buffers([&](const std::string& name, MatrixView<float> buffer, bool for_prediction) {
    if (for_prediction) put_tensor(network_->engine(), buffer, name, file);
  });
}

// A lying file cannot ask for more memory than it has bytes: the settings' own count is checked first.
void NetworkMethod::load(const Tensors& file, const ItemShape& items) {
  NetworkShape shape{.columns = items.columns, .labels = items.labels, .prediction_only = true};
  for (const auto& [name, tensor] : file.all()) shape.most_parameters += tensor.bytes.size() / sizeof(float);
  used_ = chosen();
  network_ = make_network(shape, 0);
  read(file, *network_);
}

}  // namespace lacuna
