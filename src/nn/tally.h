// The losses of a step while they are in the engine's memory. The engine writes them there, and they are read
// once, when the step is finished. Two steps may be in progress.
#pragma once

#include <array>
#include <memory>

#include "nn/network.h"
#include "ops/engine.h"

namespace lacuna {

class Tally {
 public:
  bool ready() const { return engine_ != nullptr; }
  // Before the first step: the largest number of parts of a loss.
  void reserve(const Engine& engine, std::size_t most_parts) {
    engine_ = &engine;
    parts_ = most_parts;
    memory_ = engine.allocate_mapped(kSteps * Losses::kMost * parts_ * sizeof(double));
  }

  void begin() {
    Sheet& sheet = sheets_[begun_ % kSteps];
    sheet.count = 0;
  }
  // Adds a loss of the step; the total adds losses in the order of these calls. The value of the loss is the sum of
  // `parts` numbers in the engine's memory, at the returned address and after it.
  double* add(const char* name, double weight, std::size_t parts = 1) {
    Sheet& sheet = sheets_[begun_ % kSteps];
    if (sheet.count + 1 == Losses::kMost || parts > parts_)  // the total comes too
      throw std::length_error("a step has more losses than Tally holds");
    sheet.entries[sheet.count] = {name, weight, parts};
    return values(begun_) + sheet.count++ * parts_;
  }
  void end() {
    sheets_[begun_ % kSteps].mark = engine_->mark();
    ++begun_;
  }
  // Reads the losses of the oldest step that has not been read.
  Losses read() {
    const Sheet& sheet = sheets_[read_ % kSteps];
    engine_->wait(sheet.mark);
    Losses losses;
    losses.add("total", 0);
    for (std::size_t k = 0; k < sheet.count; ++k) {
      double value = 0;
      for (std::size_t p = 0; p < sheet.entries[k].parts; ++p) value += values(read_)[k * parts_ + p];
      losses.entries[0].value += sheet.entries[k].weight * value;
      losses.add(sheet.entries[k].name, value);
    }
    ++read_;
    return losses;
  }

 private:
  static constexpr std::size_t kSteps = 2;
  struct Sheet {
    struct Entry {
      const char* name;
      double weight;
      std::size_t parts;
    };
    std::array<Entry, Losses::kMost> entries{};
    std::size_t count = 0;
    std::uint64_t mark = 0;
  };
  double* values(std::size_t step) const {
    return static_cast<double*>(memory_.get()) + step % kSteps * Losses::kMost * parts_;
  }

  const Engine* engine_ = nullptr;
  std::shared_ptr<void> memory_;
  std::size_t parts_ = 1;
  std::array<Sheet, kSteps> sheets_;
  std::size_t begun_ = 0, read_ = 0;
};

}  // namespace lacuna
