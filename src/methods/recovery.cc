#include "methods/recovery.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/threads.h"
#include "ops/gemm.h"

namespace lacuna {
namespace {

constexpr const char* kStem = "recovery.";
constexpr float kConstant = 30;  // far larger than any feature: hardly penalised

bool finite(const Matrix<float>& matrix) {
  return std::ranges::all_of(matrix.values(), [](float x) { return std::isfinite(x); });
}

}  // namespace

Matrix<float> Recovery::features_of(MatrixView<const float> F) const {
  const std::size_t r = F.cols, q = kernel_.columns();
  Matrix<float> A(F.rows, r + q + 1);
  kernel_.apply(F, A.view().columns(r, q));
  for (std::size_t i = 0; i < F.rows; ++i) {
    for (std::size_t k = 0; k < r; ++k) A(i, k) = F(i, k) * factor_scale_;
    A(i, r + q) = kConstant;
  }
  return A;
}

std::size_t Recovery::direct_features() const {
  std::size_t sum = 0;
  for (const auto& view : preparation_.views()) sum += view.width();
  return sum;
}

Matrix<float> Recovery::direct_of(const Items& items, std::size_t without) {
  std::size_t columns = 0, first = 0;
  for (const auto& X : items.X) columns += X.cols();
  Matrix<float> A(items.rows(), columns);
  for (std::size_t v = 0; v < items.X.size(); ++v) {
    const std::size_t width = items.X[v].cols();
    // Views count alike, however many directions they have.
    const float scale = 1 / std::sqrt(static_cast<float>(std::max<std::size_t>(width, 1)));
    for (std::size_t i = 0; v != without && i < A.rows(); ++i)
      if (items.W(i, v) != 0)
        for (std::size_t j = 0; j < width; ++j) A(i, first + j) = items.X[v](i, j) * scale;
    first += width;
  }
  return A;
}

float Recovery::factor_of_variance(const Decoder& decoder, float doubt) {
  constexpr double kLeast = .05;
  return static_cast<float>(
      std::sqrt(std::max(decoder.doubt_base + decoder.doubt_slope * static_cast<double>(doubt), kLeast)));
}

RecoveredViews Recovery::recover(const Selection& rows, const std::vector<int>& source) const {
  const Items items = preparation_.apply(rows, source, false);
  const std::size_t n = items.rows(), m = decoders_.size();
  RecoveredViews result;
  result.there = Matrix<std::uint8_t>(n, m);
  result.there.copy_from(items.W);
  result.any.resize(n);
  for (std::size_t i = 0; i < n; ++i)
    result.any[i] = std::ranges::any_of(items.W.row(i), [](std::uint8_t w) { return w != 0; });
  Matrix<float> F(n, factors_.rank()), doubt(n, m);
  factors_.estimate(items, Factors::kAll, F, doubt);
  const Matrix<float> A = features_of(F), direct = direct_of(items, Factors::kAll);
  const std::size_t p = A.cols();
  for (std::size_t v = 0; v < m; ++v) {
    const Decoder& decoder = decoders_[v];
    Matrix<float> values(n, decoder.mean.cols()), deviations(n, decoder.mean.cols());
    if (!decoder.weights.empty())
      multiply(A, decoder.weights.view().slice(0, p), Transpose::none, false, values);
    if (decoder.weights.rows() > p)
      multiply(direct, decoder.weights.view().slice(p, direct.cols()), Transpose::none, true, values);
    parallel_for(n, 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto value = values.row(i), deviation = deviations.row(i);
        if (items.W(i, v) != 0 || result.any[i] == 0) {
          std::ranges::fill(value, 0.f);
          continue;
        }
        const float factor = factor_of_variance(decoder, doubt(i, v));
        for (std::size_t j = 0; j < value.size(); ++j) {
          value[j] = std::clamp(value[j] + decoder.mean(0, j), decoder.low(0, j), decoder.high(0, j));
          deviation[j] = factor * decoder.deviation(0, j);
        }
      }
    });
    result.values.push_back(std::move(values));
    result.deviations.push_back(std::move(deviations));
  }
  return result;
}

nlohmann::json Recovery::about() const {
  if (empty()) return nullptr;
  nlohmann::json views = nlohmann::json::array();
  for (std::size_t v = 0; v < decoders_.size(); ++v) {
    const Decoder& decoder = decoders_[v];
    const bool learned = !decoder.weights.empty();
    views.push_back({{"name", preparation_.views()[v].name},
                     {"error", learned ? nlohmann::json(decoder.error) : nlohmann::json()},
                     {"coverage", learned ? nlohmann::json(decoder.coverage) : nlohmann::json()},
                     {"rows", decoder.rows}});
  }
  return {{"factors", factors_.rank()}, {"rows", rows_}, {"views", std::move(views)}};
}

void Recovery::save(Tensors& file) const {
  if (empty()) return;
  const std::string stem = kStem;
  preparation_.save(file, stem + "prepare.");
  factors_.save(file, stem);
  kernel_.save(file, stem + "kernel.");
  file.put(stem + "factor_scale", std::span(&factor_scale_, 1));
  auto views = nlohmann::json::array();
  for (std::size_t v = 0; v < decoders_.size(); ++v) {
    const Decoder& decoder = decoders_[v];
    const auto name = [&](const char* what) { return fmt::format("{}{}.{}", stem, what, v); };
    if (!decoder.weights.empty()) file.put(name("weights"), decoder.weights.view());
    file.put(name("mean"), decoder.mean.view());
    file.put(name("low"), decoder.low.view());
    file.put(name("high"), decoder.high.view());
    file.put(name("deviation"), decoder.deviation.view());
    views.push_back({{"doubt_base", decoder.doubt_base},
                     {"doubt_slope", decoder.doubt_slope},
                     {"error", decoder.error},
                     {"coverage", decoder.coverage},
                     {"rows", decoder.rows}});
  }
  file.metadata["recovery"] = {{"rows", rows_}, {"views", std::move(views)}};
}

Recovery Recovery::load(const Tensors& file, const std::vector<std::size_t>& columns) {
  Recovery result;
  if (!file.metadata.contains("recovery")) return result;
  const std::string stem = kStem, path = file.path();
  const nlohmann::json& meta = file.metadata["recovery"];
  const nlohmann::json& list = meta.at("views");
  result.preparation_ = Preparation::load(file, stem + "prepare.");
  const auto& views = result.preparation_.views();
  if (views.size() != columns.size() || list.size() != columns.size())
    fail(Exit::data, "{}: the decoders are for {} views, the model has {}", path,
         std::min(views.size(), list.size()), columns.size());
  std::vector<std::size_t> widths;
  for (std::size_t v = 0; v < columns.size(); ++v) {
    widths.push_back(views[v].width());
    if (views[v].columns != columns[v])
      fail(Exit::data, "{}: the decoders have {} columns of view '{}', the model has {}", path,
           views[v].columns, views[v].name, columns[v]);
  }
  result.factors_ = Factors::load(file, stem, widths);
  result.kernel_ = KernelMap::load(file, stem + "kernel.", result.factors_.rank());
  const std::vector<float> scale = file.floats(stem + "factor_scale");
  if (result.kernel_.empty() || scale.size() != 1 || !std::isfinite(scale[0]) ||
      !finite(result.kernel_.anchors) || !finite(result.kernel_.projection) || !finite(result.kernel_.offset))
    fail(Exit::data, "{}: '{}kernel' or '{}factor_scale' is missing or contains a value that is not a number", path, stem,
         stem);
  result.factor_scale_ = scale[0];
  result.rows_ = meta.at("rows").get<std::size_t>();
  const std::size_t features = result.factor_features() + result.direct_features();
  for (std::size_t v = 0; v < columns.size(); ++v) {
    Decoder decoder;
    const auto read = [&](const char* what, std::size_t rows) {
      const std::string name = fmt::format("{}{}.{}", stem, what, v);
      const auto& shape = file.at(name).shape;
      if (shape.size() != 2 || shape[0] != rows || shape[1] != columns[v])
        fail(Exit::data, "{}: '{}' is not of shape ({}, {}), as {} features and view '{}' require", path,
             name, rows, columns[v], features, views[v].name);
      Matrix<float> matrix = file.matrix(name);
      if (!finite(matrix)) fail(Exit::data, "{}: '{}' contains a value that is not finite", path, name);
      return matrix;
    };
    if (const std::string name = fmt::format("{}weights.{}", stem, v); file.has(name)) {
      const auto& shape = file.at(name).shape;
      const bool factors_alone = shape.size() == 2 && shape[0] == result.factor_features();
      decoder.weights = read("weights", factors_alone ? result.factor_features() : features);
    }
    decoder.mean = read("mean", 1);
    decoder.low = read("low", 1);
    decoder.high = read("high", 1);
    decoder.deviation = read("deviation", 1);
    for (std::size_t j = 0; j < columns[v]; ++j)
      if (decoder.low(0, j) > decoder.high(0, j) || decoder.deviation(0, j) < 0)
        fail(Exit::data, "{}: column {} of view '{}' has low {} and high {}, deviation {}", path, j,
             views[v].name, decoder.low(0, j), decoder.high(0, j), decoder.deviation(0, j));
    decoder.doubt_base = list[v].at("doubt_base").get<double>();
    decoder.doubt_slope = list[v].at("doubt_slope").get<double>();
    decoder.error = list[v].at("error").get<double>();
    decoder.coverage = list[v].at("coverage").get<double>();
    decoder.rows = list[v].at("rows").get<std::size_t>();
    if (!std::isfinite(decoder.doubt_base) || !std::isfinite(decoder.doubt_slope))
      fail(Exit::data, "{}: the uncertainty of view '{}' is not a number", path, views[v].name);
    result.decoders_.push_back(std::move(decoder));
  }
  return result;
}

}  // namespace lacuna
