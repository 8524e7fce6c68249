// Writes scores block by block, so that memory does not grow with the rows; the file appears whole or not at all. The
// format follows from the extension:
//   .npy   float32 (n, c)
//   .npz   the same array as "scores", with "ids" and "label_names"
// Text is written by data/prediction_text.h.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

// What is being scored. `id(i)` names row i of the scores.
struct ScoresLayout {
  std::size_t rows = 0;
  std::vector<std::string> label_names;
  std::function<std::string(std::size_t)> id;
};

class ScoresWriter {
 public:
  virtual ~ScoresWriter() = default;
  virtual void write(MatrixView<const float> block) = 0;  // (k, c), the next k rows
  virtual void commit() = 0;                              // after the last row
};
std::unique_ptr<ScoresWriter> write_scores(const std::string& path,
                                           ScoresLayout layout);  // Exit::usage: other ending

}  // namespace lacuna
