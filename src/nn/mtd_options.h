// The settings of the two-channel network. Every place where the paper and its authors' program compute different things
// is an option (docs/presets.md has the table), and so is every part of the default network. The values here are those
// of preset `best`, except for soft labels, which are off; methods/mtd.cc lists all presets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"
#include "nn/layers.h"
#include "ops/ops.h"

namespace lacuna {

// What is chosen by name, and the names (base/options.h).
enum class Fusion { mean, early, both };
enum class MaskStart { all, paper, authors };
enum class MaskLength { exact, inclusive };
enum class GraphForm { trace, pairwise };
enum class DecoderInput { fused, sum, shared };
enum class ReconstructionTarget { clean, masked };
enum class LabelWeight { none, sqrt, inverse };
using Names = std::vector<const char*>;
inline Names names_of(EndNorm) { return {"layer", "batch", "batch-noise", "batch-present", "none"}; }
inline Names names_of(Fusion) { return {"mean", "early", "both"}; }
inline Names names_of(MaskStart) { return {"all", "paper", "authors"}; }
inline Names names_of(MaskLength) { return {"exact", "inclusive"}; }
inline Names names_of(BceForm) { return {"log", "softplus"}; }
inline Names names_of(BceDivisor) { return {"known", "all"}; }
inline Names names_of(GraphForm) { return {"trace", "pairwise"}; }
inline Names names_of(Share) { return {"sum", "mean"}; }
inline Names names_of(ContrastCount) { return {"views", "pairs"}; }
inline Names names_of(ContrastPositives) { return {"others", "self"}; }
inline Names names_of(DecoderInput) { return {"fused", "sum", "shared"}; }
inline Names names_of(ReconstructionTarget) { return {"clean", "masked"}; }
inline Names names_of(LabelWeight) { return {"none", "sqrt", "inverse"}; }

struct MtdOptions {
  // Encoders: hidden widths, absolute ("1500") or relative to the view's columns ("0.8d").
  std::vector<std::string> encoder_widths = {"1024"};
  std::int64_t embedding = 512;    // d_e; 0 = as many as labels
  double width = 1;                // factor on all hidden widths
  EndNorm end_norm = EndNorm::layer;
  double norm_momentum = .1;       // of batch norm's running statistics
  double norm_epsilon = 1e-5;
  std::int64_t channels = 1;    // 2: shared and proprietary
  Fusion fusion = Fusion::mean;  // mean of the views' embeddings; early: one encoder of all views side by side; both
  std::vector<std::string> joint_widths = {"1024"};  // both: hidden widths of that encoder
  bool gate = true;             // with two channels: σ(Ō)·S̄; otherwise S̄ + Ō
  bool fused_relu = true;       // ReLU on the fused vector before classifier and graph loss

  // Masks and dropout, in training only.
  double mask_rate = .25;             // σ: share of a view's coordinates that is hidden
  MaskStart mask_start = MaskStart::paper;     // last start: all d-l, paper d-l-1, authors d-l-2
  MaskLength mask_length = MaskLength::exact;  // exact: l = floor(σd); inclusive: l + 1
  double view_dropout = .3;           // probability of hiding a present view, never all of a row
  double hidden_dropout = .5;         // after each hidden ReLU of the encoders
  double fused_dropout = .3;          // before the classifiers

  // Classifier and its loss.
  double classifier_bias = -4;        // initial biases of all classifiers; 0 = drawn like the others
  BceForm bce_form = BceForm::softplus;
  double bce_epsilon = 1e-5;          // inside the logarithms of `log`
  BceDivisor bce_divisor = BceDivisor::known;  // known: number of known labels; all: rows times labels
  LabelWeight label_weight = LabelWeight::none;  // rare labels weigh more (nn/label_weights.h)

  // Weak label-guided graph.
  double alpha = 0;
  double graph_eta = 100;
  bool graph_normalise = true;       // fused rows to length 1 first
  GraphForm graph_form = GraphForm::trace;  // trace; pairwise is twice that

  // Cross-channel contrast.
  double beta = 0;
  Share contrast_share = Share::sum;  // sum or mean over the batch's rows
  double contrast_factor = .5;
  double contrast_epsilon = 1e-6;             // added to each positive similarity
  ContrastCount contrast_count = ContrastCount::views;  // N: views k, or pairs k²
  ContrastPositives contrast_positives = ContrastPositives::others;  // shared-shared pairs: others (u ≠ v), self (u = v)

  // Reconstruction.
  double gamma = .01;
  std::vector<std::string> decoder_widths = {"512"};  // absolute, "0.8d", or relative to the embedding ("1e")
  DecoderInput decoder_input = DecoderInput::fused;   // sum: S_v + O_v; shared: S_v; fused: the fused vector before ReLU
  ReconstructionTarget reconstruction_target = ReconstructionTarget::clean;
  bool reconstruct_hidden = true;                     // with `fused`: also views that view dropout has hidden

  // Classifiers of single views, in training only. With early fusion: the same network on a part of the
  // views.
  double view_weight = 3;
  double view_teacher = .9;  // share taught by the fused probability; the rest by known labels
  double subset_keep = .4;   // early fusion: probability that a view stays in the subset

  // Soft labels for unknown entries: given by teachers with the items, otherwise the network's own.
  double guess_weight = 0;       // of an unknown entry; a known one weighs 1
  std::int64_t guess_from = 20;  // first epoch (0, 1, ...) that uses them
  std::int64_t guess_every = 5;  // epochs after which own ones are renewed
  double guess_links = 0;        // how much a row's known labels say about its unknown ones (nn/soft_labels.h)

  // Instance contrast between pairs of views (the loss of DICNet; not an option of MTD).
  double instance_weight = 0, instance_tau = .5;

  void check() const;  // Exit::usage where single values are right but do not go together

  void declare(Options& o) {
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
};

// "1500", "0.8d", "1e" -> a width of at least 1.
std::size_t resolve_width(const std::string& text, std::size_t columns, std::size_t embedding, double factor);
// The same for a list; empty texts are left out.
std::vector<std::size_t> resolve_widths(const std::vector<std::string>& texts, std::size_t columns,
                                        std::size_t embedding, double factor);
BceSettings bce_settings(const MtdOptions& options);

}  // namespace lacuna
