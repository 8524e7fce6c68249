#include "experiments/details.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/dataset.h"
#include "data/metrics.h"
#include "data/reliability.h"

namespace lacuna {

using nlohmann::json;

std::vector<CurvePoint> precision_recall(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                                         std::size_t label, std::size_t most) {
  std::vector<std::pair<float, bool>> rows;
  std::size_t positives = 0;
  for (std::size_t i = 0; i < scores.rows; ++i)
    if (truth(i, label) != kUnknown) {
      rows.emplace_back(scores(i, label), truth(i, label) == 1);
      positives += truth(i, label) == 1;
    }
  if (positives == 0) return {};
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<CurvePoint> points;
  std::size_t found = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    found += rows[i].second;
    if (i + 1 < rows.size() && rows[i + 1].first == rows[i].first) continue;
    points.push_back({static_cast<double>(found) / static_cast<double>(positives),
                      static_cast<double>(found) / static_cast<double>(i + 1)});
    if (found == positives) break;  // beyond, precision only falls
  }
  if (points.size() > most) {
    std::vector<CurvePoint> kept;
    for (std::size_t i = 0; i < most; ++i) kept.push_back(points[i * (points.size() - 1) / (most - 1)]);
    points = std::move(kept);
  }
  return points;
}

json prediction_details(MatrixView<const float> scores, MatrixView<const std::int8_t> truth,
                        MatrixView<const std::uint8_t> decided, const std::vector<std::string>& label_names,
                        bool probabilities) {
  const auto number = [](double value) { return std::isfinite(value) ? json(value) : json(nullptr); };
  const auto labels = evaluate_labels(scores, truth, decided);
  json details = {{"schema", "lacuna.details.1"}, {"labels", json::array()}, {"curves", json::array()}};
  std::vector<std::size_t> order(labels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t j : order)
    details["labels"].push_back({{"name", label_names[j]},
                                 {"positives", labels[j].positives},
                                 {"known", labels[j].known},
                                 {"AP", number(labels[j].ap)},
                                 {"AUC", number(labels[j].auc)},
                                 {"F1", number(labels[j].f1)}});
  std::erase_if(order, [&](std::size_t j) { return labels[j].positives < 5; });
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return labels[a].positives > labels[b].positives; });
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    if (rank >= 3 && rank + 3 < order.size()) continue;
    json points = json::array();
    for (const auto& point : precision_recall(scores, truth, order[rank]))
      points.push_back({point.recall, point.precision});
    details["curves"].push_back({{"label", label_names[order[rank]]},
                                 {"positives", labels[order[rank]].positives},
                                 {"points", points}});
  }
  if (probabilities) details["reliability"] = reliability_details(scores, truth);
  return details;
}

json reliability_details(MatrixView<const float> scores, MatrixView<const std::int8_t> truth) {
  const Reliability found = reliability(scores, truth);
  json bins = json::array();
  for (const auto& bin : found.bins)
    if (bin.count > 0)
      bins.push_back({{"low", bin.low},
                      {"high", bin.high},
                      {"count", bin.count},
                      {"score", bin.score},
                      {"positive", bin.share}});
  return {{"error", found.ece}, {"bins", bins}};
}

std::string npy_text(MatrixView<const float> matrix) {
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   matrix.rows, matrix.cols);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  text += header;
  for (std::size_t i = 0; i < matrix.rows; ++i)
    text.append(reinterpret_cast<const char*>(matrix.row(i).data()), matrix.cols * sizeof(float));
  return text;
}

}  // namespace lacuna
