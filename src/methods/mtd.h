// The methods built on the two-channel network: MTD with its presets, the project's own network (method
// lacuna), and DICNet, which is the same network with one channel and another contrast. They differ in
// settings only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "methods/channels.h"
#include "methods/network_method.h"
#include "methods/row_memory.h"
#include "nn/mtd_options.h"

namespace lacuna {

class TwoChannelMethod : public NetworkMethod, public ChannelReader {
 public:
  void channels(const Items& items, std::vector<Matrix<float>>& shared,
                std::vector<Matrix<float>>& own) const override;
  Cost cost(const FitSize& size) const override;
  std::vector<bool> views_read(const ItemShape& shape, const Ranks& ranks) const override;

 protected:
  std::unique_ptr<Network> make_network(const NetworkShape& shape, std::uint64_t seed) const override;

  MtdOptions network_options_;
};

// A network method with all of the network's settings, and presets.
class PresetNetwork : public TwoChannelMethod {
 public:
  void declare(Options& options) override;

 protected:
  // Sets every setting to the network's default, then applies those of the preset.
  void put_in_place(const std::string& preset, const std::vector<Setting>& settings, PrepareOptions& prepare);
};

class Mtd final : public PresetNetwork {
 public:
  Traits traits() const override;
  void declare(Options& options) override;
  std::vector<std::string> presets() const override;
  void set_preset(const std::string& name, PrepareOptions& prepare) override;
};

class Lacuna final : public PresetNetwork, public MemoryHolder {
 public:
  Traits traits() const override;
  void declare(Options& options) override;
  std::vector<std::string> presets() const override;
  void set_preset(const std::string& name, PrepareOptions& prepare) override;
  std::vector<MemberPlan> plan(const std::string& preset, std::size_t members) const override;
  bool chooses(const std::string& preset) const override;
  std::vector<bool> views_read(const ItemShape&, const Ranks&) const override {
    return {};  // the memory of training rows needs all of them
  }
  void fit(const Items& train, const Items& val, FitContext& context) override;
  nlohmann::json selected() const override;  // {"epoch", "memory": its weight}
  void predict(const Items& items, MatrixView<float> scores) const override;
  void predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const override;
  void save(Tensors& file) const override;
  void load(const Tensors& file, const ItemShape& shape) override;
  nlohmann::json memory() const override { return memory_.about(); }

 private:
  MemoryOptions memory_options_;
  RowMemory memory_;  // empty: only the network predicts
};

}  // namespace lacuna
