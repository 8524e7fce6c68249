// A trained method with everything that new files need: view names and sizes, preparation, label names,
// thresholds. This is the C++ interface of the library:
//
//   auto data  = lacuna::read_dataset("photos.npz");
//   lacuna::Model model;                                // or Model("naim3l")
//   model.fit(lacuna::select_all(data));
//   model.save("photos.safetensors");
//   auto scores = lacuna::Model::load("photos.safetensors").predict(new_data);   // (n, c)
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ranks.h"
#include "data/columns.h"
#include "data/dataset.h"
#include "data/item_block.h"
#include "data/protocol.h"
#include "methods/calibrate.h"
#include "methods/ensemble.h"
#include "methods/label_links.h"
#include "methods/method.h"
#include "methods/recovery.h"

namespace lacuna {

// Rows of a data set with their missing views recovered (Model::recover).
struct Filled {
  Dataset data;        // views in the data's order, then those that the data lack; ids and labels unchanged
  Dataset deviations;  // the same views: standard deviations, 0 where the item had the view
  std::size_t recovered = 0, without_view = 0;  // recovered instances; items without any view, which get none
};

class PreparedStore;
struct FirstFit;

class Model {
 public:
  explicit Model(const std::string& method = kDefaultMethod);  // with the method's default preset
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // All settings of the method and of the preparation, by name: model.options().set("epochs", "20", "").
  // A preset sets many of them at once, so choose it first. Exit::usage with the nearest name.
  Options& options() { return options_; }
  const Options& options() const { return options_; }
  void set_preset(const std::string& name);
  const std::string& preset() const { return preset_; }  // empty if the method has none
  Method& method() { return *method_; }
  const Method& method() const { return *method_; }

  // The number of fits that the settings imply, teachers included: 1 unless it is an ensemble.
  std::size_t members_planned() const;
  Cost cost(const FitSize& size) const;  // of all of them, by the methods' own estimates

  // Fits preparation and method; thresholds are chosen on the validation rows. Without `val` a share of the training
  // rows is held out for selection if `hold_out` > 0. First checks whether the data can be learned (data/learnable.h).
  void fit(const Selection& train, const Selection& val, FitContext& context);
  void fit(const Selection& train, double hold_out = .15, std::uint64_t seed = 1);
  // The same with prepared rows in files (data/prepared.h), for more rows than fit into memory; rows are taken in the
  // order of the data. Exit::usage for methods that need all rows at once (Traits::streams).
  void fit(const Selection& train, const Selection& val, FitContext& context, PreparedStore& store);
  // Metrics of the fitted model on the validation rows, with the method's own decisions; none without such rows. With
  // the setting all-rows these are metrics of the first fit, which did not learn from them; so are scores, record and
  // thresholds. Available after fit() only; a file contains the record.
  const std::optional<Metrics>& validation() const { return validation_; }
  const Matrix<float>* validation_scores() const;  // null without such rows
  // The record: {"rows", "metrics": {name: value}, "intervals": {name: [low, high]}, "level", "resamples"}, with
  // intervals from resampling the validation rows. Null without such rows, or in files of versions before 0.2.
  nlohmann::json validation_record() const;

  // Views and their columns are matched by name (data/columns.h); a data set need not have all views. A view or
  // column that is unknown to the model, or a missing column, is Exit::mismatch. Const and re-entrant.
  Matrix<float> predict(const Dataset& data) const;
  Matrix<float> predict(const Selection& selection) const;
  // The same in blocks, if the scores do not fit into memory: sink(first row of the block, scores (k, c)).
  using Sink = FunctionRef<void(std::size_t, MatrixView<const float>)>;
  void predict(const Selection& selection, Sink sink) const;
  // Recovers the missing views of items from their other views, in blocks: sink(first row of the block, the block).
  // Present views are passed on bit for bit, and an item without any view gets none. Exit::mismatch unless the model
  // was fitted with the setting keep-decoders. Views and columns are matched as in predict. Const, re-entrant.
  using FilledSink = FunctionRef<void(std::size_t, Filled&&)>;
  void recover(const Selection& selection, FilledSink sink) const;
  Filled recover(const Selection& selection) const;       // all rows at once
  const Recovery& recovery() const { return recovery_; }  // empty without keep-decoders
  // The same rows divided among ranks, block by block: rank 0's sink gets all of them in order, with the bits of one
  // process; the others' sinks get nothing.
  void predict(const Selection& selection, Sink sink, const Ranks& ranks) const;
  // The rows as the method sees them, with views in the model's order: the first step of predict.
  Items prepare(const Selection& selection) const;
  // The views with names, sizes and column names, for items that arrive one by one. `empty` is the value of an empty
  // cell: refuse, zero, or mean (of the training rows; Exit::mismatch if the file is too old to contain it).
  std::vector<ViewShape> view_shapes(const std::string& empty = "refuse") const;
  // Of a model that was fitted again on training and validation rows (methods/refit.h): {"rows": all rows whose labels
  // it learned from, "selected": what the first fit selected}. Null for other models.
  const nlohmann::json& refitted() const { return refitted_; }
  // decide: which labels an item gets, by the thresholds chosen on validation rows, or by the method's own rule if
  // there were no such rows. calibrate: turns scores into calibrated probabilities, in place; Exit::mismatch if
  // the model has no calibration.
  Matrix<std::uint8_t> decide(MatrixView<const float> scores) const;
  void calibrate(MatrixView<float> scores) const;
  const Calibration& calibration() const { return calibration_; }
  // Uses known labels (n, c; 1, 0, kUnknown) to change the scores (n, c) of the other labels in place
  // (methods/label_links.h). An item without known labels keeps its scores, bit for bit.
  void refine(MatrixView<const std::int8_t> known, MatrixView<float> scores) const;
  const LabelLinks& label_links() const { return links_; }
  // One per label: the log-odds of its frequency among the known labels of the training rows, the base of explanations.
  // The frequency is (k + q) / (n + 1), if k of n known labels are positive and q is the frequency over all labels.
  // Empty in files of versions that did not store it.
  const std::vector<float>& prior() const { return prior_; }

  void save(const std::string& path) const;  // atomic; the same model gives the same bytes
  Tensors tensors() const;                   // what save() writes; borrows the model's memory
  // The file is not trusted: any inconsistency is Exit::data.
  static Model load(const std::string& path);
  static Model load(const Tensors& file);

  const std::vector<std::string>& label_names() const { return label_names_; }
  const Columns& columns() const { return columns_; }  // views with their columns; predict uses its match()
  const Preparation& preparation() const { return preparations_.front(); }  // of the first member
  const std::vector<Preparation>& preparations() const { return preparations_; }
  const std::string& version() const { return version_; }  // of the program that fitted it; empty if unknown
  nlohmann::json& notes() { return notes_; }               // free metadata: hashes of data and folds, ...
  const nlohmann::json& notes() const { return notes_; }

 private:
  static Model untrained(const std::string& method, const std::string& preset, const nlohmann::json& settings,
                         const std::string& where);
  void bind();                               // (re)builds options_
  void make_members();                       // turns the method into an ensemble if the settings say so
  std::optional<Choosing> choosing() const;  // settings of the choice among candidates; Exit::usage
  void recover_blocks(const Selection& selection, std::size_t size, FilledSink sink) const;
  void fit(const Selection& train, const Selection& val, FitContext& context, PreparedStore* store);
  void fit_once(const Items& train, const Items& val, FitContext& context);
  void judge(const Items& train, const Items& val, Matrix<float> scores, FitContext& context);
  void fit_again(const Selection& both, const FirstFit* begun, FitContext& context);
  // Views that are not `wanted` (empty: all are) only get their sizes.
  Items prepared(const Selection& selection, const std::vector<int>& source, std::size_t forms,
                 bool with_labels, const std::vector<bool>& wanted = {}) const;
  std::vector<bool> views_here(const Selection& train,
                               const Ranks& ranks) const;  // that this rank learns from
  std::pair<Items, Items> prepared(const Selection& train, const Selection& val, FitContext& context,
                                   PreparedStore* store);

  std::unique_ptr<Method> method_;
  std::unique_ptr<PrepareOptions> prepare_;
  struct Settings {              // of the model itself
    std::int64_t members = 0;    // of an ensemble; 0 = as in the preset
    std::string aim = "f1";      // the aim of the thresholds
    bool keep_decoders = false;  // fit a Recovery as well
    bool all_rows = false;       // fit again on training and validation rows
    std::string budget;          // of presets that choose among candidates; empty = kBudget
  };
  std::unique_ptr<Settings> settings_ = std::make_unique<Settings>();
  bool is_ensemble_ = false;
  std::string preset_;
  Options options_;
  // Members of an ensemble may use different preparations; those needed for predictions come first. Preparations of
  // candidates that were left out are empty, except the first.
  std::vector<PrepareOptions> forms_;
  std::size_t forms_of_predictions_ = 1;
  bool in_batches_ = true;  // every member reads rows in batches only
  std::vector<Preparation> preparations_;
  Columns columns_;
  std::vector<std::string> label_names_;
  Calibration calibration_;
  Recovery recovery_;
  LabelLinks links_;
  std::vector<float> prior_;
  std::string version_;
  struct Validated {
    Matrix<float> scores;
    Matrix<std::int8_t> truth;
    Matrix<std::uint8_t> decided;
  };
  std::shared_ptr<const Validated> validated_;  // of the validation rows, after fit()
  nlohmann::json record_;                       // of a loaded model
  nlohmann::json refitted_;
  std::optional<Metrics> validation_;
  nlohmann::json notes_ = nlohmann::json::object();
};

// Puts the protocol into the settings (data/protocol.h). Exit::usage if the method cannot follow it: a method that
// treats unknown labels as negative cannot use rows without labels.
void apply_protocol(Protocol protocol, Model& model);

}  // namespace lacuna
