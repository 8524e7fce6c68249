// Detailed results of one set of predictions: each label, precision-recall curves, and calibration.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/matrix.h"

namespace lacuna {

struct CurvePoint {
  double recall = 0, precision = 0;
};
// Precision against recall of one label over its known rows, best score first; equal scores make one point.
// At most `most` points are kept, the ends always. Empty if the label has no positive.
std::vector<CurvePoint> precision_recall(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                         std::size_t label, std::size_t most = 80);

// {"labels": [{name, positives, known, AP, AUC, F1}], "curves": [...], "reliability": {...}}; undefined
// values are null. Curves are drawn for the three most frequent labels and the three rarest with at least
// five positives.
nlohmann::json prediction_details(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                  MatrixView<const std::uint8_t> decided,
                                  const std::vector<std::string>& label_names, bool probabilities);
// {"error", "bins": [{low, high, count, score, positive}]} of scores in [0, 1]; prediction_details()["reliability"] is
// that of the raw scores, ["calibrated"] may hold that of calibrated ones.
nlohmann::json reliability_details(MatrixView<const float> scores, MatrixView<const std::int8_t> truth);

std::string npy_text(MatrixView<const float> matrix);  // a .npy file

}  // namespace lacuna
