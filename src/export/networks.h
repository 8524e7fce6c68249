// The parts of a model as nodes of a graph: only what prediction needs. Weights are read from the tensors of the model
// file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tensors.h"
#include "data/prepare.h"
#include "export/graph.h"

namespace lacuna {

// A view as an input of the graph. gap (batch, 1) is true where the whole row is NaN: the view is missing.
struct OnnxView {
  std::string name;
  OnnxGraph::Value
      clean;             // (batch, d_v), gaps as zeros; a NaN inside another row stays and reaches the scores
  OnnxGraph::Value gap;  // (batch, 1), boolean
  OnnxGraph::Value present;  // (batch, 1), 1 or 0
};
OnnxView onnx_input(OnnxGraph& graph, const Preparation::ViewMap& map);

// The prepared rows of a view (data/prepare.h). Rows of missing instances are arbitrary, but finite.
OnnxGraph::Value onnx_prepare(OnnxGraph& graph, const OnnxView& view, const Preparation::ViewMap& map,
                              const std::string& stem);

// Probabilities from log-odds, with the relative accuracy that small ones need: runtimes round those of the operation
// Sigmoid to multiples of about 6e-8.
OnnxGraph::Value onnx_sigmoid(OnnxGraph& graph, const OnnxGraph::Value& x, const std::string& hint);

// What a prediction needs to know about a network besides its weights.
struct OnnxNetwork {
  bool gate = true, relu = true;  // of the fused vector
  float epsilon = 1e-5f;          // of the norms
};

// Sigmoid scores (batch, c) of the network in `weights` (nn/mtd.h, nn/early.h or nn/pair.h, by the names of its
// tensors) on prepared views.
OnnxGraph::Value onnx_scores(OnnxGraph& graph, const std::vector<OnnxView>& views,
                             const std::vector<OnnxGraph::Value>& prepared, const Tensors& weights,
                             const OnnxNetwork& network, const std::string& stem);

// The same of C2AE (nn/c2ae.h), which sees one view; missing rows are the view's mean (methods/adapt.h).
OnnxGraph::Value onnx_c2ae_scores(OnnxGraph& graph, const OnnxView& view, const OnnxGraph::Value& prepared,
                                  const Tensors& weights);

}  // namespace lacuna
