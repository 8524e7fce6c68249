#include "methods/model_card.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "methods/explain.h"
#include "methods/row_memory.h"

namespace lacuna {

std::string preparation_text(const Preparation::ViewMap& view) {
  std::vector<std::string> steps;
  if (view.log_scale > 0) steps.push_back(fmt::format("sign(x) log(1 + {:.4g} |x|)", view.log_scale));
  if (view.power > 0) steps.push_back(fmt::format("sign(x) |x|^{:.3g}", view.power));
  if (!view.directions.empty()) {
    if (std::ranges::any_of(view.scale.row(0), [](float scale) { return scale != 0 && scale != 1; }))
      steps.push_back("each column to standard deviation 1, because their units differ");
    steps.push_back(
        fmt::format("centred, {} of {} principal directions", view.directions.cols(), view.columns));
    if (!view.kernel.empty())
      steps.push_back(fmt::format(
          "{}{} coordinates of a Gaussian kernel",
          view.linear > 0 ? fmt::format("the first {} of them beside ", view.linear) : std::string(),
          view.kernel.columns()));
  } else if (view.clamp) {
    steps.push_back("each column to 0..1");
  } else if (!view.shift.empty()) {
    steps.push_back("each column to mean 0 and standard deviation 1");
  }
  return steps.empty() ? "as they are" : join(steps, ", then ");
}

nlohmann::json model_card(const Model& model) {
  using nlohmann::json;
  const Traits traits = model.method().traits();
  const auto text = [](const std::string& value) { return value.empty() ? json() : json(value); };
  const json& notes = model.notes();
  const auto note = [&](const char* key) { return notes.is_object() ? notes.value(key, json()) : json(); };

  json views = json::array();
  const auto shapes = model.view_shapes();
  for (std::size_t v = 0; v < shapes.size(); ++v) {
    json preparations = json::array();  // members may see a view differently
    for (const auto& form : model.preparations()) {
      if (form.views().empty()) continue;  // of candidates that were left out
      const std::string words = preparation_text(form.views()[v]);
      if (std::find(preparations.begin(), preparations.end(), words) == preparations.end())
        preparations.push_back(words);
    }
    views.push_back({{"name", shapes[v].name},
                     {"columns", shapes[v].columns},
                     {"column_names", shapes[v].column_names.empty() ? json() : json(shapes[v].column_names)},
                     {"preparation", preparations.size() == 1 ? preparations[0] : preparations},
                     {"reason", text(model.preparation().views()[v].reason)}});
  }
  json labels = json::array();
  const Calibration& calibration = model.calibration();
  for (std::size_t j = 0; j < model.label_names().size(); ++j) {
    const auto number = [&](const std::vector<float>& values) {
      return values.empty() ? json() : json(values[j]);
    };
    labels.push_back({{"name", model.label_names()[j]},
                      {"prior", model.prior().empty() ? json() : json(1 / (1 + std::exp(-model.prior()[j])))},
                      {"threshold", number(calibration.thresholds())},
                      {"slope", number(calibration.slopes())},
                      {"intercept", number(calibration.intercepts())}});
  }
  json training = json::object();
  for (const char* key : {"data", "data_hash", "rows", "unlabelled_rows", "seed", "folds", "fold", "hold-out",
                          "empty", "diverged", "leaks"})
    if (const json value = note(key); !value.is_null()) training[key] = value;
  if (!model.refitted().is_null()) training["refit"] = model.refitted();
  const json options = model.options().json();
  return {{"method", traits.name},
          {"title", traits.title},
          {"preset", text(model.preset())},
          {"parameters", model.method().parameters()},
          {"members", options.value("members", json())},
          {"memory", memory_of(model.method())},
          {"recovery", model.recovery().about()},
          {"choice", choice_of(model.method())},
          {"label_links", model.label_links().about()},
          {"probabilities", traits.probabilities},
          {"version", text(model.version())},
          {"date", note("date")},
          {"protocol", note("protocol")},
          {"views", views},
          {"labels", labels},
          {"base", base_name(base_of(model, {}))},
          {"aim", calibration.empty() ? json() : json(calibration.aim().text())},
          {"training", training},
          {"validation", model.validation_record()},
          {"options", options}};
}

}  // namespace lacuna
