#include "methods/model.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "data/bootstrap.h"
#include "data/learnable.h"
#include "data/prepared.h"
#include "data/release.h"
#include "methods/ensemble.h"
#include "methods/estimate.h"
#include "methods/label_shares.h"

namespace lacuna {
namespace {

constexpr int kSchema = 1;
constexpr const char* kPrior = "label_prior";
constexpr const char* kBudget = "10m";

std::vector<float> prior_of(const Items& items) {
  std::vector<float> prior;
  for (const double p : label_shares(items)) prior.push_back(static_cast<float>(std::log(p / (1 - p))));
  return prior;
}

void check_ranks(const Traits& traits, const Ranks& ranks) {
  if (ranks.alone() || traits.divides) return;
  std::vector<std::string> able;
  for (const auto& name : method_names())
    if (make_method(name)->traits().divides) able.push_back(name);
  fail(Exit::usage,
       "method {} is not divided among ranks, and there are {}; start it without mpirun, or use {}",
       traits.name, ranks.size(), join(able, ", "));
}

void check_streams(const Traits& traits, const Dataset& data) {
  if (data.empty_cells)
    fail(Exit::usage,
         "{}: empty cells are filled in memory; fill them first: lacuna data convert writes a folder",
         data.name);
  if (traits.streams) return;
  std::vector<std::string> able;
  for (const auto& name : method_names())
    if (make_method(name)->traits().streams) able.push_back(name);
  fail(Exit::usage, "method {} needs all rows in memory; those that read them in batches are {}", traits.name,
       join(able, ", "));
}

// What fit_size() takes for components, before it is known what becomes of each view: not more than it will be.
std::size_t fewest_columns(const PrepareOptions& options) {
  const auto projects = [](std::string_view kind) { return kind.ends_with("pca") || kind.ends_with("auto"); };
  const bool some = projects(options.kind) || std::ranges::any_of(options.per_view, projects);
  return some ? static_cast<std::size_t>(options.components) : 0;
}

}  // namespace

void apply_protocol(Protocol protocol, Model& model) {
  apply_protocol(protocol, model.options());
  const Traits traits = model.method().traits();
  if (protocol != Protocol::transductive || traits.missing_labels) return;
  std::vector<std::string> able;
  for (const auto& name : method_names())
    if (make_method(name)->traits().missing_labels) able.push_back(name);
  fail(Exit::usage,
       "method {} takes unknown labels for negative ones, so that rows without labels teach it nothing: "
       "protocol transductive is not for it; those that can follow it are {}",
       traits.name, join(able, ", "));
}

struct Model::Validated {
  Matrix<float> scores;
  Matrix<std::int8_t> truth;
  Matrix<std::uint8_t> decided;
};

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

std::vector<bool> Model::views_here(const Selection& train, const Ranks& ranks) const {
  if (ranks.alone()) return {};
  ItemShape shape{.columns = {}, .labels = train.data->label_count()};
  for (const auto& view : preparations_.front().views()) shape.columns.push_back(view.width());
  return method_->views_read(shape, ranks);
}

Items Model::prepared(const Selection& selection, const std::vector<int>& source, std::size_t forms,
                      bool with_labels, const std::vector<bool>& wanted) const {
  Items items = preparations_.front().apply(selection, source, with_labels, wanted);
  for (std::size_t k = 1; k < forms; ++k)
    items.others.push_back(
        preparations_[k].views().empty() ? Items{} : preparations_[k].apply(selection, source, false));
  return items;
}

// Fits the preparations, and gives the rows in all of them.
std::pair<Items, Items> Model::prepared(const Selection& train, const Selection& val, FitContext& context,
                                        PreparedStore* store) {
  preparations_.clear();
  if (store == nullptr) {
    preparations_ = Preparation::fit(train, forms_, context.ranks());
    std::vector<int> source(train.data->views.size());
    std::iota(source.begin(), source.end(), 0);
    // Validation rows are scored by every rank once the network is whole again.
    return {prepared(train, source, forms_.size(), true, views_here(train, context.ranks())),
            prepared(val, source, forms_.size(), true)};
  }
  std::pair<Items, Items> items;
  for (std::size_t k = 0; k < forms_.size(); ++k) {
    PreparedRows rows = store->get(train, val, forms_[k], in_batches_,
                                   [&](const std::string& text) { context.remark(text); });
    preparations_.push_back(std::move(rows.preparation));
    if (k == 0) {
      items = {std::move(rows.train), std::move(rows.val)};
    } else {
      items.first.others.push_back(std::move(rows.train));
      items.second.others.push_back(std::move(rows.val));
    }
  }
  return items;
}

void Model::set_preset(const std::string& name) {
  method_->set_preset(name, *prepare_);
  preset_ = name;
  bind();  // the preset's values are the defaults from here on
}

void Model::fit(const Selection& train, const Selection& val, FitContext& context) {
  fit(train, val, context, nullptr);
}

void Model::fit(const Selection& train, const Selection& val, FitContext& context, PreparedStore& store) {
  fit(train, val, context, &store);
}

void Model::fit(const Selection& train_rows, const Selection& val_rows, FitContext& context,
                PreparedStore* store) {
  Selection train = train_rows, val = val_rows;
  if (train.data->views.empty()) fail(Exit::data, "{} has no views to learn from", train.data->name);
  if (train.data->labels.empty()) fail(Exit::data, "{} has no labels to learn from", train.data->name);
  if (train.rows.empty()) fail(Exit::data, "{}: no rows to learn from", train.data->name);
  const Aim aim = Aim::parse(settings_->aim);
  check_ranks(method_->traits(), context.ranks());
  if (store != nullptr) {
    check_streams(method_->traits(), *train.data);
    std::ranges::sort(train.rows);  // a file is read from its beginning to its end
    std::ranges::sort(val.rows);
  }
  for (const std::string& note : check_learnable(train, val)) context.remark(note);
  make_members();
  columns_ = Columns::fit(train);
  const Dataset filled = columns_.filled(*train.data), filled_val = columns_.filled(*val.data);
  train.data = &filled;
  val.data = &filled_val;
  if (store != nullptr)  // before anything is written
    check_memory_limit(*method_, fit_size(train, fewest_columns(forms_.front())), context);
  const std::pair<Items, Items> both = prepared(train, val, context, store);
  const Items &train_items = both.first, &val_items = both.second;
  label_names_ = train.data->label_names;
  version_ = LACUNA_VERSION;
  record_ = nullptr;
  prior_ = prior_of(train_items);
  recovery_ = Recovery();
  if (settings_->keep_decoders) {
    Selection rows = train;  // validation rows hold no label that is looked at
    if (val_rows.data == train_rows.data) rows.rows.insert(rows.rows.end(), val.rows.begin(), val.rows.end());
    recovery_ = Recovery::fit(rows, context.seed);
  }
  announce_cost(*method_, fit_size(train_items), context);
  const auto finish = [&] {
    validation_.reset();
    validated_.reset();
    links_ = LabelLinks();
    if (val_items.rows() == 0) return;
    Matrix<float> scores(val_items.rows(), val_items.labels());
    method_->predict(val_items, scores);
    Matrix<std::uint8_t> decided(scores.rows(), scores.cols());
    method_->decide(scores, decided);
    Matrix<std::int8_t> truth = truth_of(val_items);
    validation_ = evaluate(scores, truth, decided);
    calibration_ = Calibration::fit(scores, truth, method_->traits().probabilities, aim);
    links_ = LabelLinks::fit(truth_of(train_items), scores, truth, calibration_, context.seed);
    // A difference that three digits do not show is no news.
    if (const double floor = floor_ap(train_items, val_items); validation_->ap < floor - .001)
      context.remark(
          fmt::format("{} ended below the floor: AP {:.3f} on the validation rows, where the label "
                      "frequencies alone give {:.3f}; other settings may help (lacuna tune)",
                      method_->traits().name, validation_->ap, floor));
    validated_ =
        std::make_shared<const Validated>(Validated{std::move(scores), std::move(truth), std::move(decided)});
  };
  try {
    method_->fit(train_items, val_items, context);
  } catch (const Diverged& diverged) {
    if (diverged.kept) finish();
    throw;
  }
  finish();
  const std::vector<bool> used = forms_in_use(*method_, forms_of_predictions_);
  for (std::size_t k = 1; k < used.size(); ++k)
    if (!used[k]) preparations_[k] = Preparation();
}

void Model::fit(const Selection& train, double hold_out, std::uint64_t seed) {
  FitContext context;
  context.seed = seed;
  const LearningRows rows = learning_rows(train, hold_out, seed);
  fit(rows.learn, rows.val, context);
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
  if (calibration_.empty())
    fail(Exit::mismatch,
         "the model has no calibration: there were no validation rows, or their known labels were all alike");
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
  return file;
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
    Model model(method);
    if (!preset.empty()) model.set_preset(preset);
    model.options_.from_json(meta["options"], path);
    model.make_members();
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
    fail(Exit::data, "{}: asks for more memory than there is", path);
  }
}

}  // namespace lacuna
