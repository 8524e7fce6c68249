#include "export/networks.h"

#include <limits>

#include "base/error.h"
#include "methods/row_memory.h"

namespace lacuna {
namespace {

using Value = OnnxGraph::Value;

constexpr std::int64_t kToReal = 1;     // TensorProto.FLOAT
constexpr std::int64_t kToBoolean = 9;  // TensorProto.BOOL
constexpr float kLeak = .1f;            // of C2AE's hidden layers
constexpr float kShareEdge = 1e-7f;     // of log_odds() in methods/method.cc

// A matrix of the file; the graph borrows the file's bytes.
MatrixView<const float> tensor(const Tensors& weights, const std::string& name) {
  const Tensor& found = weights.at(name);
  if (found.type != "F32" || found.shape.size() != 2)
    fail(Exit::data, "{}: tensor '{}' is not a matrix of 32-bit numbers", weights.path(), name);
  return {reinterpret_cast<const float*>(found.bytes.data()), found.shape[0], found.shape[1]};
}
std::span<const float> first_row(const Tensors& weights, const std::string& name, std::size_t r = 0) {
  return tensor(weights, name).row(r);
}

Value linear(OnnxGraph& graph, const Value& X, const Tensors& weights, const std::string& name,
             const std::string& stem) {
  return graph.node("Gemm",
                    {X, graph.matrix(tensor(weights, name + ".weight"), stem + name + ".weight"),
                     graph.row(first_row(weights, name + ".bias"), stem + name + ".bias")},
                    stem + name);
}

// Linear, ReLU, ..., Linear, as long as the file has layers of that name.
Value chain(OnnxGraph& graph, Value X, const Tensors& weights, const std::string& name,
            const std::string& stem) {
  for (std::size_t l = 0; weights.has(fmt::format("{}.{}.weight", name, l)); ++l) {
    if (l > 0) X = graph.node("Relu", {X}, fmt::format("{}{}.{}.relu", stem, name, l - 1));
    X = linear(graph, X, weights, fmt::format("{}.{}", name, l), stem);
  }
  return X;
}

// Layer norm, batch norm by running statistics, or none: whatever the file has numbers for.
Value norm(OnnxGraph& graph, const Value& U, const Tensors& weights, const std::string& name, float epsilon,
           const std::string& stem) {
  if (!weights.has(name + ".gamma")) return U;
  std::vector<Value> inputs = {U, graph.row(first_row(weights, name + ".gamma"), stem + name + ".gamma"),
                               graph.row(first_row(weights, name + ".beta"), stem + name + ".beta")};
  const std::string running = name + ".running";
  if (!weights.has(running))
    return graph.node("LayerNormalization", inputs, stem + name,
                      {{"axis", std::int64_t{-1}}, {"epsilon", epsilon}});
  inputs.push_back(graph.row(first_row(weights, running, 0), stem + name + ".mean"));
  inputs.push_back(graph.row(first_row(weights, running, 1), stem + name + ".variance"));
  return graph.node("BatchNormalization", inputs, stem + name, {{"epsilon", epsilon}});
}

// How many views of a row are there, at least 1: (batch, 1).
Value present_count(OnnxGraph& graph, const std::vector<OnnxView>& views, const std::string& stem) {
  std::vector<Value> present;
  for (const OnnxView& view : views) present.push_back(view.present);
  return graph.node("Max", {graph.node("Sum", present, stem + "views"), graph.number(1)},
                    stem + "views at least 1");
}

// The logits joined with the votes of the training rows that the model keeps (methods/row_memory.h).
Value with_memory(OnnxGraph& graph, const Value& fused, const Value& logits, const Tensors& weights,
                  const std::string& stem) {
  const std::string name = stem + "memory/";
  const auto constant = [&](const char* what) { return graph.number(weights.floats(what).at(0)); };
  const Value positive = graph.node("Relu", {fused}, name + "positive");
  const Value length = graph.node("ReduceL2", {positive}, name + "length",
                                  {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{1}}});
  const Value direction = graph.node(
      "Div",
      {positive,
       graph.node("Max", {length, graph.number(RowMemory::kShortest)}, name + "length that divides")},
      name + "direction");
  const Value cosine =
      graph.node("Gemm", {direction, graph.matrix(tensor(weights, "memory.rows"), name + "rows")},
                 name + "cosine", {{"transB", std::int64_t{1}}});
  const bool old = !weights.has("memory.nearest") || weights.floats("memory.nearest").at(0) == 0;
  const Value nearest =
      old ? graph.number(1)
          : graph.node("ReduceMax", {cosine}, name + "nearest",
                       {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{1}}});
  const Value exponent = graph.node(
      "Mul",
      {graph.node("Sub", {cosine, nearest}, name + "cosine less nearest"), constant("memory.sharpness")},
      name + "exponent");
  Value nearness = graph.node("Exp", {exponent}, name + "nearness");
  if (!old)  // an item without a direction is near to nothing
    nearness = graph.node("Mul", {nearness, graph.node("Sign", {nearest}, name + "has a direction")},
                          name + "nearness with a direction");
  const Value total = graph.node("ReduceSum", {nearness, graph.integers({1})}, name + "total",
                                 {{"keepdims", std::int64_t{1}}});
  const Value counted =
      graph.node("MatMul", {nearness, graph.matrix(tensor(weights, "memory.labels"), name + "labels")},
                 name + "counted");
  const Value prior_weight = old ? graph.number(RowMemory::kOldPrior) : constant("memory.nearest");
  const Value prior = graph.node(
      "Mul", {graph.row(first_row(weights, "memory.prior"), name + "shares"), prior_weight}, name + "prior");
  const Value share = graph.node("Div",
                                 {graph.node("Add", {counted, prior}, name + "counted and prior"),
                                  graph.node("Add", {total, prior_weight}, name + "total and prior")},
                                 name + "share");
  const Value kept = graph.node("Clip", {share, graph.number(kShareEdge), graph.number(1 - kShareEdge)},
                                name + "share kept");
  const Value odds =
      graph.node("Div", {kept, graph.node("Sub", {graph.number(1), kept}, name + "rest")}, name + "odds");
  const Value vote = graph.node("Mul", {graph.node("Log", {odds}, name + "logit"), constant("memory.weight")},
                                name + "vote");
  return graph.node("Div",
                    {graph.node("Add", {logits, vote}, name + "both"),
                     graph.number(1 + weights.floats("memory.weight").at(0))},
                    name + "joined");
}

// What a branch says: the vector that its classifier reads, and the logits.
struct Said {
  Value fused, logits;
};

Said classify(OnnxGraph& graph, Value fused, const Tensors& weights, const OnnxNetwork& network,
              const std::string& stem) {
  if (network.relu) fused = graph.node("Relu", {fused}, stem + "fused.relu");
  return {fused, linear(graph, fused, weights, "classifier", stem)};
}

Value score(OnnxGraph& graph, const Said& said, const Tensors& weights, const std::string& stem) {
  const auto& [fused, own] = said;
  Value logits = own;
  if (weights.has("memory.rows")) logits = with_memory(graph, fused, logits, weights, stem);
  return onnx_sigmoid(graph, logits, stem + "score");
}

// nn/early.h: u = [√(m/k) x_v or 0], one encoder.
Said early_fusion(OnnxGraph& graph, const std::vector<OnnxView>& views, const std::vector<Value>& prepared,
                  const Tensors& weights, const OnnxNetwork& network, const std::string& stem) {
  const Value count = present_count(graph, views, stem);
  const Value factor = graph.node(
      "Sqrt", {graph.node("Div", {graph.number(static_cast<float>(views.size())), count}, stem + "share")},
      stem + "factor");
  std::vector<Value> parts;
  for (std::size_t v = 0; v < views.size(); ++v)
    parts.push_back(
        graph.node("Where", {views[v].gap, graph.number(0), prepared[v]}, stem + views[v].name + " or 0"));
  const Value joined = graph.node("Concat", parts, stem + "joined", {{"axis", std::int64_t{1}}});
  const Value input = graph.node("Mul", {joined, factor}, stem + "input");
  const Value z =
      norm(graph, chain(graph, input, weights, "encoder", stem), weights, "norm", network.epsilon, stem);
  return classify(graph, z, weights, network, stem);
}

// nn/mtd.h: the mean of the present views' embeddings, in one channel or two.
Said mean_fusion(OnnxGraph& graph, const std::vector<OnnxView>& views, const std::vector<Value>& prepared,
                 const Tensors& weights, const OnnxNetwork& network, const std::string& stem) {
  const Value count = present_count(graph, views, stem);
  const auto channel_mean = [&](const std::string& channel) {
    std::vector<Value> embeddings;
    for (std::size_t v = 0; v < views.size(); ++v) {
      const std::string name = fmt::format("{}.{}", channel, v);
      const Value U = chain(graph, prepared[v], weights, name, stem);
      const Value S = norm(graph, U, weights, name + ".norm", network.epsilon, stem);
      embeddings.push_back(graph.node("Where", {views[v].gap, graph.number(0), S}, stem + name + " or 0"));
    }
    return graph.node("Div", {graph.node("Sum", embeddings, stem + channel + ".sum"), count}, stem + channel);
  };
  Value fused = channel_mean("shared");
  if (weights.has("private.0.0.weight")) {
    const Value own = channel_mean("private");
    fused = network.gate
                ? graph.node("Mul", {graph.node("Sigmoid", {own}, stem + "gate"), fused}, stem + "gated")
                : graph.node("Add", {fused, own}, stem + "fused");
  }
  return classify(graph, fused, weights, network, stem);
}

}  // namespace

// As sigmoid_of() in ops/scalar.h: e^min(x, 0) / (1 + e^-|x|).
Value onnx_sigmoid(OnnxGraph& graph, const Value& x, const std::string& hint) {
  const Value above =
      graph.node("Exp", {graph.node("Min", {x, graph.number(0)}, hint + "/negative")}, hint + "/above");
  const Value size = graph.node("Neg", {graph.node("Abs", {x}, hint + "/size")}, hint + "/less size");
  const Value below =
      graph.node("Add", {graph.node("Exp", {size}, hint + "/odds"), graph.number(1)}, hint + "/below");
  return graph.node("Div", {above, below}, hint);
}

OnnxView onnx_input(OnnxGraph& graph, const Preparation::ViewMap& map) {
  const std::string stem = "view " + map.name + "/";
  const Value x = graph.input(map.name, map.columns);
  const Value nan =
      graph.node("Cast", {graph.node("IsNaN", {x}, stem + "nan")}, stem + "nan as 1", {{"to", kToReal}});
  const Value all = graph.node("ReduceMin", {nan}, stem + "all nan",
                               {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{1}}});
  OnnxView view;
  view.name = map.name;
  view.gap = graph.node("Cast", {all}, stem + "gap", {{"to", kToBoolean}});
  view.present = graph.node("Sub", {graph.number(1), all}, stem + "present");
  view.clean = graph.node("Where", {view.gap, graph.number(0), x}, stem + "clean");
  return view;
}

Value onnx_prepare(OnnxGraph& graph, const OnnxView& view, const Preparation::ViewMap& map,
                   const std::string& stem) {
  const std::string name = stem + view.name + "/";
  Value x = view.clean;
  if (map.log_scale > 0 || map.power > 0) {
    const Value size = graph.node("Abs", {x}, name + "size");
    Value squashed;
    if (map.log_scale > 0) {  // sign(x) log(1 + s|x|)
      const Value scaled =
          graph.node("Mul", {size, graph.number(static_cast<float>(map.log_scale))}, name + "scaled");
      const Value finite = graph.node(
          "Clip", {scaled, graph.number(0), graph.number(std::numeric_limits<float>::max())}, name + "finite");
      squashed =
          graph.node("Log", {graph.node("Add", {finite, graph.number(1)}, name + "and 1")}, name + "log");
    } else if (map.power == .25) {  // sign(x) |x|^(1/4), as two roots
      squashed = graph.node("Sqrt", {graph.node("Sqrt", {size}, name + "root")}, name + "root of root");
    } else {
      squashed = graph.node("Pow", {size, graph.number(static_cast<float>(map.power))}, name + "power");
    }
    x = graph.node("Mul", {graph.node("Sign", {x}, name + "sign"), squashed}, name + "squashed");
  }
  if (!map.scale.empty()) {
    x = graph.node("Sub", {x, graph.row(map.shift.row(0), name + "shift")}, name + "shifted");
    x = graph.node("Mul", {x, graph.row(map.scale.row(0), name + "scale")}, name + "standard");
  }
  const auto within = [&](float low, float high, const char* what) {
    x = graph.node("Clip", {x, graph.number(low), graph.number(high)}, name + what);
  };
  const float most = map.directions.empty() ? kMostPrepared : map.most_projected();
  within(map.clamp ? 0 : -most, map.clamp ? 1 : most, "clamped");
  if (map.directions.empty()) return x;
  x = graph.node("MatMul", {x, graph.matrix(map.directions, name + "directions")}, name + "projected");
  x = graph.node("Mul", {x, graph.number(map.gain)}, name + "gained");
  within(-kMostPrepared, kMostPrepared, "bounded");
  if (map.kernel.empty()) return x;

  // exp(-|x - a|² / w) for every anchor a, |x - a|² = |x|² + |a|² - 2 xa.
  const KernelMap& kernel = map.kernel;
  const auto squares = [&](const Value& of, const std::string& what) {
    return graph.node("ReduceSumSquare", {of}, name + what,
                      {{"axes", std::vector<std::int64_t>{1}}, {"keepdims", std::int64_t{1}}});
  };
  const Value anchors = graph.matrix(kernel.anchors, name + "anchors");
  const Value turned = graph.node("Transpose", {anchors}, name + "anchors turned",
                                  {{"perm", std::vector<std::int64_t>{1, 0}}});
  const Value lengths = graph.node("Transpose", {squares(anchors, "lengths of anchors")},
                                   name + "lengths turned", {{"perm", std::vector<std::int64_t>{1, 0}}});
  const Value products = graph.node("MatMul", {x, turned}, name + "products");
  const Value both = graph.node("Add", {squares(x, "lengths"), lengths}, name + "both lengths");
  const Value twice = graph.node("Mul", {products, graph.number(2)}, name + "twice");
  const Value distance = graph.node(
      "Max", {graph.node("Sub", {both, twice}, name + "difference"), graph.number(0)}, name + "distance");
  const Value exponent = graph.node("Div", {distance, graph.number(-kernel.width)}, name + "exponent");
  const Value likeness = graph.node("Exp", {exponent}, name + "likeness");
  const Value mapped =
      graph.node("MatMul", {likeness, graph.matrix(kernel.projection, name + "projection")}, name + "mapped");
  const Value coordinates =
      graph.node("Sub", {mapped, graph.row(kernel.offset.row(0), name + "offset")}, name + "coordinates");
  if (map.linear == 0) return coordinates;
  const Value all =
      graph.node("Concat", {x, coordinates}, name + "linear and kernel", {{"axis", std::int64_t{1}}});
  std::vector<std::int64_t> order;
  for (const std::size_t k : map.sources()) order.push_back(static_cast<std::int64_t>(k));
  return graph.node("Gather", {all, graph.integers(order)}, name + "in turn", {{"axis", std::int64_t{1}}});
}

Value onnx_scores(OnnxGraph& graph, const std::vector<OnnxView>& views, const std::vector<Value>& prepared,
                  const Tensors& weights, const OnnxNetwork& network, const std::string& stem) {
  if (weights.has("encoder.0.weight"))
    return score(graph, early_fusion(graph, views, prepared, weights, network, stem), weights, stem);
  const Said mean = mean_fusion(graph, views, prepared, weights, network, stem);
  if (!weights.has("joint.encoder.0.weight")) return score(graph, mean, weights, stem);
  const std::string joint = stem + "joint/";  // nn/pair.h: both branches
  const Said early = early_fusion(graph, views, prepared, weights.part("joint."), network, joint);
  const Value sum = graph.node("Add", {mean.logits, early.logits}, joint + "sum");
  const Said both = {
      graph.node("Concat", {mean.fused, early.fused}, joint + "fused", {{"axis", std::int64_t{1}}}),
      graph.node("Mul", {sum, graph.number(.5f)}, joint + "logits")};
  return score(graph, both, weights, stem);
}

Value onnx_c2ae_scores(OnnxGraph& graph, const OnnxView& view, const Value& prepared,
                       const Tensors& weights) {
  Value x =
      graph.node("Where", {view.gap, graph.row(first_row(weights, "view.mean"), "mean"), prepared}, "filled");
  const auto path = [&](const std::string& name, std::size_t layers) {
    for (std::size_t l = 0; l < layers; ++l) {
      x = linear(graph, x, weights, fmt::format("{}.{}", name, l), "");
      if (l + 1 < layers)
        x = graph.node("LeakyRelu", {x}, fmt::format("{}.{}.leaky", name, l), {{"alpha", kLeak}});
    }
    x = onnx_sigmoid(graph, x, name + ".sigmoid");
  };
  path("features", 3);
  x = graph.node("Sub", {x, graph.number(.5f)}, "centred");
  path("decoder", 2);
  return x;
}

}  // namespace lacuna
