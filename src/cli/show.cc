// lacuna show: what is in a model.
#include <sys/stat.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/counted.h"
#include "cli/date.h"
#include "cli/prediction.h"
#include "cli/verbs.h"
#include "data/metrics.h"
#include "methods/blend.h"
#include "methods/model_card.h"

namespace lacuna::cli {
namespace {

using nlohmann::json;

struct ShowFlags {
  std::string model;
  bool json = false, all = false;

  void declare(Options& o) {
    o.add("model", model, "a model file written by lacuna train").positional().metavar("MODEL").required();
    o.add("all", all, "every label, column name and setting, instead of the first few");
    o.add("json", json, "print everything as one JSON document");
  }
};

// A value of the file as a person reads it; the file is not trusted to hold the right type.
std::string words(const json& value, const char* otherwise = "not stored") {
  return value.is_null() ? otherwise : value.is_string() ? value.get<std::string>() : value.dump();
}

std::string some_of(const json& names, bool all) {
  constexpr std::size_t kShown = 4;
  if (!names.is_array()) return "unnamed";
  std::string text;
  for (std::size_t j = 0; j < names.size() && (all || j < kShown); ++j)
    text += (j > 0 ? ", " : "") + words(names[j]);
  return text + (!all && names.size() > kShown ? ", ..." : "");
}

std::string number(const json& value, const char* pattern = "{:.4f}") {
  return value.is_number() ? fmt::format(fmt::runtime(pattern), value.get<double>()) : "-";
}

// Files of earlier versions hold intervals of metrics that are undefined on the rows themselves.
void drop_undefined_intervals(json& record) {
  if (!record.is_object() || !record.contains("metrics") || !record.contains("intervals")) return;
  for (auto& [name, interval] : record["intervals"].items())
    if (!record["metrics"].value(name, json()).is_number()) interval = nullptr;
}

void print_validation(const json& record) {
  if (!record.is_object() || !record.contains("metrics") || !record["metrics"].is_object()) {
    fmt::print("\nvalidation: not stored\n");
    return;
  }
  fmt::print(
      "\nvalidation, {} rows; {} % intervals from resampling them. These rows also chose the epoch, the "
      "thresholds and the calibration. 1-HL and F1 use the method's own decisions (networks: scores above "
      ".5), not the thresholds.\n",
      words(record.value("rows", json())), std::lround(100 * record.value("level", .95)));
  TextTable table({"metric", "value", "from", "to"});
  const json intervals = record.value("intervals", json::object());
  for (const auto& name : metric_names()) {
    const json value = record["metrics"].value(name, json()), range = intervals.value(name, json());
    const bool whole = range.is_array() && range.size() == 2;
    table.add({name, number(value), whole ? number(range[0]) : "-", whole ? number(range[1]) : "-"});
  }
  std::fputs(table.text().c_str(), stdout);
}

// One entry per member of an ensemble, or the only one.
// What --known-labels does with this model.
std::string links_text(const json& links) {
  if (links["weight"].get<double>() == 0) return "do not help with others beyond noise";
  return fmt::format(
      "inform others with weight {:g}: AP {:+.3f} ± {:.3f} on validation rows with half of their labels given",
      links["weight"].get<double>(), links["gain"].get<double>(), links["error"].get<double>());
}

std::string memory_text(const json& memory) {
  std::string text;
  for (const json& one : memory.is_array() ? memory : json::array({memory})) {
    text += text.empty() ? "" : "; ";
    text += one.is_null() ? "none"
                          : fmt::format("{} training rows, sharpness {:.4g}, weight {:.4g}",
                                        count_text(one["rows"].get<std::uint64_t>()),
                                        one["sharpness"].get<double>(), one["weight"].get<double>());
  }
  return text;
}

// Of each view the error on hidden instances, relative to the columns' means.
std::string recovery_text(const json& recovery) {
  std::string text;
  for (const json& view : recovery["views"])
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words(view["name"]),
                        view["error"].is_null() ? "means" : number(view["error"], "{:.3f}"));
  return fmt::format("{} factors; squared error of hidden views relative to that of the mean: {}",
                     recovery["factors"].get<std::uint64_t>(), text);
}

// What was made of candidates.
void print_choice(const json& choice) {
  const std::string measure = words(choice.value("measure", json("AP")));
  const json rows = choice.value("judged_rows", json());
  if (rows == 0)
    fmt::print("\ncandidates; no row was held out, so there was nothing to judge them by\n");
  else if (rows.is_number() && rows < kFewestJudged)
    fmt::print("\ncandidates; {} rows are too few to judge them by, {} are needed\n", words(rows), kFewestJudged);
  else
    fmt::print("\ncandidates, judged on {} rows{}{}: {} {} together, {} ± {} over the first alone\n", words(rows),
               measure == "AP" ? " with labels of both kinds" : "",
               choice.value("crossed", false) ? " by fits that had not seen them" : " that were held out",
               measure, number(choice.value(measure, json())),
               number(choice.value("gain", json()), "{:+.4f}"), number(choice.value("error", json())));
  TextTable table({"weight", measure + " alone", "member", "left out because"});
  for (const json& one : choice.value("members", json::array()))
    if (one.is_object())
      table.add({number(one.value("weight", json()), "{:.2f}"), number(one.value(measure, json())),
                 words(one.value("member", json())), words(one.value("left_out", json()), "")});
  std::fputs(table.text().c_str(), stdout);
}

void print_card(const json& card, const ShowFlags& flags) {
  const json& training = card["training"];
  const auto line = [](const char* name, const std::string& value) {
    fmt::print("{:<13} {}\n", name, value);
  };
  line("model", flags.model);
  line(
      "method",
      words(card["method"]) + (card["preset"].is_null() ? "" : ", preset " + words(card["preset"])) +
          fmt::format(", {} for prediction", counted(card["parameters"].get<std::uint64_t>(), "parameter")));
  if (!card["memory"].is_null()) line("memory", memory_text(card["memory"]));
  if (!card["recovery"].is_null()) line("recovery", recovery_text(card["recovery"]));
  if (!card["label_links"].is_null()) line("known labels", links_text(card["label_links"]));
  line("written by", card["version"].is_null() ? "a version before 0.2" : "lacuna " + words(card["version"]));
  line("date", words(card["date"]) + (card["date_from"] == "file" ? " (time of the file)" : ""));
  line("trained on", fmt::format("{}, {} rows{}, seed {}", words(training.value("data", json())),
                                 words(training.value("rows", json())),
                                 training.contains("unlabelled_rows")
                                     ? fmt::format(" and the views of {} more that were to be scored",
                                                   words(training["unlabelled_rows"]))
                                     : "",
                                 words(training.value("seed", json()))));
  if (const json again = training.value("refit", json()); again.is_object())
    line("then",
         fmt::format("again on all {} rows, with what the first fit selected; thresholds and figures are "
                     "those of the first",
                     words(again.value("rows", json()))));
  line("data hash", words(training.value("data_hash", json())));
  if (training.contains("folds"))
    line("folds",
         fmt::format("{}, fold {}", words(training["folds"]), words(training.value("fold", json()))));
  if (training.contains("hold-out"))
    line("held out", words(training["hold-out"]) + " of the rows, for selection");
  if (training.contains("diverged")) line("diverged", words(training["diverged"]));
  line("protocol", words(card["protocol"]) + (training.contains("leaks") ? ", which leaks" : ""));
  line("explanations", card["base"] == "prior" ? "start from the label frequencies in training (--base prior)"
                                               : "start from the model's output without views (--base model)");

  fmt::print("\n");
  TextTable views({"view", "columns", "names", "preparation"});
  for (const auto& view : card["views"]) {
    std::string preparation = words(view["preparation"]);
    if (view["preparation"].is_array()) {
      preparation.clear();
      for (const auto& one : view["preparation"])
        preparation += (preparation.empty() ? "" : " | ") + words(one);
    }
    views.add(
        {words(view["name"]), view["columns"].dump(), some_of(view["column_names"], flags.all), preparation});
  }
  std::fputs(views.text().c_str(), stdout);

  if (card["choice"].is_object()) print_choice(card["choice"]);

  constexpr std::size_t kShown = 12;
  const json& labels = card["labels"];
  fmt::print("\n{} labels; {}\n", labels.size(),
             card["aim"].is_null()
                 ? fmt::format("no thresholds and no calibration: {}", Calibration::kWhyEmpty)
                 : fmt::format("thresholds of raw scores for the aim {}, calibration p = sigmoid(slope x + "
                               "intercept), x the {}",
                               words(card["aim"]), card["probabilities"] == true ? "log-odds" : "score"));
  TextTable table({"label", "share", "threshold", "slope", "intercept"});
  for (std::size_t j = 0; j < labels.size() && (flags.all || j < kShown); ++j)
    table.add({words(labels[j]["name"]), number(labels[j]["prior"]), number(labels[j]["threshold"]),
               number(labels[j]["slope"], "{:.3f}"), number(labels[j]["intercept"], "{:.3f}")});
  std::fputs(table.text().c_str(), stdout);
  if (!flags.all && labels.size() > kShown)
    fmt::print("and {} more (--all shows them)\n", labels.size() - kShown);

  print_validation(card["validation"]);
  if (!flags.all) return;
  fmt::print("\nsettings\n");
  TextTable settings({"name", "value"});
  for (const auto& [name, value] : card["options"].items()) settings.add({name, words(value)});
  std::fputs(settings.text().c_str(), stdout);
}

}  // namespace

int show(const Arguments& arguments) {
  ShowFlags flags;
  Options options;
  flags.declare(options);
  parse_or_help(
      options, arguments, "show",
      "Shows what a model contains: method, views, labels with thresholds and calibration, preparation, "
      "training data, and the metrics on its validation rows.",
      "  lacuna show photos.safetensors\n"
      "  lacuna show photos.safetensors --json | jq '.views[] | {name, columns}'\n");
  const Model model = load_model(flags.model, "model", false);
  json card = model_card(model);
  drop_undefined_intervals(card["validation"]);
  card["schema"] = "lacuna.show.1";
  card["model"] = flags.model;
  card["date_from"] = "model";
  if (card["date"].is_null()) {  // the same model has the same bytes, so it holds no date by itself
    struct stat status {};
    if (stat(flags.model.c_str(), &status) == 0) card["date"] = utc_text(status.st_mtime);
    card["date_from"] = "file";
  }
  if (flags.json) {
    fmt::print("{}\n", card.dump(2));
  } else {
    print_card(card, flags);
  }
  return 0;
}

}  // namespace lacuna::cli
