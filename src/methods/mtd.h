// The methods built on the two-channel network: MTD with its presets, and DICNet, which is the same network
// with one channel and another contrast. They differ in settings only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "methods/method.h"
#include "nn/mtd.h"
#include "nn/mtd_options.h"
#include "nn/train.h"

namespace lacuna {

class NetworkMethod : public Method {
 public:
  void fit(const Items& train, const Items& val, FitContext& context) override;
  void predict(const Items& items, MatrixView<float> scores) const override;
  void save(Tensors& file) const override;
  void load(const Tensors& file, const ItemShape& shape) override;
  std::uint64_t parameters() const override { return network_ ? network_->parameters() : 0; }

  // Cosines between the embeddings of one item: shared ones of all views, then proprietary ones (nn/mtd.h).
  Matrix<float> channel_similarity(const Items& items, std::size_t row) const;

 protected:
  void declare_precision(Options& options);

  MtdOptions network_options_;
  TrainOptions train_options_;
  std::string precision_ = "auto";  // auto, f32, bf16

 private:
  std::unique_ptr<Network> make_network(const NetworkShape& shape, std::uint64_t seed) const;

  std::unique_ptr<Network> network_;
};

class Mtd final : public NetworkMethod {
 public:
  Traits traits() const override;
  void declare(Options& options) override;
  std::vector<std::string> presets() const override;
  void set_preset(const std::string& name, PrepareOptions& prepare) override;
};

}  // namespace lacuna
