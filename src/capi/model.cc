// Models: settings, fits with callbacks, predictions, files.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/tensors.h"
#include "capi/handles.h"
#include "data/protocol.h"
#include "experiments/details.h"
#include "experiments/report.h"
#include "methods/explain.h"

namespace lacuna::capi {
namespace {

// Tells the caller's functions about the fit; once one of them says stop, that stays.
class Callbacks final : public FitContext {
 public:
  explicit Callbacks(const lacuna_fit_options& options) : options_(options) { seed = options.seed; }

  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    if (options_.progress == nullptr) return true;
    std::vector<const char*> names;
    std::vector<double> values;
    for (const auto& [name, value] : record.losses) {
      names.push_back(name.c_str());
      values.push_back(value);
    }
    const std::vector<double> validation = record.validation.values();
    const lacuna_epoch epoch{sizeof(lacuna_epoch),
                             record.epoch,
                             record.epochs,
                             record.fit(),
                             record.fits(),
                             record.seconds,
                             record.rows_per_second,
                             names.size(),
                             names.data(),
                             values.data(),
                             record.validated ? validation.data() : nullptr};
    stopped_ = options_.progress(options_.user, &epoch) != 0 || stopped_;
    return true;
  }
  void remark(const std::string& text) override {
    if (options_.remark != nullptr) options_.remark(options_.user, text.c_str());
  }
  bool stopping() override {
    stopped_ = stopped_ || (options_.stop != nullptr && options_.stop(options_.user) != 0);
    return stopped_;
  }
  bool stopped() const { return stopped_; }

 private:
  const lacuna_fit_options& options_;
  bool stopped_ = false;
};

Model same_settings(const Model& plan) {
  Model model(plan.method().traits().name);
  if (!plan.preset().empty()) model.set_preset(plan.preset());
  model.options().from_json(plan.options().json(), "the model");
  return model;
}

// Validation rows of the caller's own must describe the same things in the same order.
void check_alike(const Dataset& train, const Dataset& val) {
  if (val.views.size() != train.views.size())
    fail(Exit::mismatch, "the validation rows have {} views, the training rows {}", val.views.size(),
         train.views.size());
  for (std::size_t v = 0; v < train.views.size(); ++v) {
    if (val.views[v].name != train.views[v].name)
      fail(Exit::mismatch, "view {} of the validation rows is '{}', that of the training rows '{}'", v,
           val.views[v].name, train.views[v].name);
    if (val.views[v].columns() != train.views[v].columns())
      fail(Exit::mismatch, "view '{}' has {} columns in the validation rows, {} in the training rows",
           val.views[v].name, val.views[v].columns(), train.views[v].columns());
  }
  if (val.label_names != train.label_names)
    fail(Exit::mismatch, "the labels of the validation rows ({}) are not those of the training rows ({})",
         val.label_names.size(), train.label_names.size());
}

// What is kept is what is saved: the state of the optimizer, several times as large, goes.
void adopt(lacuna_model& handle, std::optional<Model> fresh) {
  auto validation = fresh->validation();
  auto bytes = std::make_shared<const std::string>(fresh->tensors().text());
  fresh.reset();
  Model loaded = Model::load(Tensors::parse(bytes, as_bytes(*bytes), "the fitted model"));
  handle.fitted = std::move(loaded);
  handle.validation = validation;
}

nlohmann::json metrics_of(const Metrics& metrics) {
  nlohmann::json values = nlohmann::json::object();
  for (std::size_t i = 0; i < metric_names().size(); ++i) values[metric_names()[i]] = metrics.values()[i];
  return values;
}

// Rows of NaN alone are those of items without any view.
MatrixView<const float> scores_of(const Model& model, const float* scores, std::size_t rows) {
  if (rows > 0) need(scores, "scores");
  const MatrixView<const float> view(scores, rows, model.label_names().size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < view.cols; ++j)
      if (std::isnan(view(i, j)) && !all_nan(view.row(i)))
        fail(Exit::data, "the score of row {}, label {} is NaN, others of the row are not", i, j);
  return view;
}

bool has_view(const Dataset& set, std::size_t row) {
  for (std::size_t v = 0; v < set.views.size(); ++v)
    if (set.has(row, v)) return true;
  return false;
}

}  // namespace
}  // namespace lacuna::capi

using namespace lacuna;
using capi::guarded;
using capi::need;

lacuna_status lacuna_methods(char** json, lacuna_error** error) {
  return guarded(error, [&] {
    need(json, "json") = nullptr;
    nlohmann::json list = nlohmann::json::array();
    for (const auto& name : method_names()) {
      const auto method = make_method(name);
      const Traits traits = method->traits();
      list.push_back({{"name", traits.name},
                      {"title", traits.title},
                      {"source", traits.source},
                      {"presets", method->presets()},
                      {"multi_view", traits.multi_view},
                      {"missing_views", traits.missing_views},
                      {"missing_labels", traits.missing_labels},
                      {"iterative", traits.iterative},
                      {"probabilities", traits.probabilities}});
    }
    *json = capi::copied(list);
  });
}

lacuna_status lacuna_model_new(const char* method, const char* preset, lacuna_model** model,
                               lacuna_error** error) {
  return guarded(error, [&] {
    need(model, "model") = nullptr;
    const std::string given = preset == nullptr ? "" : capi::text_of(preset, "preset");
    Model plan(method != nullptr ? capi::text_of(method, "method")
               : given.empty()   ? kDefaultMethod
                                 : method_of_preset(given));
    if (!given.empty()) plan.set_preset(given);
    *model = new lacuna_model{std::move(plan), std::nullopt, std::nullopt};
  });
}

void lacuna_model_free(lacuna_model* model) {
  delete model;
}

lacuna_status lacuna_model_set(lacuna_model* model, const char* name, const char* value,
                               lacuna_error** error) {
  return guarded(error, [&] {
    Model& plan = need(model, "model").plan;
    plan.options().set(capi::text_of(name, "name"), capi::text_of(value, "value"),
                       "method " + plan.method().traits().name);
  });
}

lacuna_status lacuna_model_settings(const lacuna_model* model, char** json, lacuna_error** error) {
  return guarded(error, [&] {
    need(json, "json") = nullptr;
    *json = capi::copied(capi::described(need(model, "model").plan.options()));
  });
}

void lacuna_fit_options_init(lacuna_fit_options* options) {
  if (options != nullptr)
    *options = {sizeof(lacuna_fit_options), 1, .15, nullptr, nullptr, nullptr, nullptr, nullptr};
}

lacuna_status lacuna_model_fit(lacuna_model* model, const lacuna_data* data,
                               const lacuna_fit_options* options, int* stopped, lacuna_error** error) {
  if (stopped != nullptr) *stopped = 0;
  return guarded(error, [&] {
    lacuna_fit_options used;
    lacuna_fit_options_init(&used);
    if (options != nullptr) {
      if (options->size == 0 || options->size > sizeof(used))
        fail(Exit::usage, "the fit options have the size {}, this library knows {}", options->size,
             sizeof(used));
      std::memcpy(&used, options, options->size);
    }
    const Dataset& set = need(data, "data").set;
    if (!(used.hold_out >= 0 && used.hold_out <= .9))
      fail(Exit::usage, "--hold-out takes a number from 0 to 0.9, not {}", used.hold_out);
    LearningRows rows =
        learning_rows(select_all(set), used.validation == nullptr ? used.hold_out : 0, used.seed);
    if (used.validation != nullptr) {
      capi::check_alike(set, used.validation->set);
      rows = {select_all(set), select_all(used.validation->set)};
      drop_rows_without_view(rows.learn);
    }
    Model fresh = capi::same_settings(need(model, "model").plan);
    apply_protocol(Protocol::strict, fresh.options());
    fresh.notes() = {{"data", set.name},
                     {"data_hash", content_hash(set)},
                     {"seed", used.seed},
                     {"protocol", "strict"},
                     {"rows", rows.learn.rows.size()}};
    if (used.validation == nullptr) fresh.notes()["hold-out"] = used.hold_out;
    capi::Callbacks context(used);
    try {
      fresh.fit(rows.learn, rows.val, context);
    } catch (const Diverged& diverged) {
      if (!diverged.kept) throw;
      fresh.notes()["diverged"] = diverged.what();
      capi::adopt(*model, std::move(fresh));
      if (stopped != nullptr) *stopped = 1;
      throw;
    }
    capi::adopt(*model, std::move(fresh));
    if (stopped != nullptr) *stopped = context.stopped() ? 1 : 0;
  });
}

size_t lacuna_model_labels(const lacuna_model* model) {
  return model == nullptr || !model->fitted ? 0 : model->fitted->label_names().size();
}

lacuna_status lacuna_model_predict(const lacuna_model* model, const lacuna_data* data, float* scores,
                                   lacuna_error** error) {
  return guarded(error, [&] {
    const Model& fitted = capi::fitted(model);
    const Dataset& set = need(data, "data").set;
    need(scores, "scores");
    const std::size_t labels = fitted.label_names().size();
    fitted.predict(select_all(set), [&](std::size_t begin, MatrixView<const float> block) {
      for (std::size_t i = 0; i < block.rows; ++i) {
        float* const row = scores + (begin + i) * labels;
        if (capi::has_view(set, begin + i))
          std::memcpy(row, block.row(i).data(), labels * sizeof(float));
        else
          std::fill_n(row, labels, std::numeric_limits<float>::quiet_NaN());
      }
    });
  });
}

lacuna_status lacuna_model_decide(const lacuna_model* model, const float* scores, size_t rows,
                                  uint8_t* decided, lacuna_error** error) {
  return guarded(error, [&] {
    const Model& fitted = capi::fitted(model);
    const auto view = capi::scores_of(fitted, scores, rows);
    if (view.empty()) return;
    Matrix<std::uint8_t> result = fitted.decide(view);
    for (std::size_t i = 0; i < rows; ++i)
      if (capi::all_nan(view.row(i))) std::ranges::fill(result.row(i), std::uint8_t{0});
    std::memcpy(&need(decided, "decided"), result.data(), result.values().size());
  });
}

lacuna_status lacuna_model_calibrate(const lacuna_model* model, float* scores, size_t rows,
                                     lacuna_error** error) {
  return guarded(error, [&] {
    const Model& fitted = capi::fitted(model);
    capi::scores_of(fitted, scores, rows);
    fitted.calibrate(MatrixView<float>(scores, rows, fitted.label_names().size()));
  });
}

lacuna_status lacuna_explain(const lacuna_model* model, const lacuna_data* data, double* score, double* base,
                             double* values, lacuna_error** error) {
  return guarded(error, [&] {
    const Model& fitted = capi::fitted(model);
    const Dataset& set = need(data, "data").set;
    need(score, "score"), need(base, "base"), need(values, "values");
    const std::size_t labels = fitted.label_names().size();
    explain(fitted, select_all(set), {}, [&](std::size_t begin, const Explanation& part) {
      const auto put = [&](const Matrix<double>& from, double* to) {
        std::ranges::copy(from.values(), to + begin * labels);
      };
      put(part.score, score);
      put(part.base, base);
      for (std::size_t v = 0; v < part.values.size(); ++v)
        put(part.values[v], values + v * set.rows * labels);
      for (std::size_t i = 0; i < part.score.rows(); ++i)
        if (!capi::has_view(set, begin + i))
          std::fill_n(score + (begin + i) * labels, labels, std::numeric_limits<double>::quiet_NaN());
    });
  });
}

lacuna_status lacuna_model_describe(const lacuna_model* model, char** json, lacuna_error** error) {
  return guarded(error, [&] {
    need(json, "json") = nullptr;
    const Model& shown = need(model, "model").fitted ? *model->fitted : model->plan;
    const Traits traits = shown.method().traits();
    nlohmann::json document = {{"method", traits.name},
                               {"preset", shown.preset()},
                               {"version", LACUNA_VERSION},
                               {"fitted", model->fitted.has_value()},
                               {"probabilities", traits.probabilities},
                               {"base", base_name(base_of(shown, {}))},
                               {"settings", shown.options().json()},
                               {"views", nlohmann::json::array()},
                               {"labels", nlohmann::json::array()},
                               {"calibrated", false},
                               {"parameters", 0},
                               {"validation", nullptr},
                               {"label_links", nullptr},
                               {"recovery", nullptr},
                               {"notes", shown.notes()}};
    if (model->fitted) {
      for (const auto& view : shown.columns().views())
        document["views"].push_back(
            {{"name", view.view}, {"columns", view.count}, {"column_names", view.names}});
      const Calibration& calibration = shown.calibration();
      for (std::size_t j = 0; j < shown.label_names().size(); ++j) {
        const bool known = !calibration.empty() && !calibration.thresholds().empty();
        document["labels"].push_back(
            {{"name", shown.label_names()[j]},
             {"threshold", known ? nlohmann::json(calibration.thresholds()[j]) : nlohmann::json()}});
      }
      document["calibrated"] = !calibration.empty();
      if (shown.label_links().learned()) document["label_links"] = shown.label_links().about();
      document["recovery"] = shown.recovery().about();
      document["parameters"] = shown.method().parameters();
      if (model->validation) document["validation"] = capi::metrics_of(*model->validation);
    }
    *json = capi::copied(document);
  });
}

lacuna_status lacuna_model_save(const lacuna_model* model, const char* path, lacuna_error** error) {
  return guarded(error, [&] { capi::fitted(model).save(capi::text_of(path, "path")); });
}

lacuna_status lacuna_model_load(const char* path, lacuna_model** model, lacuna_error** error) {
  return guarded(error, [&] {
    need(model, "model") = nullptr;
    Model loaded = Model::load(capi::text_of(path, "path"));
    Model plan = capi::same_settings(loaded);
    *model = new lacuna_model{std::move(plan), std::move(loaded), std::nullopt};
  });
}

lacuna_status lacuna_model_store(const lacuna_model* model, void** bytes, size_t* size,
                                 lacuna_error** error) {
  return guarded(error, [&] {
    need(bytes, "bytes") = nullptr;
    need(size, "size") = 0;
    const std::string text = capi::fitted(model).tensors().text();
    *bytes = capi::copied(text);
    *size = text.size();
  });
}

lacuna_status lacuna_model_restore(const void* bytes, size_t size, lacuna_model** model,
                                   lacuna_error** error) {
  return guarded(error, [&] {
    need(model, "model") = nullptr;
    const auto* memory = &need(static_cast<const std::byte*>(bytes), "bytes");
    Model loaded = Model::load(Tensors::parse(nullptr, Bytes(memory, size), "the stored model"));
    Model plan = capi::same_settings(loaded);
    *model = new lacuna_model{std::move(plan), std::move(loaded), std::nullopt};
  });
}

lacuna_status lacuna_model_report(const lacuna_model* model, const lacuna_data* data, const char* title,
                                  char** html, lacuna_error** error) {
  return guarded(error, [&] {
    need(html, "html") = nullptr;
    const Model& fitted = capi::fitted(model);
    const Dataset& given = need(data, "data").set;
    Selection rows = select_all(given);
    drop_rows_without_view(rows);
    if (rows.rows.empty()) fail(Exit::data, "{} has no item with a view", given.name);
    const Dataset set = rows.rows.size() == given.rows ? given : select_rows(given, rows.rows);
    const Traits traits = fitted.method().traits();
    if (set.labels.empty()) fail(Exit::data, "{} has no labels to compare with", set.name);
    if (set.label_names != fitted.label_names())
      fail(Exit::mismatch, "the labels of the data ({}) are not those of the model ({})",
           set.label_names.size(), fitted.label_names().size());
    const Matrix<float> scores = fitted.predict(set);
    const Matrix<std::uint8_t> decided = fitted.decide(scores);
    ModelReport page;
    page.title = title == nullptr ? traits.title + " on " + set.name : capi::text_of(title, "title");
    page.facts = {{"method", traits.title + (fitted.preset().empty() ? "" : ", preset " + fitted.preset())},
                  {"data", set.name},
                  {"rows", std::to_string(set.rows)}};
    page.metrics = capi::metrics_of(evaluate(scores, set.labels, decided));
    page.metrics_part = "these";
    page.options = fitted.options().json();
    page.details =
        prediction_details(scores, set.labels, decided, fitted.label_names(), traits.probabilities);
    *html = capi::copied(model_report_text(page));
  });
}
