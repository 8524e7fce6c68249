// Learning from all rows (the setting `all-rows`). A model learns nothing from rows that are held out for selection,
// which is a loss if few rows have labels. So there are two fits. The first one selects on held-out rows as usual: the
// epoch, the weight of a memory, candidates, thresholds, calibration. The second one applies these to training and
// validation rows together, and predicts. Figures of the validation rows are those of the first fit; no rows are left
// to measure the second.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/tensors.h"
#include "data/items.h"
#include "nn/fit.h"

namespace lacuna {

// What a checkpoint of the second fit stores of the first one.
struct FirstFit {
  Tensors model;            // its file
  nlohmann::json selected;  // Method::selected()
  Matrix<float> scores;     // of the validation rows
  Tensors second;           // the state of the second fit

  static std::optional<FirstFit> in(const Tensors* checkpoint);
  void save(Tensors& checkpoint) const;  // tensors are borrowed or owned as they are here; the scores are copied
};

// Training and validation rows together; labels that the fold hides are hidden in both. Exit::usage if they belong to
// different data.
Selection rows_of_both(const Selection& train, const Selection& val);
std::size_t labelled_count(const Selection& rows);  // those that do not take part by their views alone

// The context of one of the two fits, as the method sees it. `fill` makes a checkpoint of both from the state of the
// second.
class PassContext final : public FitContext {
 public:
  using Fill = FunctionRef<void(Tensors&, Tensors)>;
  explicit PassContext(FitContext& outer);  // the first
  PassContext(FitContext& outer, const nlohmann::json& selected, const Tensors* state, Fill fill);

  // Whether the fit was stopped from outside.
  bool ended() const { return ended_; }

  void before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) override;
  void after_step(FunctionRef<void(Tensors&)> snapshot) override;
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) override;
  void earlier_epoch(const EpochRecord& record) override { outer_.earlier_epoch(numbered(record)); }
  std::size_t fits_at_once(double bytes) const override { return outer_.fits_at_once(bytes); }
  void remark(const std::string& text) override { outer_.remark(text); }
  bool stopping() override;
  const Tensors* resume_from() override { return selected_ == nullptr ? outer_.resume_from() : state_; }
  const nlohmann::json* follows() const override { return selected_; }
  const Ranks& ranks() const override { return outer_.ranks(); }

 private:
  EpochRecord numbered(EpochRecord record) const;
  void wrap(Tensors& file, FunctionRef<void(Tensors&)> snapshot) const;

  FitContext& outer_;
  const nlohmann::json* selected_ = nullptr;  // null: the first fit
  const Tensors* state_ = nullptr;
  std::optional<Fill> fill_;
  bool ended_ = false;
};

}  // namespace lacuna
