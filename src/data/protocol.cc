#include "data/protocol.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace lacuna {
namespace {

constexpr const char* kLeaky = "leaky-prepare";

}  // namespace

const std::vector<std::string>& protocol_names() {
  static const std::vector<std::string> names = {"strict", "transductive", "authors"};
  return names;
}

const char* protocol_name(Protocol protocol) {
  return protocol_names()[static_cast<std::size_t>(protocol)].c_str();
}

Protocol protocol_from_name(const std::string& name) {
  const auto at = std::find(protocol_names().begin(), protocol_names().end(), name);
  if (at == protocol_names().end())
    fail(Exit::usage, "there is no protocol '{}'{} (there are {})", name,
         did_you_mean(name, protocol_names()), join(protocol_names(), ", "));
  return static_cast<Protocol>(at - protocol_names().begin());
}

const char* protocol_warning(Protocol protocol) {
  switch (protocol) {
    case Protocol::strict:
      return "";
    case Protocol::transductive:
      return "protocol transductive: the views of validation and test rows take part in training, their "
             "labels do not; compare such figures only with figures of the same protocol";
    case Protocol::authors:
      return "protocol authors leaks: the preparation sees all rows and the test rows hold the validation "
             "rows; compare such figures only with figures of the same protocol";
  }
  return "";
}

const char* protocol_remark(Protocol protocol) {
  switch (protocol) {
    case Protocol::strict:
      return "";
    case Protocol::transductive:
      return " (views of validation and test rows take part in training)";
    case Protocol::authors:
      return " (it leaks: validation rows are inside the test)";
  }
  return "";
}

void apply_protocol(Protocol protocol, Options& settings) {
  if (protocol != Protocol::authors && settings.find(kLeaky)->text() == "true")
    fail(Exit::usage,
         "{} lets the preparation see what a fold hides, which protocol {} never does: use --protocol authors",
         kLeaky, protocol_name(protocol));
  settings.set(kLeaky, protocol == Protocol::authors ? "true" : "false", "the protocol");
}

Selection part_of_fold(const Dataset& data, const Folds& folds, std::size_t fold, Part part,
                       Protocol protocol) {
  Selection selection = select_part(data, folds, fold, part);
  if (protocol == Protocol::authors && part == Part::test) {
    const auto val = folds.part_rows(fold, Part::val);
    selection.rows.insert(selection.rows.begin(), val.begin(), val.end());
  }
  return selection;
}

LearningRows learning_rows(const Dataset& data, const Folds& folds, std::size_t fold, Protocol protocol) {
  LearningRows rows{select_part(data, folds, fold, Part::train), select_part(data, folds, fold, Part::val)};
  const std::size_t all = rows.learn.rows.size() + rows.val.rows.size();
  drop_rows_without_view(rows.learn);
  drop_rows_without_view(rows.val);
  rows.without_view = all - rows.learn.rows.size() - rows.val.rows.size();
  if (protocol != Protocol::transductive) return rows;
  auto marks = std::make_shared<std::vector<std::uint8_t>>(data.rows);
  for (const Part part : {Part::val, Part::test}) {
    Selection more = select_part(data, folds, fold, part);
    drop_rows_without_view(more);
    for (const std::uint32_t row : more.rows) (*marks)[row] = 1;
    rows.learn.rows.insert(rows.learn.rows.end(), more.rows.begin(), more.rows.end());
    rows.unlabelled += more.rows.size();
  }
  rows.learn.unlabelled = std::move(marks);
  return rows;
}

LearningRows learning_rows(const Selection& all, double hold_out, std::uint64_t seed) {
  LearningRows rows{all, all};
  std::vector<std::uint32_t>&learn = rows.learn.rows, &val = rows.val.rows;
  drop_rows_without_view(rows.learn);
  rows.without_view = all.rows.size() - learn.size();
  Random(seed, Purpose::row_order).shuffle(learn);
  const auto judges = [&](std::size_t i) {  // nothing can be judged by a row of which no label is known
    for (std::size_t j = 0; j < all.data->label_count(); ++j)
      if (rows.learn.label(i, j) != kUnknown) return true;
    return false;
  };
  std::vector<std::uint8_t> able(learn.size());
  for (std::size_t i = 0; i < learn.size(); ++i) able[i] = judges(i);
  const auto labelled = static_cast<std::size_t>(std::ranges::count(able, 1));
  std::size_t held = 0;
  if (hold_out > 0 && labelled > 1) {
    const auto wanted = static_cast<std::size_t>(std::floor(hold_out * static_cast<double>(labelled)));
    held = std::clamp<std::size_t>(wanted, 1, labelled - 1);
  }
  // The last of the shuffled rows that can judge.
  val.clear();
  std::vector<std::uint32_t> rest;
  for (std::size_t i = learn.size(); i-- > 0;)
    (able[i] != 0 && val.size() < held ? val : rest).push_back(learn[i]);
  std::ranges::reverse(val);
  std::ranges::reverse(rest);
  learn = std::move(rest);
  return rows;
}

void drop_rows_without_view(Selection& selection) {
  const std::size_t views = selection.data->views.size();
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < selection.rows.size(); ++i)
    for (std::size_t v = 0; v < views; ++v)
      if (selection.has(i, v)) {
        kept.push_back(selection.rows[i]);
        break;
      }
  selection.rows = std::move(kept);
}

Matrix<std::int8_t> true_labels(Selection selection) {
  selection.hide_labels = false;
  selection.unlabelled = nullptr;
  Matrix<std::int8_t> truth(selection.rows.size(), selection.data->label_count());
  for (std::size_t i = 0; i < truth.rows(); ++i)
    for (std::size_t j = 0; j < truth.cols(); ++j) truth(i, j) = selection.label(i, j);
  return truth;
}

}  // namespace lacuna
