// lacuna explain: which view drove which tag.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/item_stream.h"
#include "cli/machine_flags.h"
#include "cli/prediction.h"
#include "cli/progress.h"
#include "cli/text_out.h"
#include "cli/verbs.h"
#include "data/jsonl.h"
#include "methods/view_summary.h"
#include "ops/device.h"

namespace lacuna::cli {
namespace {

struct ExplainFlags {
  std::string model, out, part = "all", precision = "model", base = "prior";
  SourceFlags source;
  std::int64_t top = -1, exact_views = 12, orders = 256;
  bool json = false, summary = false, calibrated = false, quiet = false;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string device = "auto";

  void declare(Options& o) {
    o.add("model", model, "a model file written by lacuna train").positional().metavar("MODEL").required();
    source.declare(o);
    o.find("data")->help = "data set, or - for JSON lines, CSV or TSV from standard input";
    for (const char* name : {"jsonl", "tsv"}) o.find("format")->allowed.push_back(name);
    o.find("protocol")->needs("folds");
    o.add("part", part, "with folds: which rows to explain, in the order of the fold")
        .choices({"train", "val", "test", "all"})
        .needs("folds");
    o.add("base", base,
          "base of the explanations: the tags' frequencies in training, or the model's output without any "
          "view, which is not trained")
        .choices({"prior", "model"});
    o.add("top", top,
          "the K best tags of each item; 0 = all; -1 = 3 on screen, all in files")
        .range(-1, 1e6)
        .metavar("K");
    o.add("out", out,
          "file to write: .json, .jsonl (one item per line), .csv or .tsv (one tag per line); - is standard "
          "output")
        .metavar("FILE");
    o.add("summary", summary,
          "what each view contributes over all items with known labels, and the accuracy by available views; "
          "uses the validation rows if DATA are the training data");
    o.add("calibrated", calibrated, "explain calibrated probabilities instead of log-odds");
    o.add("exact-views", exact_views, "items with more views are explained from sampled orders")
        .range(0, 20);
    o.add("orders", orders, "number of sampled orders").range(4, 1e6);
    o.add("seed", seed, "seed of the sampled orders");
    o.add("precision", precision, "precision of matrix products: the model's setting, f32 or bf16")
        .choices({"model", "f32", "bf16"});
    add_threads(o, threads);
    add_device(o, device);
    o.add("json", json, "print one JSON document");
    o.add("quiet", quiet, "print only errors");
  }
  ExplainOptions options() const {
    return {calibrated, static_cast<std::size_t>(exact_views), static_cast<std::size_t>(orders), seed,
            base == "prior" ? Base::prior : Base::model};
  }
};

const char* unit_of(const ExplainFlags& flags, const Model& model) {
  return flags.calibrated ? "probability" : model.method().traits().probabilities ? "log-odds" : "score";
}

// Explanations as text, item by item.
class ExplanationText {
 public:
  enum class Format { json, jsonl, csv, tsv, table };
  ExplanationText(Format format, const Model& model, std::size_t top, const char* unit, Base base)
      : format_(format), top_(top), unit_(unit), base_(base_name(base)), labels_(model.label_names()) {
    for (const auto& view : model.preparation().views()) views_.push_back(view.name);
    for (const auto& name : labels_) append_json(label_keys_.emplace_back(), name);
    for (const auto& name : views_) append_json(view_keys_.emplace_back(), name);
  }

  std::string begin() const {
    if (format_ == Format::json)
      return fmt::format(
          "{{\"schema\": \"lacuna.explain.1\", \"unit\": \"{}\", \"base\": \"{}\", \"items\": [\n", unit_,
          base_);
    if (format_ == Format::csv || format_ == Format::tsv) {
      std::string line = fmt::format("id{0}rank{0}label{0}score{0}base", separator());
      for (const auto& name : views_) line += separator() + field(name);
      return line + '\n';
    }
    return format_ == Format::table ? fmt::format("{} = base + what each view adds; base is {}\n", unit_,
                                              base_ == "prior" ? "the tag's frequency in training"
                                                               : "the model's output without views")
                                : "";
  }
  std::string end() const { return format_ == Format::json ? "\n]}\n" : ""; }

  void append(std::string& out, const std::string& id, bool first, const Explanation& e,
              std::size_t i) const {
    std::vector<std::uint32_t> order(labels_.size());
    std::iota(order.begin(), order.end(), 0u);
    const std::size_t most = top_ == 0 ? order.size() : std::min(top_, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
                      [&](std::uint32_t a, std::uint32_t b) {
                        return e.score(i, a) != e.score(i, b) ? e.score(i, a) > e.score(i, b) : a < b;
                      });
    order.resize(most);
    if (format_ == Format::json || format_ == Format::jsonl) return append_item(out, id, first, e, i, order);
    if (format_ == Format::table) return append_lines(out, id, e, i, order);
    if (std::ranges::count(e.present.row(i), std::uint8_t{1}) == 0) return;  // nothing to explain
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::uint32_t j = order[k];
      out += fmt::format("{1}{0}{2}{0}{3}{0}{4:.10g}{0}{5:.10g}", separator(), field(id), k + 1,
                         field(labels_[j]), e.score(i, j), e.base(i, j));
      for (std::size_t v = 0; v < views_.size(); ++v) {
        out += separator();
        if (e.present(i, v) != 0) fmt::format_to(std::back_inserter(out), "{:.10g}", e.values[v](i, j));
      }
      out += '\n';
    }
  }

 private:
  char separator() const { return format_ == Format::tsv ? '\t' : ','; }
  static std::string field(const std::string& text) {
    if (text.find_first_of(",;\t\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + '"';
  }
  void append_item(std::string& out, const std::string& id, bool first, const Explanation& e, std::size_t i,
                   const std::vector<std::uint32_t>& order) const {
    if (format_ == Format::json && !first) out += ",\n";
    out += "{\"id\": ";
    append_json(out, id);
    if (format_ == Format::jsonl) fmt::format_to(std::back_inserter(out), ", \"base\": \"{}\"", base_);
    out += ", \"tags\": [";
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::uint32_t j = order[k];
      fmt::format_to(std::back_inserter(out),
                     "{}{{\"label\": {}, \"score\": {:.10g}, \"base\": {:.10g}, \"views\": {{",
                     k > 0 ? ", " : "", label_keys_[j], e.score(i, j), e.base(i, j));
      double error = 0;
      bool any = false;
      for (std::size_t v = 0; v < views_.size(); ++v) {
        if (e.present(i, v) == 0) continue;
        fmt::format_to(std::back_inserter(out), "{}{}: {:.10g}", any ? ", " : "", view_keys_[v],
                       e.values[v](i, j));
        if (!e.errors.empty()) error = std::max(error, e.errors[v](i, j));
        any = true;
      }
      out += '}';
      if (error > 0) fmt::format_to(std::back_inserter(out), ", \"standard_error\": {:.3g}", error);
      out += '}';
    }
    out += format_ == Format::json ? "]}" : "]}\n";
  }
  void append_lines(std::string& out, const std::string& id, const Explanation& e, std::size_t i,
                    const std::vector<std::uint32_t>& order) const {
    out += fmt::format("\n{}\n", id);
    std::vector<std::string> header = {"tag", unit_, "base"};
    std::vector<std::size_t> own;
    for (std::size_t v = 0; v < views_.size(); ++v)
      if (e.present(i, v) != 0) own.push_back(v), header.push_back(views_[v]);
    if (own.empty()) {
      out += "has no view that the model knows: nothing to explain\n";
      return;
    }
    TextTable table(header);
    for (const std::uint32_t j : order) {
      std::vector<std::string> row = {labels_[j], fmt::format("{:.3f}", e.score(i, j)),
                                      fmt::format("{:.3f}", e.base(i, j))};
      for (const std::size_t v : own) row.push_back(fmt::format("{:+.3f}", e.values[v](i, j)));
      table.add(row);
    }
    out += table.text();
  }

  Format format_;
  std::size_t top_;
  std::string unit_, base_;
  std::vector<std::string> labels_, views_, label_keys_, view_keys_;
};

ExplanationText::Format explanation_format(const ExplainFlags& flags) {
  using Format = ExplanationText::Format;
  if (flags.out.empty() || flags.out == "-")
    return flags.json ? Format::json : flags.out == "-" ? Format::jsonl : Format::table;
  if (flags.out.ends_with(".json")) return Format::json;
  if (flags.out.ends_with(".jsonl") || flags.out.ends_with(".ndjson") || is_stream_path(flags.out))
    return Format::jsonl;
  if (flags.out.ends_with(".csv")) return Format::csv;
  if (flags.out.ends_with(".tsv")) return Format::tsv;
  fail(Exit::usage, "{}: explanations are written as .json, .jsonl, .csv or .tsv", flags.out);
}

// The rows that the model was selected on, if this is the data that it was trained on and they can be told.
std::optional<Selection> validation_rows(const Model& model, const Dataset& data) {
  const auto& notes = model.notes();
  if (!notes.is_object() || !notes.contains("hold-out") || !notes["hold-out"].is_number() ||
      !notes.contains("seed") || !notes["seed"].is_number_unsigned() ||
      notes.value("data_hash", nlohmann::json()) != content_hash(data))
    return {};
  Selection val =
      learning_rows(select_all(data), notes["hold-out"].get<double>(), notes["seed"].get<std::uint64_t>())
          .val;
  if (val.rows.empty()) return {};
  return val;
}

std::string interval_text(const Estimate& estimate, const char* pattern) {
  if (std::isnan(estimate.value)) return "-";
  const auto number = [&](double x) { return fmt::format(fmt::runtime(pattern), x); };
  return fmt::format("{} [{}, {}]", number(estimate.value), number(estimate.interval.low),
                     number(estimate.interval.high));
}

void print_summary(const ViewSummary& summary, const std::string& rows, const char* unit, std::size_t top) {
  fmt::print("{} {}; AP {}; 95 % intervals from resampling the items; the base is {}\n\n",
             summary.items, rows, interval_text(summary.ap, "{:.3f}"),
             summary.base == "prior" ? "the tags' frequencies in training" : "the model's output without views");
  TextTable views({"view", "items", fmt::format("mean |effect| ({})", unit), "loss of AP without it",
                   "AP with it alone"});
  for (std::size_t v = 0; v < summary.views.size(); ++v) {
    const auto& view = summary.views[v];
    views.add({view.view, std::to_string(view.items), interval_text(view.effect, "{:.3f}"),
               interval_text(view.ap_loss, "{:.3f}"), interval_text(summary.alone[v].ap, "{:.3f}")});
  }
  std::fputs(views.text().c_str(), stdout);

  // Each view's tags, by what they lose without it.
  for (const auto& view : summary.views) {
    std::vector<std::size_t> order;
    for (std::size_t j = 0; j < summary.label_names.size(); ++j)
      if (!std::isnan(view.label_ap_loss[j].value)) order.push_back(j);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](std::size_t j) { return view.label_ap_loss[j].value; });
    order.resize(std::min(order.size(), top));
    if (order.empty()) continue;
    fmt::print("\ntags that need '{}' most\n", view.view);
    TextTable table({"tag", "loss of AP without it", fmt::format("mean |effect| ({})", unit)});
    for (const std::size_t j : order)
      table.add({summary.label_names[j], interval_text(view.label_ap_loss[j], "{:.3f}"),
                 interval_text(view.label_effect[j], "{:.3f}")});
    std::fputs(table.text().c_str(), stdout);
  }

  constexpr std::size_t kShown = 20;
  fmt::print("\naccuracy by available views\n");
  TextTable patterns({"with only", "items", "AP"});
  for (std::size_t k = 0; k < summary.patterns.size() && k < kShown; ++k)
    patterns.add({join(summary.patterns[k].views, ", "), std::to_string(summary.patterns[k].items),
                  interval_text(summary.patterns[k].ap, "{:.3f}")});
  std::fputs(patterns.text().c_str(), stdout);
  if (summary.patterns.size() > kShown)
    fmt::print("and {} more (--json has all)\n", summary.patterns.size() - kShown);
}

int explain_summary(const ExplainFlags& flags, const Model& model, const Source& source) {
  Selection selection = source.part(part_from_name(flags.part));
  std::string rows = source.has_folds() ? flags.part + " rows" : "rows";
  if (!source.has_folds()) {
    if (const auto own = validation_rows(model, source.data())) {
      selection = *own;
      rows = "validation rows of the training";
    }
  }
  selection.hide_labels = false;
  const ViewSummary summary = summarise_views(model, selection, flags.options());
  nlohmann::json document = to_json(summary);
  document["schema"] = "lacuna.explain-summary.1";
  document["rows"] = rows;
  if (!flags.out.empty()) {
    TextOut out(flags.out);
    out.write(document.dump(1) + "\n");
    out.commit();
  } else if (flags.json) {
    fmt::print("{}\n", document.dump(1));
  } else {
    print_summary(summary, rows, unit_of(flags, model),
                  flags.top <= 0 ? 5 : static_cast<std::size_t>(flags.top));
  }
  return 0;
}

// A flag that would change nothing is a mistake.
void check_flags(const ExplainFlags& flags, Options& options) {
  const auto given = [&](const char* name) { return options.find(name)->given; };
  if (flags.json && !flags.out.empty() && (flags.out != "-" || flags.summary))
    fail(Exit::usage, "--json prints on standard output, --out {} writes a file; give one of them",
         flags.out);
  if (flags.summary && !flags.out.empty() && !flags.out.ends_with(".json") && !is_stream_path(flags.out))
    fail(Exit::usage, "{}: a summary is written as .json", flags.out);
  if (flags.summary && given("top") && (flags.json || !flags.out.empty()))
    fail(Exit::usage, "--top has no effect: the document of --summary contains all tags");
  check_named_format(flags.source.path, flags.source.read.format, "format");
  if (is_item_stream(flags.source.path, flags.source.read.format)) {
    if (flags.summary)
      fail(Exit::usage, "{}: lines from a stream have no labels, and --summary compares with them",
           flags.source.path);
    if (!flags.source.folds.empty())
      fail(Exit::usage, "{}: lines from a stream have no folds; --folds needs a data set", flags.source.path);
  } else if (!flags.summary) {
    for (const char* name : {"label-code", "blank-means", "label-file"})
      if (given(name) && !flags.source.read.label_file.ends_with(".xml"))
        fail(Exit::usage, "--{} has no effect: explanations need no labels (--summary does)", name);
  }
}

// What only the model can tell.
void check_flags(const ExplainFlags& flags, Options& options, const Model& model) {
  const auto given = [&](const char* name) { return options.find(name)->given; };
  const auto views = static_cast<std::int64_t>(model.view_shapes().size());
  for (const char* name : {"orders", "seed"})
    if (given(name) && views <= flags.exact_views)
      fail(Exit::usage,
           "--{} has no effect: the model has {} views, and with up to {} all orders are used (--exact-views)",
           name, views, flags.exact_views);
  const std::int64_t usual = ExplainFlags().exact_views;
  if (given("exact-views") && views <= std::min(flags.exact_views, usual))
    fail(Exit::usage, "--exact-views {} has no effect: the model has {} views, and up to {} are exact anyway",
         flags.exact_views, views, usual);
  std::string why;
  if (base_of(model, flags.options(), &why) == Base::model && flags.base == "prior") {
    if (given("base")) fail(Exit::mismatch, "{}: --base prior is not available: {}", flags.model, why);
    if (!flags.quiet)
      fmt::print(stderr,
                 "{}: explanations use the model's output without views as their base (--base model): {}\n",
                 flags.model, why);
  }
}

// Writes the explanations of items, whatever they come from.
class Explainer {
 public:
  Explainer(const ExplainFlags& flags, const Model& model)
      : flags_(flags),
        model_(model),
        format_(explanation_format(flags)),
        text_(format_, model,
              flags.top >= 0                          ? static_cast<std::size_t>(flags.top)
              : format_ == ExplanationText::Format::table ? 3
                                                      : 0,
              unit_of(flags, model), base_of(model, flags.options())),
        out_(flags.out.empty() ? "-" : flags.out) {
    out_.write(text_.begin());
  }

  // id(i): of the i-th item of the selection; error(i): why the line is none, or "".
  void add(const Selection& selection, FunctionRef<std::string(std::size_t)> id,
           FunctionRef<std::string(std::size_t)> error) {
    explain(model_, selection, flags_.options(), [&](std::size_t begin, const Explanation& part) {
      constexpr std::size_t kGrain = 8;
      const std::size_t n = part.score.rows();
      std::size_t first_item = 0;  // the first one is not preceded by a comma
      while (first_item < n && !error(begin + first_item).empty()) ++first_item;
      const bool none_yet = items_ == 0;
      std::vector<std::string> pieces((n + kGrain - 1) / kGrain);
      parallel_for(n, kGrain, [&](std::size_t first, std::size_t end) {
        for (std::size_t i = first; i < end; ++i) {
          std::string& piece = pieces[first / kGrain];
          if (const std::string wrong = error(begin + i); wrong.empty())
            text_.append(piece, id(begin + i), none_yet && i == first_item, part, i);
          else if (format_ == ExplanationText::Format::jsonl)
            piece += wrong;
        }
      });
      for (const auto& piece : pieces) out_.write(piece);
      for (std::size_t i = 0; i < n; ++i) {
        const std::string wrong = error(begin + i);
        if (!wrong.empty() && format_ != ExplanationText::Format::jsonl) std::fputs(wrong.c_str(), stderr);
        if (!wrong.empty()) continue;
        ++items_;
        without_view_ += std::ranges::count(part.present.row(i), std::uint8_t{1}) == 0;
      }
      for (const auto& errors : part.errors)
        for (double value : errors.values()) largest_error_ = std::max(largest_error_, value);
    });
  }

  void finish(std::size_t bad_lines) {
    out_.write(text_.end());
    out_.commit();
    if (flags_.quiet) return;
    if (without_view_ > 0)
      fmt::print(stderr, "items without any view, {}: {} of {}\n",
                 format_ == ExplanationText::Format::csv || format_ == ExplanationText::Format::tsv
                     ? "which get no lines"
                     : "whose score is the base",
                 without_view_, items_);
    if (bad_lines > 0)
      fmt::print(stderr, "lines that could not be read: {} of {}\n", bad_lines, items_ + bad_lines);
    if (largest_error_ > 0)
      fmt::print(stderr,
                 "items with more than {} views were explained from {} orders; the largest standard error is "
                 "{:.2g} (--orders)\n",
                 flags_.exact_views, flags_.orders, largest_error_);
    fmt::print(stderr, "{} items, {} tags, {} views explained in {}; base: {}\n", items_,
               model_.label_names().size(), model_.preparation().views().size(),
               duration_text(steady_seconds() - begun_), base_name(base_of(model_, flags_.options())));
  }

 private:
  const ExplainFlags& flags_;
  const Model& model_;
  ExplanationText::Format format_;
  ExplanationText text_;
  TextOut out_;
  double begun_ = steady_seconds(), largest_error_ = 0;
  std::size_t items_ = 0, without_view_ = 0;
};

void explain_stream(const ExplainFlags& flags, const Model& model, std::vector<std::string> reading) {
  ItemStream items({flags.source.path, flags.source.read, std::move(reading), false, flags.quiet}, model);
  Explainer explainer(flags, model);
  while (items.next()) {
    const Dataset data = items.dataset();
    explainer.add(
        select_all(data), [&](std::size_t i) { return items.block().id(i); },
        [&](std::size_t i) {
          std::string line;
          if (!items.error(i).empty()) PredictionText::append_error(line, items.line(i), items.error(i));
          return line;
        });
  }
  explainer.finish(items.bad_lines());
  items.check_any();
}

}  // namespace

int explain(const Arguments& arguments) {
  ExplainFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "explain",
      "Shows which view drove which tag: for each item and tag, the Shapley value of every view that the item "
      "has. The values add up to the score minus the base, which is the tag's frequency in training (see "
      "--base).",
      "  lacuna explain photos.safetensors new.npz --top 3\n"
      "  lacuna explain photos.safetensors - --out - < items.jsonl\n"
      "  lacuna explain photos.safetensors new.npz --out why.csv\n"
      "  lacuna explain photos.safetensors photos.npz --summary\n");
  check_flags(flags, options);
  if (!flags.out.empty() && !is_stream_path(flags.out)) check_writable(flags.out);
  set_threads(flags.threads);
  set_device(parse_device(flags.device));
  const Model model = load_model(flags.model, flags.precision);
  check_flags(flags, options, model);
  if (is_item_stream(flags.source.path, flags.source.read.format)) {
    explain_stream(flags, model, given_to_read(options));
    return 0;
  }
  flags.source.read.needs_labels = flags.summary;
  if (flags.source.read.format == "tsv") flags.source.read.format = "csv";
  const Source source(flags.source);
  if (flags.summary) return explain_summary(flags, model, source);
  const Dataset& data = source.data();
  const Selection selection = source.part(part_from_name(flags.part));
  Explainer explainer(flags, model);
  explainer.add(
      selection,
      [&](std::size_t i) {
        const std::uint32_t at = selection.rows[i];
        return data.ids.empty() ? std::to_string(at) : data.ids[at];
      },
      [](std::size_t) { return std::string(); });
  explainer.finish(0);
  return 0;
}

}  // namespace lacuna::cli
