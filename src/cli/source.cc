#include "cli/source.h"

#include <cstdio>

#include "base/error.h"

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
  options.add("fold", fold, "which of its repetitions").range(0, 1e6).metavar("K").common();
  options
      .add("protocol", protocol,
           "strict, or authors: scaler fitted on all rows and validation rows inside the "
           "test part, as their released program does (it leaks)")
      .choices(protocol_names());
  read.declare(options);
}

Dataset load_dataset(const std::string& path, const ReadOptions& read) {
  Dataset data = read_dataset(path, read);
  for (const auto& note : data.notes) fmt::print(stderr, "{}: {}\n", path, note);
  return data;
}

Source::Source(const SourceFlags& flags)
    : data_(load_dataset(flags.path, flags.read)), protocol_(protocol_from_name(flags.protocol)) {
  if (flags.folds.empty()) return;
  folds_ = read_folds(flags.folds);
  check_fit(*folds_, data_, flags.folds);
  fold_ = static_cast<std::size_t>(flags.fold);
  if (fold_ >= folds_->folds.size())
    fail(Exit::usage, "{}: there is no fold {}, it has {} (from 0 on)", flags.folds, fold_,
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
