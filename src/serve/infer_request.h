// A request of the Open Inference Protocol, version 2, with tensors in JSON, or as bytes after the JSON by the binary
// tensor extension.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/limits.h"
#include "serve/rows.h"

namespace lacuna::serve {

struct InferOutput {
  enum class Kind { scores, probabilities, decided } kind;
  bool binary = false;
};
constexpr const char* kOutputNames[] = {"scores", "probabilities", "decided"};
constexpr const char* kOutputTypes[] = {"FP32", "FP32", "BOOL"};

// A request that fits the model. `rows` points into `memory` or into the body.
struct Inference {
  std::string id;
  Rows rows;
  std::vector<InferOutput> outputs;
  std::vector<std::vector<float>> memory;
};

// Refuses (400, 413) a request that does not fit, with the view and both sizes. A row of NaN is a missing view.
Inference read_inference(std::string_view body, std::optional<std::size_t> json_bytes,
                         const ModelShape& model, const Limits& limits);

}  // namespace lacuna::serve
