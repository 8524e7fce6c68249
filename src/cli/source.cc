#include "cli/source.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "data/columns.h"

namespace lacuna::cli {

void SourceFlags::declare(Options& options) {
  options.add("data", path, "data set: a native folder, .npz, .mat, .csv, .arff, ...")
      .positional()
      .metavar("DATA")
      .required();
  const auto group = options.group("rows and gaps");
  options.add("folds", folds, "gaps and splits from a folds file (lacuna data mask writes one)")
      .metavar("FILE")
      .common();
  options.add("fold", fold, "which fold of the file, from 0").range(0, 1e6).metavar("K").needs("folds").common();
  options
      .add("protocol", protocol,
           "strict; transductive: the views of validation and test rows take part in training; "
           "authors: scaler fitted on all rows, and validation rows in the test part, as in the program "
           "that MTD's authors released (it leaks)")
      .choices(protocol_names());
  read.declare(options);
}

void check_outputs(const Options& options) {
  static constexpr std::string_view kPaths[] = {"FILE", "DATA", "MODEL", "IN", "PATH", "SCORES", "DIR"};
  std::vector<std::string> outputs, inputs;
  for (const auto& option : options.all()) {
    const bool path = std::ranges::any_of(
        kPaths, [&](std::string_view word) { return option.placeholder.find(word) != std::string::npos; });
    const bool output = option.name == "out" || option.name == "report" || option.name == "deviations";
    if (!option.given || (!path && !output)) continue;
    auto& list = output ? outputs : inputs;
    if (const auto* one = std::get_if<std::string*>(&option.target)) list.push_back(**one);
    // What is written beside a model.
    if (option.name == "out" && option.placeholder == "MODEL") {
      const std::string model = list.back();
      if (model.ends_with('/') || std::filesystem::is_directory(model))
        fail(Exit::usage, "{}: is a folder; name a file to write", model);
      for (const char* ending : {kHistoryEnding, kCheckpointEnding}) list.push_back(model + ending);
    }
    if (const auto* many = std::get_if<std::vector<std::string>*>(&option.target))
      list.insert(list.end(), (*many)->begin(), (*many)->end());
  }
  for (const auto& out : outputs)
    for (const auto& input : inputs) check_apart(out, input);
  for (const auto& inner : outputs)
    for (const auto& outer : outputs)
      if (inner != "-" && outer != "-" && canonical_path(inner).starts_with(canonical_path(outer) + "/"))
        fail(Exit::usage, "{} lies inside the output {}; write elsewhere", inner, outer);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    for (std::size_t j = i + 1; j < outputs.size(); ++j)
      if (outputs[i] != "-" && outputs[j] != "-" && canonical_path(outputs[i]) == canonical_path(outputs[j]))
        fail(Exit::usage, "{} and {} are the same file: one output would replace the other{}", outputs[i],
             outputs[j],
             outputs[i].ends_with(kHistoryEnding) || outputs[i].ends_with(kCheckpointEnding)
                 ? fmt::format(" (MODEL{} and MODEL{} lie beside a MODEL)", kHistoryEnding, kCheckpointEnding)
                 : "");
}

namespace {
bool notes_are_events = false;  // set once, by the flag --json-events
bool notes_are_silent = false;
}  // namespace

void tell_nothing() {
  notes_are_silent = true;
}

void tell_as_events() {
  notes_are_events = true;
}

void tell(const std::string& path, const std::vector<std::string>& notes) {
  if (notes_are_silent) return;
  for (const auto& note : notes)
    if (notes_are_events)
      fmt::print(stderr, "{}\n", nlohmann::json{{"event", "note"}, {"path", path}, {"text", note}}.dump());
    else
      fmt::print(stderr, "{}{}{}\n", path, path.empty() ? "" : ": ", note);
}

namespace {

Dataset read_and_tell(const std::string& path, const ReadOptions& read) {
  Dataset data = read_dataset(path, read);
  protect_inputs();
  tell(path, data.notes);
  return data;
}

}  // namespace

Dataset load_dataset(const std::string& path, const ReadOptions& read) {
  Dataset data = read_and_tell(path, read);
  const bool shown = read.allow_non_finite && read.empty == ReadOptions().empty;  // as they are
  if (!data.empty_cells || shown) return data;
  fmt::print(stderr, "{}: empty cells are filled with the means of their columns in this file\n", path);
  return Columns::fit(select_all(data)).filled(data);
}

Source::Source(const SourceFlags& flags)
    : data_(read_and_tell(flags.path, flags.read)), protocol_(protocol_from_name(flags.protocol)) {
  if (flags.folds.empty()) return;
  folds_ = read_folds(flags.folds);
  tell(flags.folds, check_fit(*folds_, data_, flags.folds));
  fold_ = static_cast<std::size_t>(flags.fold);
  if (fold_ >= folds_->folds.size())
    fail(Exit::usage, "{}: there is no fold {}, it has {} (from 0)", flags.folds, fold_,
         folds_->folds.size());
}

Selection Source::part(Part part) const {
  if (!folds_) {
    if (part != Part::all)
      fail(Exit::usage, "--part {} needs --folds: without them all rows are used", part_name(part));
    return select_all(data_);
  }
  return part_of_fold(data_, *folds_, fold_, part, protocol_);
}

}  // namespace lacuna::cli
