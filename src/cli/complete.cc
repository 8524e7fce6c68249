// lacuna complete: data -> its unknown labels as calibrated probabilities. Rows are divided into parts; the labels of a
// part are predicted by a model that was trained on the other parts only.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/mpi.h"
#include "base/random.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/counted.h"
#include "cli/learning.h"
#include "cli/memory_limit.h"
#include "cli/progress.h"
#include "cli/text_out.h"
#include "cli/training_run.h"
#include "cli/verbs.h"
#include "data/npy.h"
#include "data/prediction_text.h"
#include "data/release.h"
#include "data/scores_writer.h"
#include "methods/model.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

constexpr std::uint32_t kStream = 1u << 17;  // of the parts; repetitions of a protocol number theirs
constexpr const char* kProbabilities = "probabilities";

struct CompleteFlags {
  LearningFlags learning;
  RunOptions run;
  MemoryFlags memory;
  std::string out;
  std::int64_t parts = 5;
  bool json = false, quiet = false;

  void declare(Options& o) {
    learning.declare(o);
    o.add("out", out,
          "file to write, with 1 and 0 for known labels and probabilities for unknown ones: .csv, .tsv, "
          ".jsonl, .npy or .npz; - is standard output, as CSV")
        .metavar("FILLED");
    o.add("parts", parts, "parts of the rows; each is predicted by a model trained on the others")
        .range(2, 100)
        .metavar("K");
    o.add("json", json, "print one JSON document at the end");
    run.declare(o);
    std::erase_if(o.all(), [](const Option& option) { return option.name == "share"; });
    o.find("time-limit")->excluded.clear();
    o.find("resume")->help = "continue: finished parts are in FILLED.part0, ... and are not learned again";
    o.find("checkpoint-every")->help = "seconds between checkpoints of the current part";
    memory.declare(o);
    std::erase_if(o.all(), [](const Option& option) { return option.name == "prepared"; });
    o.find("memory-limit")->help =
        "learn within this much memory (2G, 800M): prepared rows of the current part go to "
        "FILLED.part0.prepared, ... and are read in large blocks; DATA is a native folder";
    const auto group = o.group("running");
    o.add("quiet", quiet, "no progress");
  }
};

bool is_array(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz");
}

PredictionStyle::Format labels_format(const std::string& path) {
  using Format = PredictionStyle::Format;
  if (is_stream_path(path) || path.ends_with(".csv")) return Format::csv;
  if (path.ends_with(".tsv")) return Format::tsv;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return Format::jsonl;
  fail(Exit::usage, "{}: filled labels are written as .csv, .tsv, .jsonl, .npy or .npz", path);
}

// The rows of each part, in the order of the data.
std::vector<std::vector<std::uint32_t>> dealt(std::size_t rows, std::size_t parts, std::uint64_t seed) {
  const auto order = Random(seed, Purpose::row_order, kStream).permutation(rows);
  std::vector<std::vector<std::uint32_t>> result(parts);
  for (std::size_t k = 0; k < rows; ++k) result[k % parts].push_back(order[k]);
  for (auto& part : result) std::ranges::sort(part);
  return result;
}

// What is known about the labels: all rows, with the gaps of the fold if there is one.
Selection everything(const Source& source) {
  Selection all = select_all(source.data());
  if (!source.has_folds()) return all;
  all.fold = &source.folds().folds[source.fold()];
  all.hide_labels = true;
  return all;
}

class Completion {
 public:
  Completion(const CompleteFlags& flags, const Source& source)
      : flags_(flags),
        all_(everything(source)),
        parts_(dealt(all_.rows.size(), static_cast<std::size_t>(flags.parts), flags.learning.seed)) {}

  // The probabilities (rows of the part, c) in a file of their own.
  Tensors part(std::size_t k, const nlohmann::json& print, Model model) {
    const bool kept = !is_stream_path(flags_.out);  // otherwise nothing can lie beside it
    nlohmann::json own = print;
    own["part"] = k;
    own["parts"] = flags_.parts;
    if (kept && flags_.run.resume && std::filesystem::exists(path(k))) {
      Tensors done = Tensors::read(path(k));
      if (done.metadata.value("fingerprint", nlohmann::json()) != own)
        fail(Exit::usage, "{}: was made by another run: {}; use the same settings and data, or remove it",
             path(k), differences(done.metadata.value("fingerprint", nlohmann::json::object()), own));
      return check(std::move(done), k);
    }
    PreparedStore store(path(k) + kPreparedEnding, own.at("data"));
    learn(k, own, model, store);
    Tensors file;
    file.metadata["fingerprint"] = own;
    if (!kept) {
      Matrix<float> all(parts_[k].size(), all_.data->label_count());
      judge(k, model, [&](std::size_t begin, MatrixView<const float> block) {
        for (std::size_t i = 0; i < block.rows; ++i)
          std::ranges::copy(block.row(i), all.row(begin + i).begin());
      });
      file.put_copy(kProbabilities, all);
      return file;
    }
    const std::string array = path(k) + ".npy";  // the same block by block, until it has a fingerprint
    const auto writer = write_scores(array, {parts_[k].size(), all_.data->label_names, {}});
    judge(k, model, [&](std::size_t, MatrixView<const float> block) { writer->write(block); });
    writer->commit();
    const Array scores = read_npy(array);
    file.put(kProbabilities, Tensor{"F32", {scores.rows(), scores.cols()}, scores.bytes, 0, scores.owner});
    file.write(path(k));
    for (const std::string& used : {array, path(k) + kCheckpointEnding}) ::unlink(used.c_str());
    if (flags_.memory.given()) store.remove();
    return Tensors::read(path(k));
  }

  struct Tally {
    std::size_t known = 0, filled = 0, without_view = 0;
  };
  // All parts, merged into the order of the data; no parts where nothing is unknown.
  Tally write(const std::vector<Tensors>& parts) const {
    const std::size_t n = all_.rows.size(), c = all_.data->label_count();
    std::vector<MatrixView<const float>> values;
    std::vector<std::uint32_t> part_of(n);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      values.emplace_back(reinterpret_cast<const float*>(parts[k].at(kProbabilities).bytes.data()),
                          parts_[k].size(), c);
      for (const std::uint32_t i : parts_[k]) part_of[i] = static_cast<std::uint32_t>(k);
    }
    Tally tally;
    std::vector<std::size_t> next(parts.size());
    const auto row = [&](std::size_t i, std::span<float> out) {
      const std::uint32_t k = part_of[i];
      if (!values.empty()) std::ranges::copy(values[k].row(next[k]++), out.begin());
      for (std::size_t j = 0; j < c; ++j) {
        const std::int8_t label = all_.label(i, j);
        if (label != kUnknown) out[j] = label;
        ++(label != kUnknown ? tally.known : tally.filled);
      }
    };
    const auto id = [&](std::size_t i) {
      return all_.data->ids.empty() ? std::to_string(i) : all_.data->ids[i];
    };
    constexpr std::size_t kBlock = 1024;
    Matrix<float> block(std::min(kBlock, n), c);
    const auto blocks = [&](auto&& write_block) {
      for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t count = std::min(kBlock, n - begin);
        for (std::size_t i = 0; i < count; ++i) row(begin + i, block.row(i));
        write_block(begin, block.view().top(count));
      }
    };
    if (is_array(flags_.out)) {
      const auto writer = write_scores(flags_.out, {n, all_.data->label_names, id});
      blocks([&](std::size_t, MatrixView<const float> scores) { writer->write(scores); });
      writer->commit();
    } else {
      const PredictionText text({.format = labels_format(flags_.out)}, all_.data->label_names);
      TextOut out(flags_.out);
      out.write(text.header());
      blocks([&](std::size_t begin, MatrixView<const float> scores) {
        std::vector<std::string> ids;
        for (std::size_t i = 0; i < scores.rows; ++i) ids.push_back(id(begin + i));
        std::string lines;
        text.append(lines, scores.rows, [&](std::size_t i) {
          PredictionText::Row line;
          line.id = ids[i];
          line.id_is_number = all_.data->ids.empty();
          line.scores = scores.row(i);
          return line;
        });
        out.write(lines);
      });
      out.commit();
    }
    for (std::size_t i = 0; i < n; ++i) tally.without_view += !has_view(i);
    return tally;
  }

  std::size_t unknown() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < all_.rows.size(); ++i)
      for (std::size_t j = 0; j < all_.data->label_count(); ++j) count += all_.label(i, j) == kUnknown;
    return count;
  }

  void remove_parts() const {
    for (std::size_t k = 0; k < parts_.size(); ++k) ::unlink(path(k).c_str());
  }

 private:
  std::string path(std::size_t k) const { return fmt::format("{}.part{}", flags_.out, k); }
  bool has_view(std::size_t i) const {
    for (std::size_t v = 0; v < all_.data->views.size(); ++v)
      if (all_.has(i, v)) return true;
    return false;
  }

  Tensors check(Tensors file, std::size_t k) const {
    const Tensor& tensor = file.at(kProbabilities);
    const std::vector<std::uint64_t> shape = {parts_[k].size(), all_.data->label_count()};
    if (tensor.type != "F32" || tensor.shape != shape)
      fail(Exit::data, "{}: '{}' is not float32 of shape ({}, {}); remove the file", path(k), kProbabilities,
           shape[0], shape[1]);
    return file;
  }

  // From the other parts alone.
  void learn(std::size_t k, const nlohmann::json& print, Model& model, PreparedStore& store) const {
    Selection others = all_;
    others.rows.clear();
    for (std::size_t i = 0, at = 0; i < all_.rows.size(); ++i) {
      if (at < parts_[k].size() && parts_[k][at] == i)
        ++at;
      else
        others.rows.push_back(static_cast<std::uint32_t>(i));
    }
    const LearningRows rows = learning_rows(others, flags_.learning.hold_out, flags_.learning.seed);
    Progress progress(flags_.quiet ? Progress::Style::quiet : Progress::Style::automatic);
    TrainingRun run(flags_.run, is_stream_path(flags_.out) ? flags_.out : path(k), print, progress,
                    joined_ranks());
    run.seed = flags_.learning.seed;
    run.memory_limit = flags_.memory.bytes();
    if (model.method().traits().iterative) run.catch_signals();
    if (!flags_.quiet) tell("", {fmt::format("part {} of {}", k + 1, parts_.size())});
    if (flags_.memory.given())
      learn_in_files(k, rows, run, model, store);
    else
      model.fit(rows.learn, rows.val, run);
    progress.finish();
    if (model.calibration().empty())
      tell("", {fmt::format(
                   "part {}: the known labels of its {} are all positive or all negative, so nothing can "
                   "be calibrated: its unknown labels get the label frequencies (a larger --hold-out may "
                   "help)",
                   k + 1, counted(rows.val.rows.size(), "validation row"))});
  }

  void learn_in_files(std::size_t k, const LearningRows& rows, FitContext& context, Model& model,
                      PreparedStore& store) const {
    if (!current_device().cuda) limit_memory(context.memory_limit);
    try {
      model.fit(rows.learn, rows.val, context, store);
    } catch (...) {  // without a checkpoint nothing will go on from the prepared rows
      if (!std::filesystem::exists(path(k) + kCheckpointEnding)) store.remove();
      throw;
    }
  }

  // The probabilities of the rows of the part: sink(first row of the block, block (n, c)).
  void judge(std::size_t k, const Model& model, Model::Sink sink) const {
    Selection own = all_;
    own.rows = parts_[k];
    const bool calibrated = !model.calibration().empty();
    model.predict(own, [&](std::size_t begin, MatrixView<const float> raw) {
      Matrix<float> scores(raw.rows, raw.cols);
      scores.copy_from(raw);
      if (calibrated) {
        Matrix<std::int8_t> known(raw.rows, raw.cols);
        for (std::size_t i = 0; i < known.rows(); ++i)
          for (std::size_t j = 0; j < known.cols(); ++j) known(i, j) = own.label(begin + i, j);
        model.refine(known, scores);  // known labels of an item inform the others
        model.calibrate(scores);
      }
      for (std::size_t i = 0; i < scores.rows(); ++i) {
        if (calibrated && has_view(own.rows[begin + i])) continue;
        for (std::size_t j = 0; j < scores.cols(); ++j)  // all that is known is the label's share
          scores(i, j) = 1 / (1 + std::exp(-model.prior()[j]));
      }
      sink(begin, scores);
      const std::uint32_t first = own.rows[begin], last = own.rows[begin + raw.rows - 1];
      for (const View& view : all_.data->views) release_rows(view, first, last - first + 1);
    });
  }

  const CompleteFlags& flags_;
  Selection all_;
  std::vector<std::vector<std::uint32_t>> parts_;
};

void check_flags(const CompleteFlags& flags, const Model& model) {
  if (flags.out.empty()) fail(Exit::usage, "lacuna complete needs --out FILLED (see lacuna complete --help)");
  if (!is_array(flags.out)) labels_format(flags.out);
  const bool stream = is_stream_path(flags.out);
  if (stream && flags.run.resume)
    fail(Exit::usage, "--resume has no effect: {} is not a file, so there are no parts next to it",
         flags.out);
  if (flags.json && stream)
    fail(Exit::usage, "--json and the labels would both go to standard output; name a file for the labels");
  if (flags.learning.source.protocol == "transductive")
    fail(Exit::usage,
         "--protocol transductive has no effect: lacuna complete predicts every row by a model of other "
         "rows, whatever its part of the fold");
  if (flags.memory.bytes() > 0 && stream)
    fail(Exit::usage, "--memory-limit: {} is not a file, so there are no prepared rows next to it",
         flags.out);
  if (model.options().json().value("keep-decoders", false))
    fail(Exit::usage, "--keep-decoders has no effect: no model is kept, and lacuna recover needs one");
  if (flags.learning.hold_out == 0)
    fail(Exit::usage, "--hold-out 0: probabilities are calibrated on rows that are held out; name a share");
  if (!stream) check_writable(flags.out);
}

}  // namespace

int complete(const Arguments& arguments) {
  CompleteFlags flags;
  Options options;
  flags.declare(options);
  const HelpText help = {
      "complete",
      "Fills in the unknown labels of a data set with calibrated probabilities; known ones "
      "stay 1 and 0. The rows are divided into parts, and each part is predicted by a "
      "model trained on the others, so no label influences its own prediction. The "
      "settings of the method are flags, as for lacuna train.",
      "  lacuna complete photos.npz --out tags.csv\n"
      "  lacuna complete photos.npz --parts 10 --out tags.npz --json\n"
      "  lacuna complete photos.npz --out tags.csv --resume\n"};
  const Model first = parse_learning(flags.learning, options, arguments, help);
  check_flags(flags, first);
  const Source source(flags.learning.source);
  if (source.data().labels.empty())
    fail(Exit::data, "{}: has no labels to complete", flags.learning.source.path);
  const Stopwatch watch;
  Completion completion(flags, source);
  const bool complete_already = completion.unknown() == 0;
  if (complete_already && !flags.quiet)
    tell(flags.learning.source.path,
         {"no label is unknown: nothing is learned, and the labels are written as they are"});
  if (source.data().rows < 4 && !complete_already)
    fail(Exit::data, "{}: has {} rows; at least 4 are needed, because labels are completed from other rows",
         flags.learning.source.path, source.data().rows);
  if (source.data().rows < 2 * static_cast<std::size_t>(flags.parts) && !complete_already)
    fail(Exit::data, "{}: has {} rows, too few for {} parts; --parts {} would do", flags.learning.source.path,
         source.data().rows, flags.parts, std::max<std::size_t>(2, source.data().rows / 2));
  if (flags.memory.given() && !complete_already)
    check_in_files(source.data(), flags.learning.source.path, flags.memory.bytes());
  std::vector<Tensors> parts;
  nlohmann::json print;
  for (std::int64_t k = 0; k < flags.parts && !complete_already; ++k) {
    CompleteFlags copy;  // a fresh model with the same settings
    Options own;
    copy.declare(own);
    Model model = parse_learning(copy.learning, own, arguments, help);
    if (k == 0) print = fingerprint(copy.learning, source, model);
    if (flags.memory.given()) print["order"] = "of the file";  // rows are numbered by it
    try {
      parts.push_back(completion.part(static_cast<std::size_t>(k), print, std::move(model)));
    } catch (const std::bad_alloc&) {
      if (!flags.memory.given()) throw;
      fail_beyond_limit(flags.memory.bytes());
    }
  }
  const Completion::Tally tally = completion.write(parts);
  parts.clear();
  completion.remove_parts();
  const double seconds = watch.seconds();
  if (flags.json)
    fmt::print("{}\n", nlohmann::json{{"schema", "lacuna.complete.1"},
                                      {"out", flags.out},
                                      {"items", source.data().rows},
                                      {"labels", source.data().label_count()},
                                      {"known", tally.known},
                                      {"filled", tally.filled},
                                      {"without_view", tally.without_view},
                                      {"parts", flags.parts},
                                      {"method", first.method().traits().name},
                                      {"seconds", seconds}}
                           .dump(2));
  else if (!flags.quiet)
    fmt::print(stderr, "{}: {} rows, {} known labels kept, {} filled, {}\n",
               flags.out == "-" ? "standard output" : flags.out, count_text(source.data().rows),
               count_text(tally.known), count_text(tally.filled), duration_text(seconds));
  return 0;
}

}  // namespace lacuna::cli
