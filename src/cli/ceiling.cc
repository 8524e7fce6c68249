#include "cli/ceiling.h"

#include <fmt/core.h>

#include <algorithm>

#include "data/dataset.h"

namespace lacuna::cli {

namespace {

std::string ceiling_text(MatrixView<const std::int8_t> truth) {
  std::size_t known = 0, positive = 0;
  for (std::size_t i = 0; i < truth.rows; ++i) {
    const auto row = truth.row(i);
    known += std::ranges::any_of(row, [](std::int8_t y) { return y != kUnknown; });
    positive += std::ranges::any_of(row, [](std::int8_t y) { return y == 1; });
  }
  if (truth.cols < 2 || known == 0 || 5 * positive > 4 * known) return "";
  return fmt::format(
      "{} of them {} no positive label, which AP and 1-OE count as wrong: they can reach {:.4f}; AUC and "
      "macro-AUC can reach 1",
      known - positive, known - positive == 1 ? "has" : "have",
      static_cast<double>(positive) / static_cast<double>(known));
}

}  // namespace

std::string ceiling_line(MatrixView<const std::int8_t> truth) {
  const std::string text = ceiling_text(truth);
  return text.empty() ? "" : text + "\n";
}

std::string ceiling_sentence(MatrixView<const std::int8_t> truth) {
  const std::string text = ceiling_text(truth);
  return text.empty() ? "" : text + ".";
}

}  // namespace lacuna::cli
