// One fit of a member of an ensemble: its part of the context and of the items.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "methods/ensemble.h"
#include "nn/fit.h"

namespace lacuna {

// Fit `number` of `count`; its snapshots are wrapped into snapshots of the ensemble.
class MemberContext final : public FitContext {
 public:
  using Wrap = FunctionRef<void(Tensors&, FunctionRef<void(Tensors&)>)>;
  MemberContext(FitContext& outer, std::size_t number, std::size_t count, std::uint64_t own_seed,
                const nlohmann::json* first, std::optional<Tensors> state, Wrap wrap)
      : outer_(outer), number_(number), count_(count), first_(first), state_(std::move(state)), wrap_(wrap) {
    seed = own_seed;
  }
  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override {
    outer_.before_training(snapshot_bytes + model_bytes * number_, model_bytes * count_);
  }
  void after_step(FunctionRef<void(Tensors&)> snapshot) override {
    outer_.after_step([&](Tensors& file) { wrap_(file, snapshot); });
  }
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override {
    EpochRecord numbered = record;
    numbered.member = static_cast<std::int64_t>(number_);
    numbered.members = static_cast<std::int64_t>(count_);
    return outer_.after_epoch(numbered, [&](Tensors& file) { wrap_(file, snapshot); });
  }
  bool stopping() override { return outer_.stopping(); }
  const Tensors* resume_from() override { return state_ ? &*state_ : nullptr; }
  const nlohmann::json* follows() const override { return first_; }
  void remark(const std::string& text) override { outer_.remark(text); }
  const Ranks& ranks() const override { return outer_.ranks(); }

 private:
  FitContext& outer_;
  std::size_t number_, count_;
  const nlohmann::json* first_;
  std::optional<Tensors> state_;
  Wrap wrap_;
};

// Some rows of the items in one preparation (form), with their labels, and Q if there is any.
Items member_rows(const Items& items, std::size_t form, const SharedMatrix<float>& Q,
                  std::span<const std::uint32_t> rows);
// All of them.
Items member_items(const Items& items, std::size_t form, const SharedMatrix<float>& Q);

}  // namespace lacuna
