// Learning twice (the setting `all-rows`): rows that are held out for selection teach nothing, and where few rows have labels
// that is a loss. So a first fit selects on them as ever: the epoch, the weight of a memory, candidates, thresholds,
// calibration. A second fit does the same on training and validation rows together, and is what predicts. What was
// measured on the validation rows is measured of the first fit; nothing is left to measure the second one by.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "base/tensors.h"
#include "data/items.h"
#include "nn/fit.h"

namespace lacuna {

// Of a checkpoint that was written within the second fit: all that the first one left.
struct FirstFit {
  Tensors model;            // its file
  nlohmann::json selected;  // Method::selected()
  Matrix<float> scores;     // of the validation rows
  Tensors second;           // the state of the second fit

  static std::optional<FirstFit> in(const Tensors* checkpoint);
  void save(Tensors& checkpoint) const;  // tensors are borrowed or owned as they are here; the scores are copied
};

// The training rows and, as these have them, the validation rows: with the gaps of the fold in their labels. Exit::usage
// where they are not of the same data.
Selection rows_of_both(const Selection& train, const Selection& val);
std::size_t labelled_count(const Selection& rows);  // those that do not take part by their views alone

// One of the two fits, as it is seen by a method; `fill` makes a checkpoint of both from the state of the second.
class PassContext final : public FitContext {
 public:
  using Fill = FunctionRef<void(Tensors&, Tensors)>;
  explicit PassContext(FitContext& outer);  // the first
  PassContext(FitContext& outer, const nlohmann::json& selected, const Tensors* state, Fill fill);

  // By its surroundings, before its time.
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
