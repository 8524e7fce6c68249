#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/mechanism.h"
#include "data/rates.h"
#include "data/readers.h"

namespace lacuna::cli {
namespace {

struct Flags {
  std::string data, out, from;
  bool json = false;
  ReadOptions read;
  MaskOptions mask;
};

std::string percent(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

void print_json(const Flags& flags, const Dataset& data, const Folds& folds, const Rates& rates) {
  nlohmann::json views = nlohmann::json::array();
  for (std::size_t v = 0; v < folds.views; ++v)
    views.push_back({{"name", data.views[v].name},
                     {"instances", rates.existing[v]},
                     {"hidden", rates.hidden[v]},
                     {"hidden_in_train", rates.hidden_in_train[v]}});
  const nlohmann::json document = {{"schema", "lacuna.mask.1"},
                                   {"out", flags.out},
                                   {"hash", folds.hash()},
                                   {"repeats", folds.folds.size()},
                                   {"rows", folds.rows},
                                   {"train", folds.train_rows()},
                                   {"val", folds.val_rows()},
                                   {"test", folds.rows - folds.train_rows() - folds.val_rows()},
                                   {"views", views},
                                   {"rows_with_views", rates.rows_with_views},
                                   {"labels",
                                    {{"count", folds.labels},
                                     {"positives_hidden", rates.positives_hidden},
                                     {"negatives_hidden", rates.negatives_hidden},
                                     {"rows_without_positive", rates.rows_without_positive},
                                     {"labels_without_positive", rates.labels_without_positive}}}};
  fmt::print("{}\n", document.dump(2));
}

void print_rates(const Flags& flags, const Dataset& data, const Folds& folds, const Rates& rates) {
  fmt::print("{}: {} repetition{}, {} rows (train {}, val {}, test {})\nhash {}\n\n", flags.out,
             folds.folds.size(), folds.folds.size() == 1 ? "" : "s", folds.rows, folds.train_rows(),
             folds.val_rows(), folds.rows - folds.train_rows() - folds.val_rows(), folds.hash());
  TextTable table({"view", "instances", "hidden", "hidden in train"});
  for (std::size_t v = 0; v < folds.views; ++v)
    table.add({data.views[v].name, fmt::format("{:.0f}", rates.existing[v]), percent(rates.hidden[v]),
               percent(rates.hidden_in_train[v])});
  std::fputs(table.text().c_str(), stdout);
  fmt::print("\nrows by the number of views they keep:");
  for (std::size_t k = 0; k < rates.rows_with_views.size(); ++k)
    if (k > 0 || rates.rows_with_views[k] > 0) fmt::print("  {}: {}", k, percent(rates.rows_with_views[k]));
  fmt::print(
      "\nlabels of the training rows: {} of the known positives and {} of the known negatives are hidden\n",
      percent(rates.positives_hidden), percent(rates.negatives_hidden));
  fmt::print("training rows without a known positive: {}; labels without one: {:.1f} of {}\n",
             percent(rates.rows_without_positive), rates.labels_without_positive, folds.labels);
  if (folds.folds.size() > 1) fmt::print("(means over the repetitions)\n");
}

}  // namespace

int data_mask(const Arguments& arguments) {
  Flags flags;
  Options options;
  options.add("data", flags.data, "data set to draw gaps for").positional().metavar("DATA").required();
  options.add("out", flags.out, "folds file: .npz, or .mat in the authors' layout")
      .positional()
      .metavar("OUT")
      .required();
  flags.mask.declare(options);
  for (const auto& rule : options.names())
    if (rule != "data" && rule != "out") options.find(rule)->excludes("from");
  options
      .add("from", flags.from,
           "draw nothing: check the folds of this file, show their rates, write them to OUT")
      .metavar("FILE");
  options.add("json", flags.json, "print one JSON document");
  flags.read.declare(options);
  parse_or_help(
      options, arguments, "data mask",
      "Draws gaps and splits by the paper's protocol. Every view loses exactly its share of instances, but no "
      "item loses all views; every label loses its share of known positives and of known negatives; and the "
      "rows get a random order that is cut into train, val and test. The data stay as they are; OUT contains "
      "the gaps.",
      "  lacuna data mask photos.npz folds.npz\n"
      "  lacuna data mask photos.npz folds.mat --missing-views .3 --missing-labels .7 --repeats 5 --seed 7\n"
      "  lacuna data mask corel5k_six_view.mat folds.npz --from their_folds.mat\n");
  refuse_idle(options, flags.mask);
  const Dataset data = load_dataset(flags.data, flags.read);
  check_writable(flags.out);
  Folds folds = flags.from.empty() ? make_folds(data, flags.mask) : read_folds(flags.from);
  if (!flags.from.empty()) tell(flags.from, check_fit(folds, data, flags.from));
  folds.ids = data.ids;
  write_folds(folds, flags.out);
  const Rates rates = rates_of(data, folds);
  if (flags.json) {
    print_json(flags, data, folds, rates);
  } else {
    print_rates(flags, data, folds, rates);
  }
  return 0;
}

}  // namespace lacuna::cli
