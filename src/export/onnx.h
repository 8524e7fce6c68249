// A trained network as an ONNX file that predicts without Lacuna (docs/onnx.md):
//   inputs   one per view, named by it, (batch, columns) float32; a row of NaN is a missing view
//   outputs  scores, probabilities (calibrated on validation), decided; (batch, labels) each
// The preparation of the views is inside; names, thresholds and labels are in the metadata.
#pragma once

#include <string>

#include "base/tensors.h"

namespace lacuna {

struct OnnxSummary {
  std::size_t views = 0, labels = 0, networks = 0;
  bool calibrated = false;  // false: the model has no calibration, probabilities are the scores
};

// `file` is a model file. Exit::mismatch, with the reason, for a model that is no network.
OnnxSummary export_onnx(const Tensors& file, const std::string& path);

}  // namespace lacuna
