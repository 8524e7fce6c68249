#include "nn/mtd_options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {

void MtdOptions::declare(Options& o) {
  o.add("encoder-widths", encoder_widths,
        "hidden widths of the encoders, absolute or relative to the view (0.8d)");
  o.add("embedding", embedding, "size of the embedding; 0 = number of labels")
      .range(0, 1 << 20)
      .symbol("d_e");
  o.add("width", width, "factor on all hidden widths").range(1e-4, 100);
  o.add("end-norm", end_norm, "normalisation at the end of the encoders")
      .choices({"layer", "batch", "batch-noise", "batch-present", "none"});
  o.add("norm-momentum", norm_momentum, "momentum of batch norm's running statistics").range(0, 1);
  o.add("norm-epsilon", norm_epsilon, "added to variances").range(1e-12, 1);
  o.add("channels", channels, "1: shared only; 2: shared and proprietary").range(1, 2);
  o.add("fusion", fusion, "mean: of the views' embeddings; early: one encoder of the concatenated views; "
                          "both: two branches")
      .choices({"mean", "early", "both"});
  o.add("joint-widths", joint_widths, "with --fusion both: hidden widths of the encoder of the concatenated "
                                      "views");
  o.add("gate", gate, "with two channels: sigmoid(O) times S; otherwise their sum");
  o.add("fused-relu", fused_relu, "ReLU on the fused vector before classifier and graph loss");

  o.add("mask-rate", mask_rate, "share of each view's coordinates masked in training")
      .range(0, .95)
      .symbol("σ");
  o.add("mask-start", mask_start,
        "last start of a masked fragment of l of d coordinates: all d-l, paper d-l-1, authors d-l-2")
      .choices({"all", "paper", "authors"});
  o.add("mask-length", mask_length, "exact: l coordinates; inclusive: l + 1").choices({"exact", "inclusive"});
  o.add("view-dropout", view_dropout, "probability of hiding a present view in training")
      .range(0, .95)
      .tunable({"0", "0.15", "0.3"});
  o.add("hidden-dropout", hidden_dropout, "dropout after each hidden layer of the encoders")
      .range(0, .95)
      .tunable({"0", "0.3", "0.5"});
  o.add("fused-dropout", fused_dropout, "dropout before the classifiers")
      .range(0, .95)
      .tunable({"0", "0.3", "0.5"});

  o.add("classifier-bias", classifier_bias, "initial bias of the classifiers; 0 = random").range(-100, 100);
  o.add("bce-form", bce_form, "cross-entropy: softplus (exact), or log with an epsilon")
      .choices({"softplus", "log"});
  o.add("bce-epsilon", bce_epsilon, "added inside the logarithms of bce-form log").range(0, .1);
  o.add("bce-divisor", bce_divisor, "divide by the number of known labels, or of all").choices({"known", "all"});

  o.add("label-weight", label_weight,
        "weight of a label in the losses, by its share in training: none, share^-1/2 or 1/share, so that rare "
        "labels count more")
      .choices({"none", "sqrt", "inverse"});

  o.add("alpha", alpha, "weight of the label-guided graph loss").range(0, 1e6).symbol("α");
  o.add("graph-eta", graph_eta, "constant of the label graph").range(1e-9, 1e12).symbol("η");
  o.add("graph-normalise", graph_normalise, "normalise the fused rows for the graph loss");
  o.add("graph-form", graph_form, "trace, or pairwise (twice that)").choices({"trace", "pairwise"});

  o.add("beta", beta, "weight of the cross-channel contrast").range(0, 1e6).symbol("β");
  o.add("contrast-share", contrast_share, "sum or mean over the rows of a batch").choices({"sum", "mean"});
  o.add("contrast-factor", contrast_factor, "constant factor of the contrast").range(0, 1e6);
  o.add("contrast-epsilon", contrast_epsilon, "added to each positive similarity").range(0, 1);
  o.add("contrast-count", contrast_count, "N of the normalisers: views k, or pairs k²")
      .choices({"views", "pairs"});
  o.add("contrast-positives", contrast_positives,
        "positive pairs: others (u ≠ v), self (u = v, as first printed)")
      .choices({"others", "self"});

  o.add("gamma", gamma, "weight of the reconstruction").range(0, 1e6).symbol("γ");
  o.add("decoder-widths", decoder_widths,
        "hidden widths of the decoders: absolute, 0.8d, or 1e for the embedding");
  o.add("decoder-input", decoder_input, "sum: S + O of the view; shared: S alone; fused: the fused vector")
      .choices({"fused", "sum", "shared"});
  o.add("reconstruction-target", reconstruction_target, "clean input, or masked as the encoder saw it")
      .choices({"clean", "masked"});
  o.add("reconstruct-hidden", reconstruct_hidden,
        "also reconstruct hidden views from the fused vector");

  o.add("view-weight", view_weight, "weight of the single-view classifiers").range(0, 1e6);
  o.add("view-teacher", view_teacher, "share of their loss that is distilled from the fused probability").range(0, 1);
  o.add("subset-keep", subset_keep, "early fusion: probability that a view stays in the random subset")
      .range(0, 1);

  o.add("guess-weight", guess_weight, "weight of soft labels for unknown entries").range(0, 1e6);
  o.add("guess-from", guess_from, "first epoch that uses them").range(0, 1e9);
  o.add("guess-every", guess_every, "epochs between updates of a network's own soft labels")
      .range(1, 1e9);
  o.add("guess-links", guess_links,
        "weight of a row's known labels in the soft labels of its unknown ones")
      .range(0, 100);
}

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
