// A trained method with all that is needed to use it on new files: view names and sizes, preparation, label
// names, thresholds. This is the C++ interface of the library:
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
  Dataset data;        // views in the data's order, then those it lacks; ids and labels as they were
  Dataset deviations;  // the same views: standard deviations, 0 where the item had the view
  std::size_t recovered = 0, without_view = 0;  // instances; items that have no view and get none
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
  // A preset puts many of them in place at once, so it comes first. Exit::usage with the nearest name.
  Options& options() { return options_; }
  const Options& options() const { return options_; }
  void set_preset(const std::string& name);
  const std::string& preset() const { return preset_; }  // empty where the method has none
  Method& method() { return *method_; }
  const Method& method() const { return *method_; }

  // How many fits the settings ask for, teachers included: 1 unless it is an ensemble.
  std::size_t members_planned() const;
  Cost cost(const FitSize& size) const;  // of all of them, by the methods' own estimates

  // Fits preparation and method; thresholds are chosen on the validation rows. Without `val` a share of the training
  // rows is held out for selection when `hold_out` > 0. Whether it makes sense is told first (data/learnable.h).
  void fit(const Selection& train, const Selection& val, FitContext& context);
  void fit(const Selection& train, double hold_out = .15, std::uint64_t seed = 1);
  // The same with prepared rows in files (data/prepared.h), for more rows than memory holds; the rows are taken in the
  // order of the data. Exit::usage for methods that need all rows at once (Traits::streams).
  void fit(const Selection& train, const Selection& val, FitContext& context, PreparedStore& store);
  // Of the fitted model on the validation rows, decided as the method itself decides; none without such rows. With the
  // setting all-rows: of the first fit, which had not learned from them, and so are scores, record and thresholds.
  // Known after fit() only; a file holds the record.
  const std::optional<Metrics>& validation() const { return validation_; }
  const Matrix<float>* validation_scores() const;  // null without such rows
  // {"rows", "metrics": {name: value}, "intervals": {name: [low, high]}, "level", "resamples"}: the same with intervals
  // from resampling the validation rows. Null without such rows, or in files of versions before 0.2.
  nlohmann::json validation_record() const;

  // Views and their columns are matched by name (data/columns.h); a data set need not have all views. A view or
  // a column that the model does not know, or that is not there, is Exit::mismatch. Const and re-entrant.
  Matrix<float> predict(const Dataset& data) const;
  Matrix<float> predict(const Selection& selection) const;
  // The same in blocks, for more rows than memory holds scores: sink(first row of the block, scores (k, c)).
  using Sink = FunctionRef<void(std::size_t, MatrixView<const float>)>;
  void predict(const Selection& selection, Sink sink) const;
  // The views that items lack, from those they have, in blocks: sink(first row of the block, the block). What is there is
  // passed on bit for bit, and an item without any view gets none. Exit::mismatch unless the model was fitted with the
  // setting keep-decoders. Views and columns are matched as by predict. Const, re-entrant.
  using FilledSink = FunctionRef<void(std::size_t, Filled&&)>;
  void recover(const Selection& selection, FilledSink sink) const;
  Filled recover(const Selection& selection) const;       // all rows at once
  const Recovery& recovery() const { return recovery_; }  // empty without keep-decoders
  // The same rows divided among ranks, block by block: rank 0's sink gets all of them in order, with the bits of one
  // process; the others' sinks get nothing.
  void predict(const Selection& selection, Sink sink, const Ranks& ranks) const;
  // The rows as the method sees them, views in the model's order: what predict does first.
  Items prepare(const Selection& selection) const;
  // The views by name, size and column names, for items that arrive one by one. `empty` says what stands for an empty
  // cell: refuse, zero, or mean (of the training rows; Exit::mismatch if the file is too old to hold it).
  std::vector<ViewShape> view_shapes(const std::string& empty = "refuse") const;
  // {"rows": all whose labels the model learned from, "selected": what the first fit had chosen} of a model that
  // learned again from training and validation rows (methods/refit.h); null of any other.
  const nlohmann::json& refitted() const { return refitted_; }
  // What counts as tagged: by the thresholds chosen on validation, or, where there were no such rows, as the
  // method itself decides. And scores as calibrated probabilities, in place; Exit::mismatch if the model has
  // no calibration.
  Matrix<std::uint8_t> decide(MatrixView<const float> scores) const;
  void calibrate(MatrixView<float> scores) const;
  const Calibration& calibration() const { return calibration_; }
  // Scores (n, c) of items of which some labels are known (n, c): 1, 0, kUnknown. Those of the other labels are changed in
  // place by what the known ones say (methods/label_links.h); an item without known labels keeps its scores, bit for bit.
  void refine(MatrixView<const std::int8_t> known, MatrixView<float> scores) const;
  const LabelLinks& label_links() const { return links_; }
  // One per label: the log-odds of its share among the known labels of the training rows, where explanations begin. Of n
  // known labels, k of them positive, it is (k + q) / (n + 1), q the share of all labels together. Empty in files of
  // versions that did not store it.
  const std::vector<float>& prior() const { return prior_; }

  void save(const std::string& path) const;  // atomic; the same model gives the same bytes
  Tensors tensors() const;                   // what save() writes; borrows the model's memory
  // Nothing in the file is trusted: what does not fit together is Exit::data.
  static Model load(const std::string& path);
  static Model load(const Tensors& file);

  const std::vector<std::string>& label_names() const { return label_names_; }
  const Columns& columns() const {
    return columns_;
  }  // views with their columns; match() tells what predict does
  const Preparation& preparation() const { return preparations_.front(); }  // of the first member
  const std::vector<Preparation>& preparations() const { return preparations_; }
  const std::string& version() const { return version_; }  // of the program that fitted it; empty if unknown
  nlohmann::json& notes() { return notes_; }               // free metadata: hashes of data and folds, ...
  const nlohmann::json& notes() const { return notes_; }

 private:
  static Model untrained(const std::string& method, const std::string& preset, const nlohmann::json& settings,
                         const std::string& where);
  void bind();                               // (re)builds options_
  void make_members();                       // turns the method into an ensemble where the settings say so
  std::optional<Choosing> choosing() const;  // what the settings say of candidates; Exit::usage
  void recover_blocks(const Selection& selection, std::size_t size, FilledSink sink) const;
  void fit(const Selection& train, const Selection& val, FitContext& context, PreparedStore* store);
  void fit_once(const Items& train, const Items& val, FitContext& context);
  void judge(const Items& train, const Items& val, Matrix<float> scores, FitContext& context);
  void fit_again(const Selection& both, const FirstFit* begun, FitContext& context);
  // Views that are not `wanted` (empty: all are) have sizes alone.
  Items prepared(const Selection& selection, const std::vector<int>& source, std::size_t forms,
                 bool with_labels, const std::vector<bool>& wanted = {}) const;
  std::vector<bool> views_here(const Selection& train,
                               const Ranks& ranks) const;  // that this rank learns from
  std::pair<Items, Items> prepared(const Selection& train, const Selection& val, FitContext& context,
                                   PreparedStore* store);

  std::unique_ptr<Method> method_;
  std::unique_ptr<PrepareOptions> prepare_;
  struct Settings {              // of the model itself
    std::int64_t members = 0;    // of an ensemble; 0 = as the preset says
    std::string aim = "f1";      // what thresholds are chosen for
    bool keep_decoders = false;  // fit a Recovery as well
    bool all_rows = false;       // learn again from training and validation rows
    std::string budget;          // of presets that choose among candidates; empty = kBudget
  };
  std::unique_ptr<Settings> settings_ = std::make_unique<Settings>();
  bool is_ensemble_ = false;
  std::string preset_;
  Options options_;
  // An ensemble's members may see different preparations: those that predictions need come first. Those of candidates
  // that were left out are empty, but for the first.
  std::vector<PrepareOptions> forms_;
  std::size_t forms_of_predictions_ = 1;
  bool in_batches_ = true;  // no member reads rows but in batches
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

// Puts the protocol into the settings (data/protocol.h). Exit::usage where the method cannot follow it: rows without
// labels mean nothing to a method that takes unknown labels for negative ones.
void apply_protocol(Protocol protocol, Model& model);

}  // namespace lacuna
