#include "data/simulate.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/counted.h"
#include "cli/machine_flags.h"
#include "cli/source.h"
#include "cli/verbs.h"
#include "data/folder.h"
#include "data/native_writer.h"
#include "data/readers.h"

namespace lacuna::cli {
namespace {

// data.npz -> data.truth.npz; a folder keeps it inside.
std::string truth_path(const std::string& out) {
  const std::filesystem::path path(out);
  if (std::filesystem::is_directory(path)) return (path / "truth.npz").string();
  return (path.parent_path() / path.stem()).string() + ".truth.npz";
}

// A native folder is written as the rows are drawn; other formats are written whole.
Simulated simulate_to(const std::string& out, const std::string& labels_from, const ReadOptions& read,
                      const SimulateOptions& settings) {
  if (!is_native_folder(out)) {
    Simulated simulated =
        labels_from.empty() ? simulate(settings) : simulate_views(load_dataset(labels_from, read), settings);
    write_dataset(simulated.data, out);
    return simulated;
  }
  NativeWriter writer(out);
  const auto sink = [&](const Dataset& block) { writer.append(block, out); };
  Simulated simulated = labels_from.empty() ? simulate(settings, sink)
                                            : simulate_views(load_dataset(labels_from, read), settings, sink);
  writer.commit();
  return simulated;
}

}  // namespace

int data_simulate(const Arguments& arguments) {
  std::string out, labels_from;
  SimulateOptions settings;
  ReadOptions read;
  int threads = 0;
  Options options;
  options.add("out", out, "data set to write: .npz, .mat, or a native folder")
      .positional()
      .metavar("OUT")
      .required();
  settings.declare(options);
  options.add("labels-from", labels_from, "draw views for the labels of this data set").metavar("FILE");
  options.add("label-code", read.label_code,
              "label code of that file: auto, 01, pm1, pm1-unknown");
  add_threads(options, threads);
  parse_or_help(options, arguments, "data simulate",
                "Draws multi-view multi-label data from a known model: factors that affect several views, "
                "factors of single views, labels that co-occur in groups and have a long tail. The factors "
                "are written next to the data.",
                "  lacuna data simulate toy.npz\n"
                "  lacuna data simulate big --rows 100000 --sizes 256,128,64 --labels 100 --seed 3\n"
                "  lacuna data simulate corel --like corel5k\n"
                "  lacuna data simulate esp --like espgame --labels-from labels/espgame.npz\n");
  set_threads(threads);
  if (std::filesystem::is_directory(out))
    check_replaceable(out);
  else
    check_writable(out);
  const Simulated simulated = simulate_to(out, labels_from, read, settings);
  const std::string truth = truth_path(out);
  write_truth(simulated, truth);

  std::string sizes;
  for (const auto& view : simulated.data.views)
    sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", view.name, view.columns());
  fmt::print("{}: {}, {}, {} ({})\n", out, counted(simulated.data.rows, "row"),
             counted(simulated.data.label_count(), "label"), counted(simulated.data.views.size(), "view"),
             sizes);
  fmt::print("{}: the factors, {} shared and {} per view\n", truth, simulated.shared.cols(),
             simulated.own[0].cols());
  return 0;
}

}  // namespace lacuna::cli
