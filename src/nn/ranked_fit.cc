#include "nn/ranked_fit.h"

namespace lacuna {
namespace {

// What rank 0 sends to the others.
struct Word {
  enum Kind : std::uint32_t { decided, snapshot, ended } kind = decided;
  std::int32_t value = 0;  // the decision, or the exit code
};

constexpr auto kNoSnapshot = [](Tensors&) {};

}  // namespace

bool RankedFit::agree(Snapshot snapshot, FunctionRef<bool(Snapshot)> decide) {
  const auto say = [&](Word word) { broadcast(ranks_, word); };
  if (!ranks_.leads())
    for (;;) {
      Word word;
      broadcast(ranks_, word);
      if (word.kind == Word::ended) throw EndedByLeader(static_cast<Exit>(word.value));
      if (word.kind == Word::decided) return word.value != 0;
      Tensors part;  // goes to rank 0 while it is filled
      snapshot(part);
    }
  bool decision = false;
  try {
    decision = decide([&](Tensors& file) {
      say({Word::snapshot, 0});
      snapshot(file);
    });
  } catch (const Error& error) {
    say({Word::ended, static_cast<std::int32_t>(error.code())});
    throw;
  }
  say({Word::decided, decision});
  return decision;
}

void RankedFit::before_training(std::uint64_t snapshot_bytes, std::uint64_t model_bytes) {
  agree(kNoSnapshot, [&](Snapshot) {
    own_.before_training(snapshot_bytes, model_bytes);
    return true;
  });
}

void RankedFit::after_step(Snapshot snapshot) {
  agree(snapshot, [&](Snapshot together) {
    own_.after_step(together);
    return true;
  });
}

bool RankedFit::after_epoch(const EpochRecord& record, Snapshot snapshot) {
  return agree(snapshot, [&](Snapshot together) { return own_.after_epoch(record, together); });
}

void RankedFit::remark(const std::string& text) {
  if (ranks_.leads()) own_.remark(text);
}

bool RankedFit::stopping() {
  return agree(kNoSnapshot, [&](Snapshot) { return own_.stopping(); });
}

}  // namespace lacuna
