#include "experiments/gap_facts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "data/rates.h"

namespace lacuna {

using nlohmann::json;

namespace {

constexpr std::pair<const char*, double GapFacts::*> kFacts[] = {
    {"own_views", &GapFacts::own_views},
    {"own_labels", &GapFacts::own_labels},
    {"views", &GapFacts::views},
    {"train_views", &GapFacts::train_views},
    {"train_labels", &GapFacts::train_labels},
    {"hidden_views", &GapFacts::hidden_views},
    {"hidden_labels", &GapFacts::hidden_labels},
    {"held_hidden", &GapFacts::held_hidden},
    {"test_labels", &GapFacts::test_labels},
    {"rows_without_view", &GapFacts::bare_rows},
    {"test_rows", &GapFacts::test_rows},
    {"test_rows_without_view", &GapFacts::bare_test_rows},
};

// Instances of some rows of one repetition.
struct InstanceCount {
  double all = 0, existing = 0, present = 0, bare_rows = 0;
  double missing() const { return share(all - present, all); }
  double hidden() const { return share(existing - present, existing); }
};

InstanceCount count_instances(const Dataset& data, const Fold& fold, std::span<const std::uint32_t> rows) {
  InstanceCount count;
  for (const auto i : rows) {
    bool any = false;
    for (std::size_t v = 0; v < data.views.size(); ++v) {
      const bool there = data.has(i, v), kept = there && fold.W(i, v) != 0;
      ++count.all, count.existing += there, count.present += kept;
      any = any || kept;
    }
    count.bare_rows += !any;
  }
  return count;
}

struct LabelCount {
  double all = 0, known = 0, left = 0;
};

LabelCount count_labels(const Dataset& data, const Fold& fold, std::span<const std::uint32_t> rows) {
  LabelCount count;
  for (const auto i : rows)
    for (std::size_t j = 0; j < data.label_count(); ++j) {
      const bool known = data.labels(i, j) != kUnknown;
      ++count.all, count.known += known, count.left += known && fold.G(i, j) != 0;
    }
  return count;
}

void add_repetition(const Dataset& data, const Folds& folds, std::size_t r, Protocol protocol, double weight,
                    GapFacts& facts) {
  const Fold& fold = folds.folds[r];
  const auto all_rows = folds.part_rows(r, Part::all), train = folds.part_rows(r, Part::train);
  const std::span<const std::uint32_t> held = std::span(all_rows).subspan(train.size());
  const InstanceCount all = count_instances(data, fold, all_rows);
  facts.own_views += weight * share(all.all - all.existing, all.all);
  facts.views += weight * all.missing();
  facts.hidden_views += weight * all.hidden();
  facts.bare_rows += weight * all.bare_rows;
  facts.train_views += weight * count_instances(data, fold, train).missing();
  facts.held_hidden += weight * count_instances(data, fold, held).hidden();
  const LabelCount labels = count_labels(data, fold, all_rows), learned = count_labels(data, fold, train);
  facts.own_labels += weight * share(labels.all - labels.known, labels.all);
  facts.train_labels += weight * share(learned.all - learned.left, learned.all);
  facts.hidden_labels += weight * share(learned.known - learned.left, learned.known);
  Selection test = part_of_fold(data, folds, r, Part::test, protocol);
  const auto tested = static_cast<double>(test.rows.size());
  drop_rows_without_view(test);
  const LabelCount judged = count_labels(data, fold, test.rows);
  facts.test_labels += weight * share(judged.all - judged.known, judged.all);
  facts.test_rows += weight * tested;
  facts.bare_test_rows += weight * (tested - static_cast<double>(test.rows.size()));
}

bool in_any(std::span<const GapFacts> sets, bool (GapFacts::*is)() const) {
  return std::any_of(sets.begin(), sets.end(), [&](const GapFacts& one) { return (one.*is)(); });
}
double most_of(std::span<const GapFacts> sets, double GapFacts::*what) {
  double most = 0;
  for (const GapFacts& one : sets) most = std::max(most, one.*what);
  return most;
}

std::string own_words(std::span<const GapFacts> sets) {
  return fmt::format("{} of the views and {} of the labels", percent_range(sets, &GapFacts::own_views),
                     percent_range(sets, &GapFacts::own_labels));
}
bool own_gaps(std::span<const GapFacts> sets) {
  return most_of(sets, &GapFacts::own_views) > 0 || most_of(sets, &GapFacts::own_labels) > 0;
}

// Rows that are tested in name only.
std::string bare_words(std::span<const GapFacts> sets) {
  double fewest = std::numeric_limits<double>::max(), most = 0;
  for (const GapFacts& one : sets)
    fewest = std::min(fewest, one.bare_test_rows), most = std::max(most, one.bare_test_rows);
  const auto number = [](double value) { return fmt::format("{:g}", std::round(value * 10) / 10); };
  const std::string range =
      number(fewest) == number(most) ? number(most) : number(fewest) + " to " + number(most);
  const std::string tested = sets.size() == 1 ? fmt::format(" of {}", number(sets[0].test_rows)) : "";
  return fmt::format("{}{} test rows of a repetition without any view and not scored", range, tested);
}

std::string mask_text(const json& mask, const char* key, const char* fallback) {
  return mask.value(key, std::string(fallback));
}

std::string pattern_text(const json& mask) {
  return join(mask.value("patterns", std::vector<std::string>()), ", ");
}

}  // namespace

json GapFacts::json() const {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, member] : kFacts) object[name] = this->*member;
  return object;
}

GapFacts GapFacts::from_json(const nlohmann::json& from) {
  GapFacts facts;
  for (const auto& [name, member] : kFacts) facts.*member = from.value(name, 0.);
  return facts;
}

GapFacts GapFacts::asked(const nlohmann::json& mask) {
  GapFacts facts;
  facts.views = facts.train_views = facts.hidden_views = mask.value("missing-views", 0.);
  facts.train_labels = facts.hidden_labels = mask.value("missing-labels", 0.);
  if (mask_text(mask, "test-views", "gaps") == "gaps") facts.held_hidden = facts.hidden_views;
  return facts;
}

GapFacts measure_gaps(const Dataset& data, const Folds& folds, std::size_t repetitions, Protocol protocol) {
  GapFacts facts;
  for (std::size_t r = 0; r < repetitions; ++r)
    add_repetition(data, folds, r, protocol, 1 / static_cast<double>(repetitions), facts);
  return facts;
}

std::string percent(double part) {
  return fmt::format("{:g} %", std::round(part * 1000) / 10);
}

std::string percent_range(std::span<const GapFacts> sets, double GapFacts::*what) {
  const auto [low, high] = std::minmax_element(
      sets.begin(), sets.end(), [&](const GapFacts& a, const GapFacts& b) { return a.*what < b.*what; });
  if (low == sets.end()) return percent(0);
  const std::string least = percent(*low.*what), most = percent(*high.*what);
  return least == most ? most : fmt::format("{} to {}", least.substr(0, least.size() - 2), most);
}

std::string draw_words(const json& header, bool hides_views) {
  const json& mask = header.at("mask");
  std::vector<std::string> parts;
  if (header.value("folds", "").empty()) {
    const std::string mechanism = mask_text(mask, "mechanism", "mcar");
    if (mechanism == "mnar" && hides_views)
      parts.push_back(
          fmt::format("views hidden by their values (mnar, strength {:g})", mask.value("strength", 2.)));
    if (mechanism == "pattern" && hides_views)
      parts.push_back(fmt::format("views hidden by pattern ({})", pattern_text(mask)));
    if (mask.value("stratify", false)) parts.push_back("rows split by stratification");
  }
  return join(parts, ", ");
}

namespace {

// bench missing: what was measured is the repetitions without such a change.
bool varies_shares(const json& header) {
  return header.value("kind", "") == "missing";
}

}  // namespace

std::string gap_words(std::span<const GapFacts> sets, const json& header) {
  std::string text;
  if (!in_any(sets, &GapFacts::added)) {
    text = own_gaps(sets) ? fmt::format("no gaps except those of the data, which lack {}", own_words(sets))
                          : "without gaps";
  } else {
    const bool training = in_any(sets, &GapFacts::only_training);
    text = fmt::format("{} of the {}views and {} of the training labels missing",
                       percent_range(sets, training ? &GapFacts::train_views : &GapFacts::views),
                       training ? "training rows' " : "", percent_range(sets, &GapFacts::train_labels));
    if (own_gaps(sets)) text += fmt::format(" (the data themselves lack {})", own_words(sets));
    if (training) text += ", validation and test rows with all the views that they have";
  }
  if (varies_shares(header)) text += " where the shares do not vary";
  if (const std::string draw = draw_words(header, most_of(sets, &GapFacts::hidden_views) > 0); !draw.empty())
    text += ", " + draw;
  if (most_of(sets, &GapFacts::bare_test_rows) > 0) text += ", " + bare_words(sets);
  return text;
}

namespace {

std::string hiding_sentence(std::span<const GapFacts> sets, const json& mask) {
  const double labels = mask.value("missing-labels", 0.);
  const std::string mechanism = mask_text(mask, "mechanism", "mcar");
  const bool training = mask_text(mask, "test-views", "gaps") == "complete";
  const std::string whose = training ? "training rows" : "rows";
  const std::string unknown = fmt::format(
      "{} of each label's known positives and of its known negatives become unknown", percent(labels));
  if (mechanism == "pattern")
    return fmt::format(
        "For each repetition the {} are divided into groups at random, by the shares of the patterns {}; a "
        "row keeps the views of its group that it has, and {}.",
        whose, pattern_text(mask), unknown);
  const double views = mask.value("missing-views", 0.);
  if (views == 0 && labels == 0)
    return "No view and no label is hidden: each repetition has the data as they are.";
  const std::string chance =
      mechanism == "mnar"
          ? fmt::format(
                "by their values (mnar: the odds of being hidden grow by exp({:g}) for each standard "
                "deviation along a random direction of the view)",
                mask.value("strength", 2.))
          : "at random";
  const bool bare = most_of(sets, &GapFacts::bare_rows) > 0;
  return fmt::format(
      "For each repetition, {} of every view's instances {}are hidden {}, so that every item {}, and {}.",
      percent(views), training ? "among the training rows " : "", chance,
      bare ? "that has a view keeps one" : "keeps at least one view", unknown);
}

std::string split_sentence(const json& mask) {
  const std::string parts =
      fmt::format("the first {} are for training, the next {} for validation, the rest for the test",
                  percent(mask.value("train", .7)), percent(mask.value("val", .15)));
  return mask.value("stratify", false) ? "The rows are ordered by iterative stratification, so that every "
                                         "part gets its share of each label's "
                                         "positives: " +
                                             parts + "."
                                       : "The rows are put into random order: " + parts + ".";
}

}  // namespace

std::string protocol_sentences(std::span<const GapFacts> sets, const json& header) {
  const json& mask = header.at("mask");
  const std::string folds = header.value("folds", "");
  std::vector<std::string> text;
  if (!folds.empty()) {
    text.push_back(in_any(sets, &GapFacts::added)
                       ? fmt::format("Gaps and splits are those of the file {}.", folds)
                       : fmt::format("Splits are those of the file {}, without its gaps.", folds));
    text.push_back(fmt::format("{} of the rows are for training, {} for validation, the rest for the test.",
                               percent(mask.value("train", .7)), percent(mask.value("val", .15))));
  } else {
    text.push_back(hiding_sentence(sets, mask));
    if (varies_shares(header))
      text.push_back("One of these shares varies, or one view is left out and no other is hidden.");
    if (mask_text(mask, "scope", "all") == "part" && most_of(sets, &GapFacts::hidden_views) > 0)
      text.push_back("The views' rates are exact inside each part of the rows.");
    text.push_back(split_sentence(mask));
  }
  text.push_back(fmt::format("Measured: {}.", gap_words(sets, header)));
  text.push_back(
      in_any(sets, &GapFacts::only_training)
          ? "Only training rows lose views: test rows have all the views that the data have of them."
      : most_of(sets, &GapFacts::held_hidden) > 0 ? "Test rows have missing views too."
      : most_of(sets, &GapFacts::own_views) > 0   ? "Test rows lack the views that the data lack."
                                                  : "Test rows have all views.");
  text.push_back(
      most_of(sets, &GapFacts::test_labels) > 0
          ? fmt::format("They are scored against the labels that the data know: {} of the test rows' labels "
                        "are unknown and take part in no metric.",
                        percent_range(sets, &GapFacts::test_labels))
          : "They are scored against their complete labels.");
  text.push_back(fmt::format("{} is {} in the first repetition and one more in each that follows.",
                             folds.empty()
                                 ? fmt::format("Gaps and splits are drawn with the seed {}; a method's own",
                                               mask.value("seed", std::uint64_t{1}))
                                 : std::string("The seed of a method"),
                             mask.value("seed", std::uint64_t{1})));
  return join(text, " ");
}

}  // namespace lacuna
