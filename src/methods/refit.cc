#include "methods/refit.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"

namespace lacuna {
namespace {

constexpr const char* kRefit = "refit";  // key of a checkpoint's metadata
constexpr const char* kFirst = "first.";
constexpr const char* kSecond = "second.";
constexpr const char* kScores = "first_scores";

}  // namespace

std::optional<FirstFit> FirstFit::in(const Tensors* checkpoint) {
  if (checkpoint == nullptr || !checkpoint->metadata.contains(kRefit)) return std::nullopt;
  FirstFit first{checkpoint->part(kFirst), {}, checkpoint->matrix(kScores), checkpoint->part(kSecond)};
  try {
    const nlohmann::json& saved = checkpoint->metadata.at(kRefit);
    first.model.metadata = saved.at("model");
    first.selected = saved.at("selected");
    first.second.metadata = saved.at("second");
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "{}: broken checkpoint: {}", checkpoint->path(), error.what());
  }
  return first;
}

void FirstFit::save(Tensors& checkpoint) const {
  checkpoint.put_all(kFirst, model);
  checkpoint.put_all(kSecond, second);
  checkpoint.put_copy(kScores, scores.view());
  checkpoint.metadata[kRefit] = {
      {"model", model.metadata}, {"selected", selected}, {"second", second.metadata}};
}

Selection rows_of_both(const Selection& train, const Selection& val) {
  if (train.data != val.data || train.fold != val.fold)
    fail(Exit::usage, "--all-rows: training and validation rows must be of the same data and the same fold");
  Selection both = train;
  auto unlabelled =
      train.unlabelled == nullptr ? nullptr : std::make_shared<std::vector<std::uint8_t>>(*train.unlabelled);
  for (const std::uint32_t row : val.rows) {
    const bool there = unlabelled != nullptr && std::exchange((*unlabelled)[row], std::uint8_t{0}) != 0;
    if (!there) both.rows.push_back(row);
  }
  both.unlabelled = std::move(unlabelled);
  return both;
}

std::size_t labelled_count(const Selection& rows) {
  return static_cast<std::size_t>(std::ranges::count_if(rows.rows, [&](std::uint32_t row) {
    return rows.unlabelled == nullptr || (*rows.unlabelled)[row] == 0;
  }));
}

PassContext::PassContext(FitContext& outer) : outer_(outer) {
  seed = outer.seed;
  memory_limit = outer.memory_limit;
}

PassContext::PassContext(FitContext& outer, const nlohmann::json& selected, const Tensors* state, Fill fill)
    : PassContext(outer) {
  selected_ = &selected;
  state_ = state;
  fill_ = fill;
}

// The second fit's checkpoints hold the first one's model as well.
void PassContext::before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) {
  outer_.before_training(snapshot_bytes + model_bytes, model_bytes);
}

void PassContext::after_step(FunctionRef<void(Tensors&)> snapshot) {
  outer_.after_step([&](Tensors& file) { wrap(file, snapshot); });
}

bool PassContext::after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)> snapshot) {
  const bool go_on = outer_.after_epoch(numbered(record), [&](Tensors& file) { wrap(file, snapshot); });
  ended_ = ended_ || !go_on;
  return go_on;
}

bool PassContext::stopping() {
  ended_ = outer_.stopping() || ended_;
  return ended_;
}

EpochRecord PassContext::numbered(EpochRecord record) const {
  record.pass = selected_ == nullptr ? 0 : 1;
  record.passes = 2;
  return record;
}

void PassContext::wrap(Tensors& file, FunctionRef<void(Tensors&)> snapshot) const {
  if (!fill_) return snapshot(file);
  Tensors state;
  snapshot(state);
  (*fill_)(file, std::move(state));
}

}  // namespace lacuna
