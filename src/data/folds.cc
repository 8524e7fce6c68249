#include "data/folds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "data/mechanism.h"
#include "data/stratify.h"

namespace lacuna {
namespace {

constexpr std::array<const char*, 4> kPartNames = {"train", "val", "test", "all"};

// Shares are decimal fractions that binary numbers miss by a hair: .29 of 100 is 29, .55 of 100 is 55.
constexpr double kHair = 1e-9;
std::size_t share_down(double share, std::size_t n) {
  return static_cast<std::size_t>(std::floor(share * static_cast<double>(n) + kHair));
}
std::size_t share_up(double share, std::size_t n) {
  return static_cast<std::size_t>(std::ceil(share * static_cast<double>(n) - kHair));
}

using Rows = std::vector<std::uint32_t>;

// Moves a uniformly drawn subset of `count` rows to the front.
void draw_front(Rows& rows, std::size_t count, Random& random) {
  for (std::size_t i = 0; i < count; ++i) std::swap(rows[i], rows[i + random.below(rows.size() - i)]);
}

// Hides instances inside one group of rows: every view loses exactly its share there, nobody loses every
// view.
class ViewGaps {
 public:
  // strength: of draws that depend on values (data/mechanism.h); none = all instances are alike.
  ViewGaps(const Dataset& data, const Rows& rows, double rate, std::optional<double> strength,
           Matrix<std::uint8_t>& W)
      : data_(data), rows_(rows), rate_(rate), strength_(strength), W_(W), left_(data.rows, 0) {}

  void draw(std::vector<Random>& per_view, Random& mending) {
    for (std::size_t v = 0; v < data_.views.size(); ++v) {
      Rows holders;
      for (const auto i : rows_)
        if (data_.has(i, v)) holders.push_back(i);
      const std::size_t lost = share_down(rate_, holders.size());
      if (strength_) {
        draw_by_value(data_, v, *strength_, holders, per_view[v]);
      } else {
        draw_front(holders, lost, per_view[v]);
      }
      for (std::size_t k = lost; k < holders.size(); ++k) give(holders[k], v);
    }
    Rows bare;  // had a view, lost all
    for (const auto i : rows_)
      if (left_[i] == 0 && owns_any(i)) bare.push_back(i);
    mending.shuffle(bare);
    for (const auto i : bare) mend(i, mending);
  }

 private:
  void give(std::uint32_t i, std::size_t v) {
    W_(i, v) = 1;
    ++left_[i];
  }
  void take(std::uint32_t i, std::size_t v) {
    W_(i, v) = 0;
    --left_[i];
  }
  bool owns_any(std::uint32_t i) const {
    for (std::size_t v = 0; v < data_.views.size(); ++v)
      if (data_.has(i, v)) return true;
    return false;
  }

  // A uniformly drawn row that holds view v and another one, or no row.
  std::int64_t spare_holder(std::size_t v, Random& random) const {
    const auto spare = [&](std::uint32_t j) { return W_(j, v) != 0 && left_[j] >= 2; };
    for (int tries = 0; tries < 64; ++tries)  // quick while such rows are common
      if (const auto j = rows_[random.below(rows_.size())]; spare(j)) return j;
    Rows all;
    std::copy_if(rows_.begin(), rows_.end(), std::back_inserter(all), spare);
    return all.empty() ? -1 : static_cast<std::int64_t>(all[random.below(all.size())]);
  }

  // Gives row i one of its views and takes that view from a row that can spare it, so that the view's count
  // stays. If no holder of i's views can spare one, holders are moved to other views of theirs along a chain
  // (a shortest augmenting path over the views).
  void mend(std::uint32_t i, Random& random) {
    const std::size_t m = data_.views.size();
    struct Step {
      std::size_t from = 0;   // the view before this one in the chain; m = row i itself
      std::uint32_t row = 0;  // the row that gives up `from` and takes this view
      bool reached = false;
    };
    std::vector<Step> steps(m);
    std::vector<std::size_t> queue;
    for (const auto v : random.permutation(m))
      if (data_.has(i, v)) {
        steps[v] = {m, i, true};
        queue.push_back(v);
      }
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::size_t view = queue[at];
      if (const auto spare = spare_holder(view, random); spare >= 0) {
        take(static_cast<std::uint32_t>(spare), view);
        for (std::size_t v = view; v != m; v = steps[v].from) {
          give(steps[v].row, v);
          if (steps[v].from != m) take(steps[v].row, steps[v].from);
        }
        return;
      }
      for (const auto j : rows_)
        for (std::size_t u = 0; W_(j, view) != 0 && u < m; ++u)
          if (!steps[u].reached && data_.has(j, u)) {
            steps[u] = {view, j, true};
            queue.push_back(u);
          }
    }
    refuse(queue);
  }

  // The views of the chain are all held by rows that have nothing else, so there are too few instances for
  // these rows.
  [[noreturn]] void refuse(const std::vector<std::size_t>& views) const {
    std::size_t instances = 0, kept = 0, bound = 0;
    std::vector<std::string> names;
    for (const auto v : views) {
      names.push_back("'" + data_.views[v].name + "'");
      std::size_t existing = 0;
      for (const auto i : rows_) existing += data_.has(i, v);
      instances += existing;
      kept += existing - share_down(rate_, existing);
    }
    for (const auto i : rows_) {
      bool inside = owns_any(i);
      for (std::size_t v = 0; v < data_.views.size(); ++v)
        inside = inside && (!data_.has(i, v) || std::find(views.begin(), views.end(), v) != views.end());
      bound += inside;
    }
    const double possible =
        std::floor((1 - static_cast<double>(bound) / static_cast<double>(instances)) * 1e4 + kHair) / 1e4;
    fail(Exit::usage,
         "a share of missing views of {} (--missing-views) is too much: {} rows have {}, of which {} of {} "
         "instances would be "
         "left, so some row would lose every view; at most {} is possible",
         rate_, bound,
         names.size() == 1 ? "no view but " + names[0] : "views only among " + join(names, ", "), kept,
         instances, possible);
  }

  const Dataset& data_;
  const Rows& rows_;
  double rate_;
  std::optional<double> strength_;
  Matrix<std::uint8_t>& W_;
  std::vector<std::uint32_t> left_;  // views that a row still has
};

// Hides labels inside one group of rows: per label a share of the known positives and of the known negatives.
void draw_label_gaps(const Dataset& data, const Rows& rows, double rate, std::size_t label, Random& random,
                     Matrix<std::uint8_t>& G) {
  for (const std::int8_t value : {std::int8_t{1}, std::int8_t{0}}) {
    Rows cells;
    for (const auto i : rows)
      if (data.labels(i, label) == value) cells.push_back(i);
    const std::size_t lost = share_down(rate, cells.size());
    draw_front(cells, lost, random);
    for (std::size_t k = lost; k < cells.size(); ++k) G(cells[k], label) = 1;
  }
}

}  // namespace

Part part_from_name(const std::string& name) {
  const std::vector<std::string> names(kPartNames.begin(), kPartNames.end());
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end())
    fail(Exit::usage, "there is no part '{}'{} (there are {})", name, did_you_mean(name, names),
         join(names, ", "));
  return static_cast<Part>(at - names.begin());
}

const char* part_name(Part part) {
  return kPartNames[static_cast<std::size_t>(part)];
}

std::size_t Folds::train_rows() const {
  return std::min(rows, share_up(train_share, rows));
}
std::size_t Folds::val_rows() const {
  return std::min(rows - train_rows(), share_up(val_share, rows));
}

std::vector<std::uint32_t> Folds::part_rows(std::size_t fold, Part part) const {
  const auto& order = folds.at(fold).order;
  const std::size_t train = train_rows(), val = val_rows();
  std::size_t begin = 0, end = rows;
  switch (part) {
    case Part::train:
      end = train;
      break;
    case Part::val:
      begin = train, end = train + val;
      break;
    case Part::test:
      begin = train + val;
      break;
    case Part::all:
      break;
  }
  return {order.begin() + static_cast<std::ptrdiff_t>(begin),
          order.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::string Folds::hash() const {
  Sha256 hash;
  hash.add(fmt::format("folds 1: {} rows, {} views, {} labels, train {}, val {}, {} folds;", rows, views,
                       labels, train_rows(), val_rows(), folds.size()));
  for (const auto& fold : folds) {
    hash.add(std::as_bytes(fold.W.values()));
    hash.add(std::as_bytes(fold.G.values()));
    hash.add(std::as_bytes(std::span(fold.order)));
  }
  return hash.hex();
}

void MaskOptions::declare(Options& options) {
  const auto group = options.group("gaps and splits");
  options.add("missing-views", missing_views, "share of every view's instances to hide")
      .range(0, 1)
      .symbol("ρ_v")
      .common();
  options.add("missing-labels", missing_labels, "share of every label's positives and negatives to hide")
      .range(0, 1)
      .symbol("ρ_l")
      .common();
  options.add("train", train, "share of the rows for training").range(0, 1);
  options.add("val", val, "share of the rows for validation; the rest are test rows").range(0, 1);
  options.add("repeats", repeats, "number of repetitions").range(1, 100000).common();
  options.add("seed", seed, "seed of all draws").common();
  options.add("stratify", stratify,
              "distribute the positives of every label over training, validation and test rows by their "
              "shares");
  options.add("scope", scope, "view rates are exact over all rows, or within each part")
      .choices({"all", "part"});
  options
      .add(
          "test-views", test_views,
          "views of validation and test rows: with gaps like the training rows, or complete (the protocol of "
          "NAIM3L)")
      .choices({"gaps", "complete"});
  options
      .add("mechanism", mechanism,
           "how instances become missing: completely at random, not at random (depending on their values), or "
           "by pattern")
      .choices({"mcar", "mnar", "pattern"});
  options
      .add("strength", strength,
           "mnar: the odds of being hidden grow by exp(strength) per standard deviation along a random "
           "direction of the view")
      .range(0, 20);
  options
      .add("patterns", patterns,
           "pattern: groups of items by the views they keep, with their shares, such as "
           "rna+image=.5,rna=.3,image=.2")
      .metavar("VIEW+VIEW=SHARE,...");
}

Folds make_folds(const Dataset& data, const MaskOptions& options) {
  if (data.views.empty()) fail(Exit::data, "{} has no views to hide", data.name);
  if (data.labels.empty()) fail(Exit::data, "{} has no labels to hide", data.name);
  if (options.train + options.val > 1 + kHair)
    fail(Exit::usage, "train {} and validation {} are more than all rows together", options.train,
         options.val);
  Folds folds;
  folds.rows = data.rows;
  folds.views = data.views.size();
  folds.labels = data.label_count();
  folds.ids = data.ids;
  folds.train_share = options.train;
  folds.val_share = options.val;
  if (folds.train_rows() == 0)
    fail(Exit::usage, "a training share of {} leaves none of the {} rows for training", options.train,
         data.rows);

  const auto patterns =
      options.mechanism == "pattern" ? parse_patterns(options.patterns, data) : std::vector<Pattern>();
  const auto strength = options.mechanism == "mnar" ? std::optional(options.strength) : std::nullopt;

  for (std::uint32_t r = 0; r < static_cast<std::uint32_t>(options.repeats); ++r) {
    Fold& fold = folds.folds.emplace_back();
    fold.order = Random(options.seed, Purpose::row_order, r).permutation(data.rows);
    if (options.stratify) {
      const std::size_t train_rows = folds.train_rows(), val_rows = folds.val_rows();
      fold.order =
          stratified_order(data, {train_rows, val_rows, data.rows - train_rows - val_rows}, fold.order);
    }
    fold.W = Matrix<std::uint8_t>(data.rows, folds.views);
    fold.G = Matrix<std::uint8_t>(data.rows, folds.labels);
    const std::array<Rows, 3> parts = {folds.part_rows(r, Part::train), folds.part_rows(r, Part::val),
                                       folds.part_rows(r, Part::test)};

    std::vector<Random> per_view;
    for (std::uint32_t v = 0; v < folds.views; ++v)
      per_view.emplace_back(options.seed, Purpose::view_gaps, r, v);
    Random mending(options.seed, Purpose::view_gaps, r, static_cast<std::uint32_t>(folds.views));
    const auto hide = [&](const Rows& rows) {
      if (!patterns.empty()) return draw_patterns(data, patterns, rows, mending, fold.W);
      ViewGaps(data, rows, options.missing_views, strength, fold.W).draw(per_view, mending);
    };
    if (options.test_views == "complete") {
      hide(parts[0]);
      for (const auto* rows : {&parts[1], &parts[2]})
        ViewGaps(data, *rows, 0, std::nullopt, fold.W).draw(per_view, mending);
    } else if (options.scope == "part") {
      for (const auto& rows : parts) hide(rows);
    } else {
      Rows all(data.rows);
      std::iota(all.begin(), all.end(), 0u);
      hide(all);
    }
    for (std::uint32_t j = 0; j < folds.labels; ++j) {
      Random random(options.seed, Purpose::label_gaps, r, j);
      for (const auto& rows : parts) draw_label_gaps(data, rows, options.missing_labels, j, random, fold.G);
    }
  }
  return folds;
}

std::vector<std::string> check_fit(Folds& folds, const Dataset& data, const std::string& folds_path) {
  const auto check = [&](const char* what, std::size_t in_folds, std::size_t in_data) {
    if (in_folds != in_data)
      fail(Exit::mismatch, "{} was made for {} {}, {} has {}", folds_path, in_folds, what, data.name,
           in_data);
  };
  check("rows", folds.rows, data.rows);
  check("views", folds.views, data.views.size());
  check("labels", folds.labels, data.label_count());
  if (folds.ids.empty() || data.ids.empty())
    return {fmt::format(
        "its rows are taken in the order of {}, {} each; whether they are the same ones cannot be "
        "checked: {} no ids",
        data.name, data.rows,
        !folds.ids.empty() ? "the data has"
        : data.ids.empty() ? "both have"
                           : "the folds have")};
  if (folds.ids == data.ids) return {};
  std::unordered_map<std::string_view, std::uint32_t> at;  // positions in the data
  for (std::uint32_t i = 0; i < data.rows; ++i) at.emplace(data.ids[i], i);
  Rows place;  // of each row of the folds in the data
  std::vector<std::string> absent;
  for (const auto& id : folds.ids)
    if (const auto found = at.find(id); found != at.end())
      place.push_back(found->second);
    else
      absent.push_back(id);
  if (!absent.empty())
    fail(Exit::mismatch,
         "{} was made for other rows: {} of its {} ids, such as '{}', are not in {}; make folds for this "
         "data (lacuna "
         "data mask)",
         folds_path, absent.size(), folds.rows, absent[0], data.name);
  for (Fold& fold : folds.folds) {
    Fold moved{
        Matrix<std::uint8_t>(folds.rows, folds.views), Matrix<std::uint8_t>(folds.rows, folds.labels), {}};
    for (std::size_t i = 0; i < folds.rows; ++i) {
      std::ranges::copy(fold.W.row(i), moved.W.row(place[i]).begin());
      std::ranges::copy(fold.G.row(i), moved.G.row(place[i]).begin());
    }
    for (const auto i : fold.order) moved.order.push_back(place[i]);
    fold = std::move(moved);
  }
  folds.ids = data.ids;
  return {fmt::format("was made for the rows of {} in another order; they are matched by id", data.name)};
}

}  // namespace lacuna
