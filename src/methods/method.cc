#include "methods/method.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "methods/all.h"

namespace lacuna {

void Method::decide(MatrixView<const float> scores, MatrixView<std::uint8_t> decided) const {
  for (std::size_t i = 0; i < scores.rows; ++i)
    for (std::size_t j = 0; j < scores.cols; ++j) decided(i, j) = scores(i, j) > .5f;
}

std::vector<std::string> Method::presets() const {
  const auto all = variants();
  std::vector<std::string> names;
  if (!all.empty()) names.push_back(kDefaultPreset);
  for (const Variant& variant : all) names.push_back(variant.name);
  return names;
}

void Method::set_preset(const std::string& name, PrepareOptions& prepare) {
  const auto names = presets();
  if (std::find(names.begin(), names.end(), name) == names.end()) no_such_preset(name);
  const auto fresh = make_method(traits().name);
  Options options, defaults;
  fresh->declare(defaults);
  declare(options);
  options.from_json(defaults.json(), "preset " + name);
  prepare.kind = traits().prepare;
  prepare.components = traits().components;
  prepare.declare(options);
  for (const Variant& variant : variants())
    if (variant.name == name)
      for (const auto& [key, value] : variant.changes) options.set(key, value, "preset " + name);
}

void Method::no_such_preset(const std::string& name) const {
  const std::vector<std::string> own = presets(), owners = methods_with_preset(name);
  fail(Exit::usage, "method {} has no preset '{}'{}{}", traits().name, name,
       owners.empty() ? did_you_mean(name, own) : fmt::format("; {} has it", join(owners, ", ")),
       own.empty() ? ": it has none" : fmt::format(" (it has {})", join(own, ", ")));
}

namespace {

struct Entry {
  const char* name;
  std::unique_ptr<Method> (*make)();
};
constexpr Entry kMethods[] = {
    {kDefaultMethod, make_lacuna},  //
    {"mtd", make_mtd},              //
    {"dicnet", make_dicnet},        //
    {"c2ae", make_c2ae},            //
    {"prior", make_prior},          //
    {"linear", make_linear},        //
    {"mlknn", make_mlknn},          //
    {"glocal", make_glocal},        //
    {"cdmm", make_cdmm},            //
    {"dm2l", make_dm2l},            //
    {"lvsl", make_lvsl},            //
    {"imvwl", make_imvwl},          //
    {"naim3l", make_naim3l},        //
};

}  // namespace

nlohmann::json Method::selected() const {
  return nullptr;
}

std::vector<MemberPlan> Method::plan(const std::string&, std::size_t members) const {
  return std::vector<MemberPlan>(std::max<std::size_t>(members, 1));
}

float log_odds(float probability) {
  constexpr float kEdge = 1e-7f;
  const float p = std::clamp(probability, kEdge, 1 - kEdge);
  return std::log(p / (1 - p));
}

void Method::predict_sets(const Items& items, const ViewSets& sets, MatrixView<float> values) const {
  constexpr std::size_t kBlock = 512;
  for (std::size_t begin = 0; begin < sets.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, sets.size() - begin);
    Items fewer;
    fewer.common = items.common;
    fewer.W = Matrix<std::uint8_t>(count, items.views());
    for (std::size_t v = 0; v < items.views(); ++v) {
      SharedMatrix<float>& X = fewer.X.emplace_back(count, items.X[v].cols());
      for (std::size_t k = 0; k < count; ++k) {
        const std::uint32_t row = sets.rows[begin + k];
        if (sets.W(begin + k, v) == 0 || items.W(row, v) == 0) continue;
        fewer.W(k, v) = 1;
        std::ranges::copy(items.X[v].row(row), X.row(k).begin());
      }
    }
    const MatrixView<float> part = values.slice(begin, count);
    predict(fewer, part);
    if (!traits().probabilities) continue;
    for (std::size_t k = 0; k < count; ++k)
      for (float& value : part.row(k)) value = log_odds(value);
  }
}

const std::vector<std::string>& method_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Entry& entry : kMethods) list.push_back(entry.name);
    return list;
  }();
  return names;
}

std::unique_ptr<Method> make_method(const std::string& name) {
  for (const Entry& entry : kMethods)
    if (name == entry.name) return entry.make();
  fail(Exit::usage, "there is no method '{}'{} (lacuna methods lists them)", name,
       did_you_mean(name, method_names()));
}

std::vector<std::string> methods_with_preset(const std::string& preset) {
  std::vector<std::string> owners;
  for (const Entry& entry : kMethods)
    if (const auto presets = entry.make()->presets();
        std::find(presets.begin(), presets.end(), preset) != presets.end())
      owners.push_back(entry.name);
  return owners;
}

std::string method_of_preset(const std::string& preset) {
  const auto owners = methods_with_preset(preset);
  if (owners.size() == 1) return owners.front();
  if (!owners.empty())
    fail(Exit::usage, "preset '{}' belongs to {}: name one of them with --method", preset,
         join(owners, ", "));
  std::vector<std::string> all;
  for (const Entry& entry : kMethods)
    for (const auto& name : entry.make()->presets())
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
  fail(Exit::usage, "no method has a preset '{}'{} (there are {})", preset, did_you_mean(preset, all),
       join(all, ", "));
}

Metrics evaluate_on(const Method& method, const Items& items) {
  Matrix<float> scores(items.rows(), items.labels());
  method.predict(items, scores);
  Matrix<std::uint8_t> decided(items.rows(), items.labels());
  method.decide(scores, decided);
  return evaluate(scores, truth_of(items), decided);
}

}  // namespace lacuna
