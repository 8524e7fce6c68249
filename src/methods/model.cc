#include "methods/model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "data/bootstrap.h"
#include "data/release.h"
#include "methods/ensemble.h"

namespace lacuna {
namespace {

constexpr int kSchema = 1;
constexpr const char* kPrior = "label_prior";
constexpr const char* kBudget = "10m";

}  // namespace

void apply_protocol(Protocol protocol, Model& model) {
  apply_protocol(protocol, model.options());
  if (protocol == Protocol::authors && model.options().find("all-rows")->text() == "true")
    fail(Exit::usage,
         "--all-rows learns from the validation rows, which protocol authors scores; use protocol strict or "
         "transductive");
  const Traits traits = model.method().traits();
  if (protocol != Protocol::transductive || traits.missing_labels) return;
  std::vector<std::string> able;
  for (const auto& name : method_names())
    if (make_method(name)->traits().missing_labels) able.push_back(name);
  fail(Exit::usage,
       "method {} treats unknown labels as negative, so it cannot use rows without labels as protocol "
       "transductive does; methods that can: {}",
       traits.name, join(able, ", "));
}

Model::Model(const std::string& method)
    : method_(make_method(method)), prepare_(std::make_unique<PrepareOptions>()) {
  const Traits traits = method_->traits();
  prepare_->kind = traits.prepare;
  prepare_->components = traits.components;
  if (const auto presets = method_->presets(); !presets.empty()) set_preset(presets.front());
  bind();
}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

void Model::bind() {
  options_ = Options();
  method_->declare(options_);
  prepare_->declare(options_);
  options_
      .add("members", settings_->members,
           "networks of the ensemble, with different seeds; 0 = as in the preset")
      .range(0, 256);
  options_.add("aim", settings_->aim,
               "what the thresholds of --labels aim at on validation: f1, precision=P or top=K");
  options_.add(
      "keep-decoders", settings_->keep_decoders,
      "also learn to reconstruct views from each other, for lacuna recover (any method; uses no labels)");
  options_.add(
      "all-rows", settings_->all_rows,
      "fit again: what the first fit selects on the validation rows, the second applies to training and "
      "validation rows together");
  options_
      .add("budget", settings_->budget,
           fmt::format(
               "preset auto: processor time for all candidates, by their own estimates, as 90s, 2m or 1h "
               "(default {})",
               kBudget))
      .metavar("TIME");
}

std::optional<Choosing> Model::choosing() const {
  const std::string& text = settings_->budget;
  if (!method_->chooses(preset_)) {
    if (!text.empty())
      fail(Exit::usage,
           "--budget {} has no effect: {} is fitted as it is; preset auto chooses among candidates", text,
           preset_.empty() ? method_->traits().name : "preset " + preset_);
    return std::nullopt;
  }
  const auto seconds = parse_duration(text.empty() ? kBudget : text);
  if (!seconds) fail(Exit::usage, "--budget takes a time above 0, as 90s, 2m or 1h, not '{}'", text);
  return Choosing{*seconds};
}

// The settings say what the members are, and which preparations they see.
void Model::make_members() {
  if (is_ensemble_) return;
  const std::optional<Choosing> choosing = this->choosing();
  MemberForms members =
      member_forms(method_->plan(preset_, static_cast<std::size_t>(settings_->members)), *prepare_);
  forms_ = std::move(members.forms);
  forms_of_predictions_ = members.forms_of_predictions;
  in_batches_ =
      std::ranges::all_of(members.specs, [](const MemberSpec& spec) { return spec.method.empty(); });
  if (members.specs.empty()) return;
  is_ensemble_ = true;
  method_ = make_ensemble(std::move(method_), preset_, std::move(members.specs), choosing);
}

std::size_t Model::members_planned() const {
  return is_ensemble_ ? 1 : method_->plan(preset_, static_cast<std::size_t>(settings_->members)).size();
}

Cost Model::cost(const FitSize& size) const {
  return untrained(method_->traits().name, preset_, options_.json(), "an estimate").method_->cost(size);
}

Items Model::prepared(const Selection& selection, const std::vector<int>& source, std::size_t forms,
                      bool with_labels, const std::vector<bool>& wanted) const {
  Items items = preparations_.front().apply(selection, source, with_labels, wanted);
  for (std::size_t k = 1; k < forms; ++k)
    items.others.push_back(
        preparations_[k].views().empty() ? Items{} : preparations_[k].apply(selection, source, false));
  return items;
}

void Model::set_preset(const std::string& name) {
  method_->set_preset(name, *prepare_);
  preset_ = name;
  bind();  // the preset's values are the defaults from here on
}

const Matrix<float>* Model::validation_scores() const {
  return validated_ ? &validated_->scores : nullptr;
}

nlohmann::json Model::validation_record() const {
  if (!validated_) return record_;
  const auto& [scores, truth, decided] = *validated_;
  const MetricIntervals bootstrap = bootstrap_metrics(scores, truth, decided);
  nlohmann::json metrics, intervals;
  for (std::size_t k = 0; k < metric_names().size(); ++k) {
    const auto [low, high] = bootstrap.intervals[k];
    const double value = validation_->values()[k];
    metrics[metric_names()[k]] = value;  // NaN becomes null
    // Some resamples may define what these rows do not.
    intervals[metric_names()[k]] = std::isnan(value) ? nlohmann::json() : nlohmann::json{low, high};
  }
  return {{"rows", scores.rows()},
          {"metrics", metrics},
          {"intervals", intervals},
          {"level", bootstrap.level},
          {"resamples", bootstrap.resamples}};
}

Items Model::prepare(const Selection& selection) const {
  const Columns::Match match = columns_.match(*selection.data);
  Selection matched = selection;
  matched.data = &match.data;
  return prepared(matched, match.source, forms_of_predictions_, false);
}

std::vector<ViewShape> Model::view_shapes(const std::string& empty) const {
  std::vector<ViewShape> shapes;
  for (const ViewColumns& view : columns_.views()) {
    ViewShape& shape = shapes.emplace_back(ViewShape{view.view, view.count, view.names, {}});
    if (empty == "zero") shape.fill.assign(view.count, 0.f);
    if (empty != "mean") continue;
    if (view.means.empty())
      fail(Exit::mismatch,
           "the model contains no means of its training rows; use --empty zero, or train it again");
    shape.fill = view.means;
  }
  return shapes;
}

Matrix<float> Model::predict(const Dataset& data) const {
  return predict(select_all(data));
}

Matrix<float> Model::predict(const Selection& selection) const {
  Matrix<float> scores(selection.rows.size(), label_names_.size());
  predict(selection, [&](std::size_t begin, MatrixView<const float> block) {
    for (std::size_t i = 0; i < block.rows; ++i)
      std::copy(block.row(i).begin(), block.row(i).end(), scores.row(begin + i).begin());
  });
  return scores;
}

void Model::predict(const Selection& selection, Sink sink) const {
  predict(selection, sink, one_rank());
}

void Model::predict(const Selection& selection, Sink sink, const Ranks& ranks) const {
  constexpr std::size_t kBlock = 2048;  // bounds the memory of prepared copies and of scores
  const Columns::Match match = columns_.match(*selection.data);
  const std::size_t rows = selection.rows.size(), turn = kBlock * static_cast<std::size_t>(ranks.size());
  const auto count = [&](std::size_t begin) { return begin < rows ? std::min(kBlock, rows - begin) : 0; };
  Matrix<float> scores(std::min(turn, rows), label_names_.size());  // of a turn: one block of each rank
  const auto block_of = [&](std::size_t from, int rank) {
    return from + kBlock * static_cast<std::size_t>(rank);
  };
  Selection block{&match.data, selection.fold, {}, selection.hide_labels};
  for (std::size_t from = 0; from < rows; from += turn) {
    const auto place = [&](std::size_t begin) { return scores.view().slice(begin - from, count(begin)); };
    if (const std::size_t begin = block_of(from, ranks.rank()); count(begin) > 0) {
      const auto first = selection.rows.begin() + static_cast<std::ptrdiff_t>(begin);
      block.rows.assign(first, first + static_cast<std::ptrdiff_t>(count(begin)));
      method_->predict(prepared(block, match.source, forms_of_predictions_, false), place(begin));
      if (block.rows.back() - block.rows.front() + 1 == count(begin))  // rows in the order of the file
        for (const auto& view : match.data.views) release_rows(view, block.rows.front(), count(begin));
    }
    std::vector<Ranks::Part> parts;
    for (int r = 0; r < ranks.size(); ++r)
      if (const std::size_t begin = block_of(from, r); count(begin) > 0)
        parts.push_back(
            {scores.row(begin - from).data(), count(begin) * scores.cols() * sizeof(float), r, 0});
    ranks.exchange(parts);
    for (std::size_t begin = from; ranks.leads() && begin < std::min(rows, from + turn); begin += kBlock)
      sink(begin, place(begin));
  }
}

Matrix<std::uint8_t> Model::decide(MatrixView<const float> scores) const {
  Matrix<std::uint8_t> decided(scores.rows, scores.cols);
  if (calibration_.empty()) {
    method_->decide(scores, decided);
  } else {
    calibration_.decide(scores, decided);
  }
  return decided;
}

void Model::calibrate(MatrixView<float> scores) const {
  if (calibration_.empty()) fail(Exit::mismatch, "the model has no calibration: {}", Calibration::kWhyEmpty);
  calibration_.apply(scores);
}

void Model::refine(MatrixView<const std::int8_t> known, MatrixView<float> scores) const {
  links_.refine(known, calibration_, scores);
}

void Model::save(const std::string& path) const {
  tensors().write(path);
}

Tensors Model::tensors() const {
  Tensors file;
  method_->save(file);
  for (std::size_t k = 0; k < forms_of_predictions_; ++k)
    if (!preparations_[k].views().empty()) preparations_[k].save(file, form_prefix(k));
  columns_.save(file);
  calibration_.save(file);
  recovery_.save(file);
  links_.save(file);
  if (!prior_.empty()) file.put(kPrior, std::span(prior_));
  file.metadata["schema"] = kSchema;
  file.metadata["method"] = method_->traits().name;
  file.metadata["preset"] = preset_;
  file.metadata["options"] = options_.json();
  file.metadata["labels"] = label_names_;
  file.metadata["notes"] = notes_;
  if (!version_.empty()) file.metadata["version"] = version_;
  if (const auto record = validation_record(); !record.is_null()) file.metadata["validation"] = record;
  if (!refitted_.is_null()) file.metadata["refit"] = refitted_;
  return file;
}

// With members, if the settings say so.
Model Model::untrained(const std::string& method, const std::string& preset, const nlohmann::json& settings,
                       const std::string& where) {
  Model model(method);
  if (!preset.empty()) model.set_preset(preset);
  model.options_.from_json(settings, where);
  model.make_members();
  return model;
}

Model Model::load(const std::string& path) {
  return load(Tensors::read(path));
}

Model Model::load(const Tensors& file) {
  const std::string& path = file.path();
  const auto& meta = file.metadata;
  if (!meta.contains("method") || !meta["method"].is_string() || !meta.contains("labels") ||
      !meta.contains("options"))
    fail(Exit::data, "{}: is not a model of Lacuna (its metadata lacks method, options or labels)", path);
  if (meta.value("schema", 0) != kSchema)
    fail(Exit::data, "{}: model schema {}, this program reads {}", path, meta.value("schema", 0), kSchema);
  try {
    const auto preset = meta.value("preset", std::string());
    auto method = meta["method"].get<std::string>();
    // Up to version 0.1 the presets of method lacuna were presets of method mtd.
    if (method == "mtd" && methods_with_preset(preset) == std::vector<std::string>{kDefaultMethod})
      method = kDefaultMethod;
    Model model = untrained(method, preset, meta["options"], path);
    model.label_names_ = meta["labels"].get<std::vector<std::string>>();
    model.notes_ = meta.value("notes", nlohmann::json::object());
    for (std::size_t k = 0; k < model.forms_of_predictions_; ++k)
      model.preparations_.push_back(k > 0 && !has_form(file, k) ? Preparation()
                                                                : Preparation::load(file, form_prefix(k)));
    ItemShape shape{{}, model.label_names_.size(), {}};
    for (std::size_t k = 0; k < model.preparations_.size(); ++k) {
      auto& columns = k == 0 ? shape.columns : shape.others.emplace_back();
      for (const auto& view : model.preparations_[k].views()) columns.push_back(view.width());
      if (columns.size() != shape.columns.size() && !columns.empty())
        fail(Exit::data, "{}: preparation {} has {} views, the first has {}", file.path(), k, columns.size(),
             shape.columns.size());
    }
    std::vector<ViewColumns> views;
    for (const auto& view : model.preparation().views()) views.push_back({view.name, view.columns, {}, {}});
    model.columns_ = Columns::load(file, std::move(views));
    model.method_->load(file, shape);
    std::vector<std::size_t> raw;
    for (const ViewColumns& view : model.columns_.views()) raw.push_back(view.count);
    model.recovery_ = Recovery::load(file, raw);
    model.version_ = meta.value("version", std::string());
    model.record_ = meta.value("validation", nlohmann::json());
    model.refitted_ = meta.value("refit", nlohmann::json());
    model.calibration_ = Calibration::load(file, model.label_names_.size());
    model.links_ = LabelLinks::load(file, model.label_names_.size());
    if (model.calibration_.empty() && !model.links_.empty())
      fail(Exit::data, "{}: contains links between labels and no calibration to use them with", path);
    if (file.has(kPrior)) model.prior_ = file.floats(kPrior);
    if (file.has(kPrior) && (model.prior_.size() != model.label_names_.size() ||
                             !std::ranges::all_of(model.prior_, [](float x) { return std::isfinite(x); })))
      fail(Exit::data, "{}: {} is {} values, expected {} finite ones, one per label", path, kPrior,
           model.prior_.size(), model.label_names_.size());
    return model;
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "{}: broken metadata: {}", path, error.what());
  } catch (const Error& error) {  // a setting out of range is the file's fault here, not the user's
    if (error.code() != Exit::usage) throw;
    fail(Exit::data, "{}: broken metadata: {}", path, error.what());
  } catch (const std::bad_alloc&) {
    fail(Exit::data, "{}: needs more memory than there is", path);
  }
}

}  // namespace lacuna
