// A method that is a network: building, training, predicting, saving and loading are the same for all of
// them.
#pragma once

#include <memory>
#include <string>

#include "methods/method.h"
#include "nn/network.h"
#include "nn/train.h"
#include "ops/gemm.h"

namespace lacuna {

class NetworkMethod : public Method {
 public:
  void fit(const Items& train, const Items& val, FitContext& context) override;
  nlohmann::json selected() const override;  // {"epoch"}
  void predict(const Items& items, MatrixView<float> scores) const override;
  void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const override;
  void save(Tensors& file) const override;
  void load(const Tensors& file, const ItemShape& shape) override;
  std::uint64_t parameters() const override {
    return trained_parameters_ > 0 ? trained_parameters_ : network_ ? network_->parameters() : 0;
  }

 protected:
  virtual std::unique_ptr<Network> make_network(const NetworkShape& shape, std::uint64_t seed) const = 0;
  const Network* network() const { return network_.get(); }  // exists from the start of fit on
  void declare_precision(Options& options);
  Precision precision() const { return used_; }  // the resolved precision of the network

  TrainOptions train_options_;
  std::string precision_ = "auto";  // auto, f32, bf16

 private:
  Precision chosen() const;
  void settle(const NetworkShape& shape);  // after training

  Precision used_ = Precision::f32;
  std::unique_ptr<Network> network_;
  std::int64_t kept_epoch_ = 0;           // after fit()
  std::uint64_t trained_parameters_ = 0;  // after fit(): including those that only training needs
};

}  // namespace lacuna
