#include "nn/mtd_options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {

void MtdOptions::check() const {
  if (channels == 1 && beta > 0)
    fail(Exit::usage, "--beta {}: the cross-channel contrast needs two channels (--channels 2), there is one",
         beta);
  if (guess_links > 0 && guess_weight == 0)
    fail(Exit::usage, "--guess-links {} has no effect: there are no soft labels (--guess-weight 0)",
         guess_links);
  if (gamma > 0 && decoder_input == DecoderInput::fused &&
      reconstruction_target == ReconstructionTarget::masked)
    fail(Exit::usage,
         "--reconstruction-target masked needs --decoder-input sum: a fused vector has no mask of its own");
  if (fusion == Fusion::early && (channels != 1 || alpha > 0 || beta > 0 || gamma > 0 || instance_weight > 0))
    fail(Exit::usage,
         "--fusion early has one channel and no graph, contrast or reconstruction: it needs --channels 1 "
         "--alpha 0 --beta 0 --gamma 0");
  for (const auto* widths : {&encoder_widths, &decoder_widths, &joint_widths})
    for (const auto& text : *widths)
      if (!trim(text).empty()) resolve_width(text, 1, 1, 1);  // none: a single linear layer
}

std::size_t resolve_width(const std::string& text, std::size_t columns, std::size_t embedding,
                          double factor) {
  const std::string_view all = trim(text);
  const bool by_columns = all.ends_with('d'), by_embedding = all.ends_with('e');
  const auto value = parse_double(all.substr(0, all.size() - (by_columns || by_embedding ? 1 : 0)));
  if (!value || !(*value > 0) || *value > 1e7)
    fail(Exit::usage,
         "'{}' is not a layer width; write 1500, 0.8d (of the view's columns) or 1e (of the embedding)", text);
  const double base = by_columns     ? static_cast<double>(columns)
                      : by_embedding ? static_cast<double>(embedding)
                                     : 1;
  return static_cast<std::size_t>(std::max(1.0, std::round(*value * base * factor)));
}

std::vector<std::size_t> resolve_widths(const std::vector<std::string>& texts, std::size_t columns,
                                        std::size_t embedding, double factor) {
  std::vector<std::size_t> widths;
  for (const auto& text : texts)
    if (!trim(text).empty()) widths.push_back(resolve_width(text, columns, embedding, factor));
  return widths;
}

BceSettings bce_settings(const MtdOptions& options) {
  return {.form = options.bce_form, .divisor = options.bce_divisor, .epsilon = options.bce_epsilon};
}

}  // namespace lacuna
