#include "export/onnx.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "export/networks.h"
#include "methods/blend.h"
#include "methods/ensemble.h"
#include "methods/model.h"

namespace lacuna {
namespace {

using Value = OnnxGraph::Value;

constexpr float kEdge =
    1e-7f;  // scores stay so far from 0 and 1 where logits are taken (methods/ensemble.cc)

// Why a method that is no network cannot be written as one; empty if it can.
std::string obstacle(const std::string& method) {
  if (method == "prior") return "it does not look at the items: its scores are the label frequencies";
  if (method == "cdmm" || method == "lvsl")
    return "it compares new items with its training rows by kernels and is not a network";
  if (method == "glocal")
    return "it is a linear map of the one view that it keeps, which is not written here";
  return "it is not a network";
}
bool is_network(const std::string& method) {
  return method == "lacuna" || method == "mtd" || method == "dicnet";
}

// The value of a setting for one member: what the member changes, or else what the model says.
std::string setting(Model& model, const MemberSpec& member, const std::string& name,
                    const std::string& otherwise) {
  for (const Setting& change : member.changes)
    if (change.name == name) return change.value;
  const Option* option = model.options().find(name);
  return option == nullptr ? otherwise : option->text();
}

// The members that predictions use, with the preparations they see; none for a single fit.
std::vector<MemberSpec> members_of(Model& model, const Tensors& file, std::size_t& forms) {
  PrepareOptions prepare;
  Options options;
  prepare.declare(options);
  for (Option& option : options.all()) option.set(model.options().find(option.name)->text());
  const auto count = parse_int(model.options().find("members")->text()).value_or(0);
  MemberForms all = member_forms(
      make_method(model.method().traits().name)->plan(model.preset(), static_cast<std::size_t>(count)),
      prepare);
  forms = all.forms_of_predictions;
  if (has_blend(file)) {  // candidates: those that were chosen
    std::vector<MemberSpec> chosen;
    for (const std::size_t k : members_in_use(file)) {
      const std::string& method = chosen.emplace_back(all.specs.at(k)).method;
      if (!method.empty() && !is_network(method))
        fail(Exit::mismatch,
             "{}: cannot be exported to ONNX: {} is among the members that were chosen, and {}; presets best, "
             "paired and distilled are networks alone",
             file.path(), method, obstacle(method));
    }
    return chosen;
  }
  std::erase_if(all.specs, [](const MemberSpec& spec) { return spec.teacher; });
  return all.specs;
}

OnnxNetwork network_of(Model& model, const MemberSpec& member) {
  return {.gate = setting(model, member, "gate", "true") == "true",
          .relu = setting(model, member, "fused-relu", "true") == "true",
          .epsilon = static_cast<float>(
              parse_double(setting(model, member, "norm-epsilon", "1e-5")).value_or(1e-5))};
}

Value logit(OnnxGraph& graph, const Value& p, const std::string& stem) {
  const Value rest = graph.node("Sub", {graph.number(1), p}, stem + "rest");
  return graph.node("Log", {graph.node("Div", {p, rest}, stem + "odds")}, stem + "logit");
}

// The mean of the members' logits, or their weighted sum, as a probability again (methods/blend.h).
Value blended_score(OnnxGraph& graph, const std::vector<Value>& scores, const Blend& blend) {
  std::vector<Value> logits;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const std::string stem = fmt::format("member {}/", k);
    const Value clipped =
        graph.node("Clip", {scores[k], graph.number(kEdge), graph.number(1 - kEdge)}, stem + "clipped");
    logits.push_back(logit(graph, clipped, stem));
    if (!blend.slopes.empty())
      logits.back() = graph.node("Mul", {logits.back(), graph.number(blend.slopes[k])}, stem + "weighted");
  }
  if (!blend.slopes.empty()) {
    logits.push_back(graph.number(blend.intercept));
    return onnx_sigmoid(graph, graph.node("Sum", logits, "sum of logits"), "blend of members");
  }
  const Value mean = graph.node("Mean", logits, "mean of logits");
  return onnx_sigmoid(graph, mean, "mean of members");
}

// p = sigmoid(a logit(score) + b), the logit kept within those of 1e-7 and 1 - 1e-7 (methods/calibrate.cc).
Value calibrated(OnnxGraph& graph, const Value& scores, std::span<const float> slope,
                 std::span<const float> intercept) {
  const auto edge = static_cast<float>(std::log((1 - 1e-7) / 1e-7));
  const Value rest = graph.node("Sub", {graph.number(1), scores}, "calibration/rest");
  const Value both = graph.node(
      "Sub",
      {graph.node("Log", {scores}, "calibration/log"), graph.node("Log", {rest}, "calibration/log of rest")},
      "calibration/logit");
  const Value kept = graph.node("Clip", {both, graph.number(-edge), graph.number(edge)}, "calibration/kept");
  const Value scaled = graph.node("Mul", {kept, graph.row(slope, "calibration/slope")}, "calibration/scaled");
  return onnx_sigmoid(
      graph, graph.node("Add", {scaled, graph.row(intercept, "calibration/intercept")}, "calibration/line"),
      "calibration/probability");
}

// 1 for the K best labels of a row; of equal scores the first.
Value best_labels(OnnxGraph& graph, const Value& scores, std::size_t count) {
  const Value shape = graph.node("Shape", {scores}, "top/shape");
  const Value zeros = graph.node("Expand", {graph.number(0), shape}, "top/zeros");
  const std::vector<Value> best = graph.nodes(
      "TopK", {scores, graph.integers({static_cast<std::int64_t>(count)})}, {"top/values", "top/labels"});
  const Value ones = graph.node(
      "Expand", {graph.number(1), graph.node("Shape", {best[1]}, "top/shape of labels")}, "top/ones");
  const Value marked =
      graph.node("ScatterElements", {zeros, best[1], ones}, "top/marked", {{"axis", std::int64_t{1}}});
  return graph.node("Greater", {marked, graph.number(0)}, "decision");
}

// Owns numbers that the graph borrows until it is written.
struct OnnxNumbers {
  std::vector<Preparation> preparations;
  std::vector<Tensors> members;
};

// The prepared inputs of every preparation that members see, each made once: [preparation][view].
std::vector<std::vector<Value>> onnx_forms(OnnxGraph& graph, const std::vector<OnnxView>& views,
                                           const Tensors& file, std::size_t count,
                                           std::vector<Preparation>& preparations) {
  for (std::size_t k = 0; k < count; ++k)
    preparations.push_back(has_form(file, k) ? Preparation::load(file, form_prefix(k)) : Preparation());
  std::vector<std::vector<Value>> forms(count);
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t v = 0; v < preparations[k].views().size(); ++v)
      forms[k].push_back(onnx_prepare(graph, views[v], preparations[k].views()[v],
                                      k == 0 ? "" : fmt::format("form {}/", k)));
  return forms;
}

// The scores of each network.
std::vector<Value> onnx_networks(OnnxGraph& graph, const std::vector<OnnxView>& views, Model& model,
                                 const Tensors& file, OnnxNumbers& numbers) {
  std::size_t form_count = 1;
  const std::vector<MemberSpec> members = members_of(model, file, form_count);
  const auto forms = onnx_forms(graph, views, file, form_count, numbers.preparations);
  const bool c2ae = model.method().traits().name == "c2ae";
  if (members.empty()) {
    if (!c2ae) return {onnx_scores(graph, views, forms[0], file, network_of(model, {}), "")};
    const std::size_t v = file.metadata.at("view").get<std::size_t>();
    return {onnx_c2ae_scores(graph, views[v], forms[0][v], file)};
  }
  if (c2ae)
    fail(Exit::mismatch, "{}: ensembles of c2ae cannot be exported to ONNX; train one (--members 1)",
         file.path());
  // A fit that diverged keeps the members that it had: the file may hold fewer than the settings say.
  const auto kept = std::min(members.size(), file.metadata.at("ensemble").at("done").get<std::size_t>());
  numbers.members.reserve(kept);
  std::vector<Value> scores;
  for (std::size_t k = 0; k < kept; ++k) {
    numbers.members.push_back(file.part(fmt::format("member{}.", k)));
    scores.push_back(onnx_scores(graph, views, forms[members[k].form], numbers.members.back(),
                                 network_of(model, members[k]), fmt::format("member {}/", k)));
  }
  return scores;
}

// What of a score is decided: the best labels, or scores above the thresholds.
Value onnx_decision(OnnxGraph& graph, const Value& score, const Calibration& calibration, std::size_t labels) {
  if (!calibration.empty() && calibration.aim().kind == Aim::Kind::top)
    return best_labels(graph, score, std::min(calibration.aim().count, labels));
  return graph.node("Greater",
                    {score, calibration.empty() ? graph.number(.5f)
                                                : graph.row(calibration.thresholds(), "thresholds")},
                    "decision");
}

void describe(OnnxGraph& graph, const Model& model) {
  const Calibration& calibration = model.calibration();
  auto described = nlohmann::json::array();
  for (const ViewColumns& view : model.columns().views()) {
    auto& one = described.emplace_back(nlohmann::json{{"name", view.view}, {"columns", view.count}});
    if (!view.names.empty()) one["column_names"] = view.names;
  }
  graph.note("method", model.method().traits().name);
  graph.note("preset", model.preset());
  graph.note("views", described.dump());
  graph.note("labels", nlohmann::json(model.label_names()).dump());
  graph.note("aim", calibration.empty() ? "scores above 0.5" : calibration.aim().text());
  graph.note("thresholds",
             nlohmann::json(calibration.empty() ? std::vector<float>(model.label_names().size(), .5f)
                                                : calibration.thresholds())
                 .dump());
  graph.note("calibrated", calibration.empty() ? "false" : "true");
  graph.note("missing", "a row of NaN is a missing view; a NaN inside another row gives NaN");
}

}  // namespace

OnnxSummary export_onnx(const Tensors& file, const std::string& path) {
  Model model = Model::load(file);
  const std::string method = model.method().traits().name;
  if (!is_network(method) && method != "c2ae")
    fail(Exit::mismatch,
         "{}: method {} cannot be exported to ONNX: {} (methods that can: lacuna, mtd, dicnet, c2ae)",
         file.path(), method, obstacle(method));

  OnnxGraph graph;
  std::vector<OnnxView> views;
  for (const auto& map : model.preparation().views()) views.push_back(onnx_input(graph, map));
  OnnxNumbers numbers;
  const std::vector<Value> scores = onnx_networks(graph, views, model, file, numbers);
  const Blend blend = has_blend(file) ? load_blend(file, scores.size()) : Blend{};
  const Value score =
      scores.size() == 1 && blend.slopes.empty() ? scores[0] : blended_score(graph, scores, blend);
  const Calibration& calibration = model.calibration();
  std::vector<float> slope, intercept;
  if (!calibration.empty())
    slope = file.floats("calibration.slope"), intercept = file.floats("calibration.intercept");
  const Value probability = calibration.empty() ? score : calibrated(graph, score, slope, intercept);
  const std::size_t labels = model.label_names().size();
  const Value decision = onnx_decision(graph, score, calibration, labels);
  graph.output("scores", score, OnnxType::real, labels);
  graph.output("probabilities", probability, OnnxType::real, labels);
  graph.output("decided", decision, OnnxType::boolean, labels);
  describe(graph, model);
  graph.write(path);
  return {views.size(), labels, scores.size(), !calibration.empty()};
}

}  // namespace lacuna
