// DICNet (AAAI 2023), the supervised program of its authors: the network of nn/mtd.h with one channel, an
// embedding as wide as there are labels, no masks, and an instance contrast between pairs of views. Missing
// instances are zero rows; their program fills them with noise, which reaches batch norm's statistics only
// (preset `original`).
#include "methods/all.h"
#include "methods/mtd.h"

namespace lacuna {
namespace {

class Dicnet final : public TwoChannelMethod {
 public:
  Dicnet() {
    MtdOptions& n = network_options_;
    n.encoder_widths = {"0.8d", "0.8d", "1500"};
    n.decoder_widths = {"1e", "1500", "0.8d", "0.8d"};
    n.embedding = 0;
    n.end_norm = EndNorm::batch;
    n.channels = 1;
    n.mask_rate = n.view_dropout = n.hidden_dropout = n.fused_dropout = 0;
    n.classifier_bias = 0;
    n.bce_form = BceForm::logarithm;
    n.gamma = .1;
    n.decoder_input = DecoderInput::sum;
    n.view_weight = 0;
    n.instance_weight = 1e-3;
    TrainOptions& t = train_options_;
    t.epochs = 300;
    t.shuffle = false;
    t.optimiser = Optimiser::sgd;
    t.rate = .1;
    t.select = "dicnet";
  }

  Traits traits() const override {
    return {.name = "dicnet",
            .title = "DICNet",
            .source = "AAAI 2023",
            .divides = true,
            .streams = true,
            .probabilities = true};
  }

  void declare(Options& o) override {
    MtdOptions& n = network_options_;
    o.add("encoder-widths", n.encoder_widths,
          "hidden widths of the encoders, absolute or relative to the view (0.8d)");
    o.add("decoder-widths", n.decoder_widths,
          "hidden widths of the decoders: absolute, 0.8d, or 1e for the embedding");
    o.add("embedding", n.embedding, "size of the embedding; 0 = number of labels").range(0, 1 << 20);
    o.add("width", n.width, "factor on all hidden widths").range(1e-4, 100);
    o.add("end-norm", n.end_norm,
          "batch norm with missing instances as zero rows, as rows of N(0, 1) noise (the authors' program), "
          "or excluded")
        .choices({"batch", "batch-noise", "batch-present"});
    o.add("beta", n.instance_weight, "weight of the contrast between views")
        .range(0, 1e6)
        .symbol("β")
        .tunable({"1e-4", "1e-3", "1e-2"});
    o.add("tau", n.instance_tau, "temperature of the contrast").range(1e-3, 1e3).symbol("τ");
    o.add("gamma", n.gamma, "weight of the reconstruction")
        .range(0, 1e6)
        .symbol("γ")
        .tunable({"0.01", "0.1", "1"});
    o.add("bce-divisor", n.bce_divisor, "divide by the number of known labels, or of all (the authors' "
                                        "semi-supervised program)")
        .choices({"known", "all"});
    train_options_.declare(o);
    declare_precision(o);
  }
  // Their semi-supervised program, as far as it does not train on test rows.
  std::vector<Variant> variants() const override {
    return {{"original", {{"end-norm", "batch-noise"}}},
            {"semi", {{"bce-divisor", "all"}, {"shuffle", "true"}, {"select", "AP"}}}};
  }
};

}  // namespace

std::unique_ptr<Method> make_dicnet() {
  return std::make_unique<Dicnet>();
}

}  // namespace lacuna
