#include "experiments/cell.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "experiments/details.h"
#include "experiments/machine.h"
#include "experiments/search.h"
#include "experiments/similarity.h"
#include "methods/estimate.h"
#include "ops/device.h"

namespace lacuna {

using nlohmann::json;

std::atomic<bool> stop_requested{false};

namespace {

constexpr const char* kSchema = "lacuna.cell.2";
constexpr const char* kFirstSchema = "lacuna.cell.1";  // method mtd meant our own network

template <class Declared>
json options_json(Declared declared) {
  Options options;
  declared.declare(options);
  return options.json();
}

template <class Declared>
Declared options_from_json(const json& values, const std::string& where) {
  Declared declared;
  Options options;
  declared.declare(options);
  options.from_json(values, where);
  return declared;
}

Model make_model(const CellSpec& spec) {
  Model model(spec.method.name);
  if (!spec.method.preset.empty()) model.set_preset(spec.method.preset);
  for (const auto& [name, value] : spec.settings)
    model.options().set(name, value, "method " + spec.method.name);
  // Machines agree in f32; `auto` would be bf16 on some of them.
  if (const Option* precision = model.options().find("precision"); precision && precision->text() == "auto")
    model.options().set("precision", "f32", "an experiment");
  apply_protocol(spec.protocol, model);
  return model;
}

// What a method's results depend on besides its settings: networks compute on the chosen device, all else on the CPU.
std::string device_of(const MethodChoice& method) {
  return is_network(method) && current_device().cuda ? "cuda" : "cpu";
}

// The data without one view. Tables are shared, so this copies names only.
Dataset drop_view(const Dataset& data, const std::string& name) {
  const std::size_t gone = data.view_index(name);
  if (gone == data.views.size()) fail(Exit::usage, "{} has no view '{}' to leave out", data.name, name);
  if (data.views.size() == 1)
    fail(Exit::usage, "{} has one view only; nothing is left without it", data.name);
  Dataset rest = data;
  rest.views.erase(rest.views.begin() + static_cast<std::ptrdiff_t>(gone));
  if (!data.present.empty()) {
    Matrix<std::uint8_t> present(data.rows, rest.views.size());
    for (std::size_t i = 0; i < data.rows; ++i)
      for (std::size_t v = 0; v < rest.views.size(); ++v)
        present(i, v) = data.present(i, v < gone ? v : v + 1);
    rest.present = std::move(present);
  }
  return rest;
}

Folds drop_view(const Folds& folds, std::size_t fold, std::size_t gone) {
  Folds rest = folds;
  rest.views = folds.views - 1;
  rest.folds.clear();
  const Fold& from = folds.folds[fold];
  Fold one{Matrix<std::uint8_t>(from.W.rows(), rest.views), from.G, from.order};
  for (std::size_t i = 0; i < from.W.rows(); ++i)
    for (std::size_t v = 0; v < rest.views; ++v) one.W(i, v) = from.W(i, v < gone ? v : v + 1);
  rest.folds.push_back(std::move(one));
  return rest;
}

// Records the course of a fit; stops it when asked to.
class Recorder final : public FitContext {
 public:
  explicit Recorder(const EpochWatch& hears) : hears_(hears) {}
  bool after_epoch(const EpochRecord& record, FunctionRef<void(Tensors&)>) override {
    if (stop_requested) fail(Exit::interrupted, "interrupted");
    const std::pair of{record.pass, record.fit()};
    if (of != fit) before += seconds, fit = of;  // each counts from 0
    seconds = record.seconds;
    ++epochs;
    (epochs == 1 ? first_epoch : last_epoch) = watch.seconds();
    json line = {{"epoch", record.epoch}, {"member", record.fit()}, {"losses", record.losses}};
    if (record.pass > 0) line["pass"] = record.pass;
    if (record.validated) line["validation"] = metrics_json(record.validation);
    history.push_back(std::move(line));
    if (hears_) hears_(record);
    return true;
  }
  void after_step(FunctionRef<void(Tensors&)>) override {
    if (stop_requested) fail(Exit::interrupted, "interrupted");
  }
  void remark(const std::string& text) override { remarks.push_back(text); }
  // From the end of one epoch to the end of the next, selection included; 0 where there was one alone.
  double seconds_per_epoch() const {
    return epochs > 1 ? (last_epoch - first_epoch) / static_cast<double>(epochs - 1) : 0;
  }
  std::size_t epochs_done() const { return epochs; }
  double training_seconds() const { return before + seconds; }
  json history = json::array();
  std::vector<std::string> remarks;

 private:
  const EpochWatch& hears_;
  Stopwatch watch;
  std::pair<std::int64_t, std::int64_t> fit{0, 0};  // the running one: its pass and its number
  double before = 0, seconds = 0;                   // of training alone: earlier fits, the running one
  double first_epoch = 0, last_epoch = 0;
  std::size_t epochs = 0;
};

// What --tune will try, as far as it does not depend on results.
json search_record(const Model& model, std::int64_t trials) {
  json grid = json::object();
  for (const auto& axis : own_axes(model)) grid[axis.name] = axis.values;
  return {{"trials", trials}, {"grid", grid}, {"metric", "AP"}};
}

// What --tune tried inside a cell, and the settings with the best AP on the validation rows.
struct Search {
  Combination chosen;
  json record;
};

Search search_settings(const CellSpec& spec, Model& model, const Selection& train, const Selection& val,
                       const EpochWatch& watch) {
  if (val.rows.empty()) fail(Exit::usage, "--tune selects on validation rows, and there are none");
  Search search;
  search.record = search_record(model, spec.tune);
  search.record["tried"] = json::array();
  double best = -1;
  for (const Combination& combination : search_plan(own_axes(model), spec.tune, spec.seed, model)) {
    Model trial = make_model(spec);
    for (const auto& [name, value] : combination) trial.options().set(name, value, "a trial");
    trial.options().set("all-rows", "false", "a trial");  // nothing would judge it
    Recorder recorder(watch);
    recorder.seed = spec.seed;
    json line = {{"settings", json::object()}};
    for (const auto& [name, value] : combination) line["settings"][name] = value;
    try {
      trial.fit(train, val, recorder);
      line["AP"] = trial.validation()->ap;
      if (trial.validation()->ap > best) best = trial.validation()->ap, search.chosen = combination;
    } catch (const Error& error) {  // a combination that diverges is a result as well
      if (error.code() != Exit::diverged && error.code() != Exit::usage) throw;
      line["failed"] = error.what();
    }
    search.record["tried"].push_back(std::move(line));
  }
  search.record["chosen"] = json::object();
  for (const auto& [name, value] : search.chosen) search.record["chosen"][name] = value;
  return search;
}

// At most `most` lines, evenly spread, the last one always.
json thinned(const json& lines, std::size_t most) {
  if (lines.size() <= most) return lines;
  json kept = json::array();
  for (std::size_t i = 0; i < most; ++i) kept.push_back(lines[i * (lines.size() - 1) / (most - 1)]);
  return kept;
}

}  // namespace

MethodChoice MethodChoice::parse(const std::string& text) {
  const auto colon = text.find(':');
  MethodChoice choice{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if (colon == std::string::npos && methods_with_preset(text).size() == 1)
    choice = {method_of_preset(text), text};
  const auto method = make_method(choice.name);
  PrepareOptions unused;
  if (!choice.preset.empty()) method->set_preset(choice.preset, unused);
  return choice;
}

std::string MethodChoice::preset_used() const {
  const auto presets = make_method(name)->presets();
  return preset.empty() && !presets.empty() ? presets.front() : preset;
}

// The name "default" says nothing that a table should repeat.
std::string MethodChoice::title() const {
  const std::string title = make_method(name)->traits().title, used = preset_used();
  return used.empty() || used == kDefaultPreset ? title : fmt::format("{} ({})", title, used);
}

namespace {

constexpr const char* kTasks[] = {"score", "timing", "similarity"};

// Whatever the data have is there, and every label that they know is known.
void fill_gaps(Folds& folds, const Dataset& data) {
  for (Fold& fold : folds.folds) {
    for (std::size_t i = 0; i < folds.rows; ++i) {
      for (std::size_t v = 0; v < folds.views; ++v) fold.W(i, v) = data.has(i, v);
      for (std::size_t j = 0; j < folds.labels; ++j) fold.G(i, j) = data.labels(i, j) != kUnknown;
    }
  }
}

Task task_from_name(const std::string& name) {
  for (std::size_t k = 0; k < std::size(kTasks); ++k)
    if (name == kTasks[k]) return static_cast<Task>(k);
  fail(Exit::data, "this is not a cell of Lacuna: there is no task '{}'", name);
}
const char* task_name(Task task) {
  return kTasks[static_cast<std::size_t>(task)];
}

}  // namespace

json CellSpec::json() const {
  nlohmann::json spec = {{"schema", kSchema},
                         {"method", method.name},
                         {"preset", method.preset},
                         {"settings", settings},
                         {"data", {{"path", data.path}, {"read", options_json(data.read)}}},
                         {"fold", fold},
                         {"without_view", without_view},
                         {"protocol", protocol_name(protocol)},
                         {"seed", seed},
                         {"task", task_name(task)},
                         {"tune", tune},
                         {"epochs", epochs}};
  if (folds.file.empty())
    spec["folds"] = {{"mask", options_json(folds.mask)}};
  else
    spec["folds"] = {{"file", folds.file}, {"complete", folds.complete}};
  return spec;
}

CellSpec CellSpec::from_json(const nlohmann::json& from) {
  const std::string schema = from.is_object() ? from.value("schema", "") : "";
  if (schema != kSchema && schema != kFirstSchema)
    fail(Exit::data, "this is not a cell of Lacuna ({} expected)", kSchema);
  try {
    CellSpec spec;
    spec.method = {from.at("method"), from.at("preset")};
    if (schema == kFirstSchema && spec.method.name == "mtd") {
      const std::string& preset = spec.method.preset;
      spec.method.name = preset.empty() ? kDefaultMethod : method_of_preset(preset);
    }
    spec.settings = from.at("settings");
    spec.data.path = from.at("data").at("path");
    spec.data.read = options_from_json<ReadOptions>(from.at("data").at("read"), "the cell");
    if (from.at("folds").contains("file"))
      spec.folds = {from.at("folds").at("file"), {}, from.at("folds").value("complete", false)};
    else
      spec.folds.mask = options_from_json<MaskOptions>(from.at("folds").at("mask"), "the cell");
    spec.fold = from.at("fold");
    spec.without_view = from.at("without_view");
    spec.protocol = protocol_from_name(from.at("protocol"));
    spec.seed = from.at("seed");
    spec.task = task_from_name(from.at("task"));
    spec.tune = from.value("tune", std::int64_t{0});
    spec.epochs = from.at("epochs").get<std::vector<std::int64_t>>();
    return spec;
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "broken cell: {}", error.what());
  }
}

const Shelf::Book& Shelf::data(const DataChoice& choice) {
  const std::lock_guard lock(mutex_);
  const std::string key = choice.path + "\n" + options_json(choice.read).dump();
  auto at = books_.find(key);
  if (at == books_.end()) {
    ReadOptions read = choice.read;
    read.allow_idle = true;  // they were given for several data sets
    Dataset data = read_dataset(choice.path, read);
    std::string hash = content_hash(data);
    at = books_.emplace(key, Book{std::move(data), std::move(hash)}).first;
  }
  return at->second;
}

const Folds& Shelf::folds(const DataChoice& data_choice, const FoldChoice& choice) {
  const std::lock_guard lock(mutex_);
  const Book& book = data(data_choice);
  const std::string rule = choice.file.empty() ? options_json(choice.mask).dump()
                                               : choice.file + (choice.complete ? "\ncomplete" : "");
  const std::string key = book.hash + "\n" + rule;
  auto at = folds_.find(key);
  if (at == folds_.end()) {
    Folds folds = choice.file.empty() ? make_folds(book.data, choice.mask) : read_folds(choice.file);
    if (!choice.file.empty())
      for (const auto& note : check_fit(folds, book.data, choice.file))
        fmt::print(stderr, "{}: {}\n", choice.file, note);
    if (choice.complete) fill_gaps(folds, book.data);
    at = folds_.emplace(key, std::move(folds)).first;
  }
  return at->second;
}

std::string fold_hash(const Folds& folds, std::size_t fold) {
  if (fold >= folds.folds.size())
    fail(Exit::usage, "repetition {} was requested, the folds have {} (counted from 0)", fold,
         folds.folds.size());
  const Fold& one = folds.folds[fold];
  Sha256 hash;
  hash.add(fmt::format("{} {} {} {} {}\n", folds.rows, folds.views, folds.labels, folds.train_rows(),
                       folds.val_rows()));
  hash.add(std::as_bytes(one.W.values()));
  hash.add(std::as_bytes(one.G.values()));
  hash.add(std::as_bytes(std::span(one.order)));
  return hash.hex();
}

bool is_network(const MethodChoice& method) {
  return Model(method.name).options().find("precision") != nullptr;
}

json resolved_options(const CellSpec& spec) {
  return make_model(spec).options().json();
}

std::string cell_id(const CellSpec& spec, Shelf& shelf) {
  Model model = make_model(spec);
  json content = {{"schema", kSchema},
                  {"method", spec.method.name},
                  {"preset", model.preset()},
                  {"options", model.options().json()},
                  {"data", shelf.data(spec.data).hash},
                  {"fold", fold_hash(shelf.folds(spec.data, spec.folds), spec.fold)},
                  {"without_view", spec.without_view},
                  {"protocol", protocol_name(spec.protocol)},
                  {"seed", spec.seed},
                  {"task", task_name(spec.task)},
                  {"tune", spec.tune > 0 ? search_record(model, spec.tune) : json()},
                  {"epochs", spec.epochs}};
  if (const std::string device = device_of(spec.method); device != "cpu") content["device"] = device;
  Sha256 hash;
  hash.add(content.dump());
  return hash.hex().substr(0, 16);
}

Cost estimate_cell(const CellSpec& spec, Shelf& shelf) {
  const Dataset& data = shelf.data(spec.data).data;
  const Model model = make_model(spec);
  const Options& options = model.options();
  const auto text = [&](const char* name) {
    for (const auto& option : options.all())
      if (option.name == name) return option.text();
    return std::string();
  };
  const std::string kind = text("prepare");
  const bool fewer = kind.ends_with("pca") || kind == "auto";
  const std::size_t components = fewer ? static_cast<std::size_t>(std::stoul(text("components"))) : 0;
  const LearningRows rows = learning_rows(data, shelf.folds(spec.data, spec.folds), spec.fold, spec.protocol);
  const FitSize size = fit_size(rows.learn, components);
  Cost cost = model.cost(size);
  const std::int64_t fits = (spec.tune > 0 ? spec.tune + 1 : 1) + (text("all-rows") == "true" ? 1 : 0);
  cost.core_seconds *= static_cast<double>(fits);
  for (std::size_t v = 0; v < data.views.size(); ++v) {
    const auto columns = static_cast<double>(data.views[v].columns()),
               present = static_cast<double>(size.present[v]);
    const double cells = static_cast<double>(data.rows) * columns;
    cost.bytes += 4 * cells + 4 * static_cast<double>(size.rows) * static_cast<double>(size.columns[v]);
    cost.core_seconds += 2e-8 * cells;
    if (fewer)  // the smaller Gram matrix of the instances to learn from, and the projection of all
      cost.core_seconds += 1e-10 * (present * columns * std::min(present, columns) +
                                    2 * static_cast<double>(components) * cells);
  }
  return cost;
}

std::map<std::string, std::string> CellFiles::text(bool keep_scores) const {
  std::map<std::string, std::string> files = {{"spec.json", spec.dump(1) + "\n"},
                                              {"result.json", result.dump(1) + "\n"},
                                              {"run.json", run.dump(1) + "\n"}};
  if (!details.is_null()) files["details.json"] = details.dump() + "\n";
  if (keep_scores && !scores.empty()) files["scores.npy"] = npy_text(scores);
  return files;
}

CellFiles run_cell(const CellSpec& spec, Shelf& shelf, const EpochWatch& watch) {
  const Stopwatch total;
  reset_peak_memory();
  const Shelf::Book& book = shelf.data(spec.data);
  const Folds& all_folds = shelf.folds(spec.data, spec.folds);
  const std::string hash_of_fold = fold_hash(all_folds, spec.fold);

  Dataset rest;
  Folds rest_folds;
  const Dataset* data = &book.data;
  const Folds* folds = &all_folds;
  std::size_t fold = spec.fold;
  if (!spec.without_view.empty()) {
    rest = drop_view(book.data, spec.without_view);
    rest_folds = drop_view(all_folds, fold, book.data.view_index(spec.without_view));
    data = &rest;
    folds = &rest_folds;
    fold = 0;
  }
  const LearningRows learning = learning_rows(*data, *folds, fold, spec.protocol);
  const Selection &train = learning.learn, &val = learning.val;
  Selection test = part_of_fold(*data, *folds, fold, Part::test, spec.protocol);
  drop_rows_without_view(test);  // as `evaluate` does
  if (test.rows.empty())
    fail(Exit::data, "{}: repetition {} leaves no rows for the test", data->name, spec.fold);

  Model model = make_model(spec);
  CellFiles files;
  files.spec = spec.json();
  files.spec["options"] = model.options().json();
  files.spec["device"] = device_of(spec.method);
  files.spec["data"]["name"] = book.data.name;
  files.spec["data"]["hash"] = book.hash;
  files.spec["folds"]["hash"] = hash_of_fold;
  files.result = {
      {"schema", "lacuna.result.1"},
      {"rows", {{"train", learning.labelled()}, {"val", val.rows.size()}, {"test", test.rows.size()}}}};
  if (learning.unlabelled > 0) files.result["rows"]["unlabelled"] = learning.unlabelled;

  Recorder recorder(watch);
  recorder.seed = spec.seed;
  json seconds = json::object();
  std::size_t epochs = 0;
  if (spec.task == Task::similarity) {
    files.result["similarity"] = channel_similarity(model, spec.epochs, train, val, test, spec.seed);
    seconds["fit"] = total.seconds();
  } else {
    if (spec.tune > 0) {
      const Stopwatch searching;
      Search search = search_settings(spec, model, train, val, watch);
      for (const auto& [name, value] : search.chosen) model.options().set(name, value, "a trial");
      files.result["tuning"] = std::move(search.record);
      seconds["search"] = searching.seconds();
    }
    const Stopwatch fitting;
    const double used = processor_seconds();
    model.fit(train, val, recorder);
    seconds["fit"] = fitting.seconds();
    seconds["fit_processor"] = processor_seconds() - used;
    seconds["epoch"] = recorder.seconds_per_epoch();
    epochs = recorder.epochs_done();
    seconds["training"] = recorder.training_seconds() > 0 ? recorder.training_seconds() : fitting.seconds();
    const Stopwatch predicting;
    files.scores = model.predict(test);
    seconds["predict"] = predicting.seconds();
    const Stopwatch scoring;
    // As the method itself decides (the papers' way), not by the thresholds that serve users.
    Matrix<std::uint8_t> decided(files.scores.rows(), files.scores.cols());
    model.method().decide(files.scores, decided);
    const Matrix<std::int8_t> truth = true_labels(test);
    files.result["metrics"] = metrics_json(evaluate(files.scores, truth, decided));
    files.result["history"] = thinned(recorder.history, 120);
    files.result["parameters"] = model.method().parameters();
    if (!model.refitted().is_null()) files.result["rows"]["refit"] = model.refitted()["rows"];
    if (!recorder.remarks.empty()) files.result["remarks"] = recorder.remarks;
    if (spec.fold == 0) {
      files.details = prediction_details(files.scores, truth, decided, data->label_names,
                                         model.method().traits().probabilities);
      if (!model.calibration().empty()) {
        Matrix<float> calibrated = files.scores;
        model.calibrate(calibrated);
        files.details["calibrated"] = reliability_details(calibrated, truth);
      }
    }
    seconds["score"] = scoring.seconds();
  }
  seconds["total"] = total.seconds();
  files.run = machine_json();
  files.run["seconds"] = seconds;
  files.run["alone"] = spec.task == Task::timing;
  files.run["epochs"] = epochs;
  files.run["peak_bytes"] = peak_memory();
  return files;
}

}  // namespace lacuna
