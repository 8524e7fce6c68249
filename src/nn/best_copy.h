// A copy of the numbers that predictions read, as they were after the best epoch. It lies in the engine's memory if
// there is room, so that no data move between device and host; otherwise in the host's memory.
#pragma once

#include <map>
#include <string>

#include "base/tensors.h"
#include "nn/network.h"
#include "nn/stored.h"
#include "ops/engine.h"

namespace lacuna {

class BestCopy {
 public:
  explicit BestCopy(Network& network) : network_(network) {}

  // The mean if there is one, otherwise the value; and the buffers.
  void take() {
    if (place_ == nullptr) choose_place();
    each([this](const std::string& name, MatrixView<float> from, MatrixView<float>) {
      EngineMatrix<float>& to = copies_[name];
      if (to.rows() != from.rows || to.cols() != from.cols)
        to = EngineMatrix<float>(*place_, from.rows, from.cols);
      if (is_near()) {
        duplicate<float>(*place_, from, to);
      } else {
        download<float>(network_.engine(), from, to);
      }
    });
  }
  void put_back() {
    each([this](const std::string& name, MatrixView<float> read, MatrixView<float> also) {
      const MatrixView<const float> copy = std::as_const(copies_.at(name)).view();
      for (const MatrixView<float>& to : {read, also}) {
        if (to.empty()) continue;
        is_near() ? duplicate<float>(*place_, copy, to) : upload<float>(network_.engine(), copy, to);
      }
    });
  }

  void save(Tensors& file) const {
    for (const auto& [name, copy] : copies_) put_tensor(*place_, copy.view(), "best." + name, file);
  }
  void load(const Tensors& file) {
    take();  // for the shapes
    for (auto& [name, copy] : copies_) get_tensor(*place_, file, "best." + name, copy.view());
  }

 private:
  bool is_near() const { return place_->place() == network_.engine().place(); }
  // body(name, what predictions read, what else is to be the same).
  void each(FunctionRef<void(const std::string&, MatrixView<float>, MatrixView<float>)> body) {
    network_.visit([&](const std::string& name, ParameterView<float> p, bool for_prediction) {
      if (for_prediction) p.mean.empty() ? body(name, p.value, {}) : body(name, p.mean, p.value);
    });
    network_.visit_buffers(
        [&](const std::string& name, MatrixView<float> buffer, bool) { body(name, buffer, {}); });
  }
  void choose_place() {
    std::size_t bytes = 0;
    each([&](const std::string&, MatrixView<float> read, MatrixView<float>) {
      bytes += read.size() * sizeof(float);
    });
    place_ = network_.engine().room() > bytes ? &network_.engine() : &host_engine();
  }

  Network& network_;
  const Engine* place_ = nullptr;
  std::map<std::string, EngineMatrix<float>> copies_;
};

}  // namespace lacuna
