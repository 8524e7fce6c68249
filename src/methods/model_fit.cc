// Model::fit: preparations, one fit or two, and what is chosen on the validation rows.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "data/learnable.h"
#include "data/prepare_check.h"
#include "data/prepared.h"
#include "methods/estimate.h"
#include "methods/label_shares.h"
#include "methods/members.h"
#include "methods/model.h"
#include "methods/refit.h"

namespace lacuna {
namespace {

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

std::vector<bool> Model::views_here(const Selection& train, const Ranks& ranks) const {
  if (ranks.alone()) return {};
  ItemShape shape{.columns = {}, .labels = train.data->label_count()};
  for (const auto& view : preparations_.front().views()) shape.columns.push_back(view.width());
  return method_->views_read(shape, ranks);
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
  Aim::parse(settings_->aim);  // a wrong one is refused before the training
  check_ranks(method_->traits(), context.ranks());
  if (store != nullptr) {
    check_streams(method_->traits(), *train.data);
    if (settings_->all_rows)
      fail(Exit::usage, "--all-rows needs all rows in memory; use it without --memory-limit");
    std::ranges::sort(train.rows);  // a file is read from its beginning to its end
    std::ranges::sort(val.rows);
  }
  const bool twice = settings_->all_rows && !val.rows.empty();
  if (settings_->all_rows && !twice)
    context.remark("--all-rows has no effect: no row was held out, so the model has learned from all of them");
  const bool alike = train.data == val.data && train.fold == val.fold;
  Selection both = twice || alike ? rows_of_both(train, val) : train;
  for (const std::string& note : check_learnable(train, val)) context.remark(note);
  make_members();
  columns_ = Columns::fit(train);
  const Dataset filled = columns_.filled(*train.data), filled_val = columns_.filled(*val.data);
  train.data = both.data = &filled;
  val.data = &filled_val;
  if (store != nullptr)  // before anything is written
    check_memory_limit(*method_, fit_size(train, fewest_columns(forms_.front())), context);
  const std::pair<Items, Items> items = prepared(train, val, context, store);
  for (const std::string& note : check_preparations(preparations_, train)) context.remark(note);
  label_names_ = train.data->label_names;
  version_ = LACUNA_VERSION;
  record_ = refitted_ = nullptr;
  prior_ = prior_of(items.first);
  recovery_ = Recovery();
  if (settings_->keep_decoders) recovery_ = Recovery::fit(both, context.seed);  // looks at no label
  if (!twice) {
    fit_once(items.first, items.second, context);
  } else if (auto begun = FirstFit::in(context.resume_from())) {  // it goes on in the second fit
    method_->load(begun->model, shape_of(items.first));
    judge(items.first, items.second, std::move(begun->scores), context);
    fit_again(both, &*begun, context);
  } else {
    PassContext first(context);
    fit_once(items.first, items.second, first);
    if (first.ended())
      context.remark("the training ended during its first fit, so the model has not learned from the validation rows");
    else
      fit_again(both, nullptr, context);
  }
  const std::vector<bool> used = forms_in_use(*method_, forms_of_predictions_);
  for (std::size_t k = 1; k < used.size(); ++k)
    if (!used[k]) preparations_[k] = Preparation();
}

void Model::fit_once(const Items& train, const Items& val, FitContext& context) {
  announce_cost(*method_, fit_size(train), settings_->all_rows && val.rows() > 0 ? 2 : 1, context);
  const auto finish = [&] {
    Matrix<float> scores(val.rows(), val.labels());
    if (val.rows() > 0) method_->predict(val, scores);
    judge(train, val, std::move(scores), context);
  };
  try {
    method_->fit(train, val, context);
  } catch (const Diverged& diverged) {
    if (diverged.kept) finish();
    throw;
  }
  finish();
}

// All that scores of the validation rows tell: metrics, thresholds, calibration, links between labels.
void Model::judge(const Items& train, const Items& val, Matrix<float> scores, FitContext& context) {
  validation_.reset();
  validated_.reset();
  links_ = LabelLinks();
  if (val.rows() == 0) return;
  Matrix<std::uint8_t> decided(scores.rows(), scores.cols());
  method_->decide(scores, decided);
  Matrix<std::int8_t> truth = truth_of(val);
  if (scores.rows() != truth.rows() || scores.cols() != truth.cols())
    fail(Exit::data, "broken checkpoint: scores ({}, {}) of {} validation rows and {} labels", scores.rows(),
         scores.cols(), truth.rows(), truth.cols());
  validation_ = evaluate(scores, truth, decided);
  calibration_ = Calibration::fit(scores, truth, method_->traits().probabilities, Aim::parse(settings_->aim));
  links_ = LabelLinks::fit(truth_of(train), scores, truth, calibration_, context.seed);
  // A difference that three digits do not show is no news.
  if (const double floor = floor_ap(train, val); validation_->ap < floor - .001)
    context.remark(
        fmt::format("{} ended below the floor: AP {:.3f} on the validation rows, where the label "
                    "frequencies alone give {:.3f}; other settings may help (lacuna tune)",
                    method_->traits().name, validation_->ap, floor));
  validated_ =
      std::make_shared<const Validated>(Validated{std::move(scores), std::move(truth), std::move(decided)});
}

// The second fit, from its beginning or from where a checkpoint says that it was. If it comes to nothing, the first one
// stays.
void Model::fit_again(const Selection& both, const FirstFit* begun, FitContext& context) {
  std::vector<int> source(both.data->views.size());
  std::iota(source.begin(), source.end(), 0);
  const Items rows = prepared(both, source, forms_.size(), true, views_here(both, context.ranks()));
  const Items none = prepared(Selection{both.data, both.fold, {}}, source, forms_.size(), true);
  const nlohmann::json selected = begun != nullptr ? begun->selected : method_->selected();
  const auto fill = [&](Tensors& file, Tensors state) {
    FirstFit{tensors(), selected, validated_->scores, std::move(state)}.save(file);
  };
  PassContext pass(context, selected, begun != nullptr ? &begun->second : nullptr, fill);
  Model second = untrained(method_->traits().name, preset_, options_.json(), "refit");
  std::string failure = "it was stopped early";
  try {
    second.method_->fit(rows, none, pass);
    if (!pass.ended()) failure.clear();
  } catch (const Diverged& diverged) {
    failure = diverged.what();
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "broken checkpoint: {}", error.what());
  } catch (const Error& error) {
    if (!pass.ended() || error.code() != Exit::interrupted) throw;
  }
  if (!failure.empty())
    return context.remark(fmt::format("the second fit is not used, the model is that of the first: {}", failure));
  std::swap(method_, second.method_);
  std::swap(prepare_, second.prepare_);
  std::swap(settings_, second.settings_);
  std::swap(options_, second.options_);
  prior_ = prior_of(rows);
  refitted_ = {{"rows", labelled_count(both)}, {"selected", selected}};
}

void Model::fit(const Selection& train, double hold_out, std::uint64_t seed) {
  FitContext context;
  context.seed = seed;
  const LearningRows rows = learning_rows(train, hold_out, seed);
  fit(rows.learn, rows.val, context);
}

}  // namespace lacuna
