#include "serve/infer_answer.h"

#include <algorithm>
#include <utility>

#include "serve/scan.h"

namespace lacuna::serve {
namespace {

void append_numbers(std::string& out, std::span<const float> values) {
  for (const float value : values) {
    fmt::format_to(std::back_inserter(out), "{},", value);
  }
}

// Rows of which nothing is known: their scores are those of a bare network.
std::vector<std::size_t> rows_without_views(const Rows& rows) {
  std::vector<std::size_t> bare;
  const std::size_t views = rows.features.size();
  for (std::size_t i = 0; i < rows.count; ++i) {
    const auto own = std::span(rows.present).subspan(i * views, views);
    if (std::ranges::none_of(own, [](std::uint8_t there) { return there != 0; })) bare.push_back(i);
  }
  return bare;
}

}  // namespace

Matrix<float> probabilities_of(const ServedModel& model, MatrixView<const float> scores) {
  Matrix<float> probabilities(scores.rows, scores.cols);
  probabilities.copy_from(scores);
  if (!model.model.calibration().empty()) model.model.calibrate(probabilities);
  return probabilities;
}

Reply write_inference(const Inference& inference, const ServedModel& model, const Outcome& outcome) {
  if (!outcome.error.empty()) return problem(500, outcome.error);
  const MatrixView<const float> scores = outcome.rows();
  Matrix<float> probabilities;
  Matrix<std::uint8_t> decided;
  std::string json =
      "{\"model_name\":" + json_quoted(model.name) + ",\"model_version\":\"" + model.version + "\"";
  if (!inference.id.empty()) json += ",\"id\":" + json_quoted(inference.id);
  const std::vector<std::size_t> bare = rows_without_views(inference.rows);
  if (!bare.empty())
    json += fmt::format(",\"parameters\":{{\"rows_without_views\":[{}]}}", fmt::join(bare, ","));
  json += ",\"outputs\":[";
  std::string binary;
  bool has_binary = false;
  for (std::size_t k = 0; k < inference.outputs.size(); ++k) {
    const InferOutput& output = inference.outputs[k];
    const auto kind = static_cast<std::size_t>(output.kind);
    const bool flags = output.kind == InferOutput::Kind::decided;
    if (output.kind == InferOutput::Kind::probabilities && probabilities.empty())
      probabilities = probabilities_of(model, scores);
    if (flags && decided.empty()) {
      decided = model.model.decide(scores);
      for (const std::size_t i : bare) std::ranges::fill(decided.row(i), std::uint8_t{0});
    }
    const std::span<const float> numbers = output.kind == InferOutput::Kind::scores
                                               ? std::span(scores.data, scores.rows * scores.cols)
                                               : std::as_const(probabilities).values();
    fmt::format_to(std::back_inserter(json), "{}{{\"name\":\"{}\",\"datatype\":\"{}\",\"shape\":[{},{}],",
                   k > 0 ? "," : "", kOutputNames[kind], kOutputTypes[kind], scores.rows, scores.cols);
    if (output.binary) {
      const std::size_t size = scores.rows * scores.cols * (flags ? 1 : sizeof(float));
      fmt::format_to(std::back_inserter(json), "\"parameters\":{{\"binary_data_size\":{}}}}}", size);
      binary.append(flags ? reinterpret_cast<const char*>(decided.data())
                          : reinterpret_cast<const char*>(numbers.data()),
                    size);
      has_binary = true;
      continue;
    }
    json += "\"data\":[";
    if (flags) {
      for (const std::uint8_t one : decided.values()) json += one != 0 ? "true," : "false,";
    } else {
      append_numbers(json, numbers);
    }
    json.back() = ']';
    json += '}';
  }
  json += "]}";
  Reply reply;
  if (has_binary) {
    reply.type = "application/octet-stream";
    reply.headers = fmt::format("Inference-Header-Content-Length: {}\r\n", json.size());
    json += binary;
  }
  reply.body = std::move(json);
  return reply;
}

}  // namespace lacuna::serve
