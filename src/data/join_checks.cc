// Likely mistakes when tables are joined without a description of how they belong together.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/ids.h"
#include "data/join.h"
#include "data/leaks.h"

namespace lacuna {
namespace {

using Names = std::vector<std::string>;
using Set = std::unordered_set<std::string_view>;

// "'a', 'b', 'c', ...".
std::string first_few(const Names& names) {
  Names shown;
  for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 3); ++i)
    shown.push_back("'" + names[i] + "'");
  if (names.size() > 3) shown.emplace_back("...");
  return join(shown, ", ");
}

std::size_t common_with(const Set& ids, const Names& names) {
  return static_cast<std::size_t>(
      std::ranges::count_if(names, [&](const std::string& name) { return ids.contains(name); }));
}

std::string column_text(const std::string& name) {
  return name.empty() ? "(unnamed first column)" : "'" + name + "'";
}

}  // namespace

bool Join::id_column_found() const {
  return std::ranges::any_of(parts_, [](const Part& part) { return part.named_by_user; });
}

std::vector<Join::NumberColumn> Join::number_columns(const FlatTable& table) {
  constexpr std::size_t kMost = 8, kFewest = 3;
  std::vector<NumberColumn> found;
  const auto* values = std::get_if<Table<float>>(&table.values);
  if (values == nullptr || table.value_names.size() != values->cols() || values->rows() < kFewest)
    return found;
  std::unordered_set<std::int64_t> seen;
  for (std::size_t j = 0; j < values->cols() && found.size() < kMost; ++j) {
    constexpr float kLargest = 16777216;  // float32 holds whole numbers up to here
    seen.clear();
    std::size_t i = 0;
    for (; i < values->rows(); ++i) {
      const float x = (*values)(i, j);
      if (!(std::abs(x) <= kLargest) || x != std::floor(x) ||
          !seen.insert(static_cast<std::int64_t>(x)).second)
        break;
    }
    if (i < values->rows()) continue;
    found.push_back({table.value_names[j], {}});
    for (i = 0; i < values->rows(); ++i)
      found.back().values.push_back(std::to_string(static_cast<std::int64_t>((*values)(i, j))));
  }
  return found;
}

// A dataset.toml says what belongs together, but perhaps not by which column.
void Join::check_named() {
  if (parts_.size() < 2 || !std::ranges::all_of(parts_, [](const Part& part) { return part.has_ids; }))
    return;
  check_row_numbers();
  for (std::size_t k = 0; k < parts_.size(); ++k) check_common(k);
}

// What the tables of a folder have in common is all there is to go by.
void Join::check_ids() {
  if (!list_name_.empty()) check_list_name();
  if (parts_.size() == 1) {
    tell_overlap();
    return;
  }
  check_hidden_ids();
  std::vector<const Part*> with, without;
  for (const Part& part : parts_) (part.has_ids ? with : without).push_back(&part);
  if (with.empty()) {
    data_.notes.push_back("no table has a column of ids (id, sample, ...): rows are joined by position");
    return;
  }
  if (!without.empty())
    fail(Exit::data,
         "{}: {} has a column of ids ({}) and {} has none ({} of {} tables have one), so that rows cannot be "
         "joined; call the column 'id' in every table, or name it with --id-column",
         where_, file_name(with[0]->file), column_text(with[0]->id_name), file_name(without[0]->file),
         with.size(), parts_.size());
  check_upright();
  check_row_numbers();
  check_meanings();
  for (std::size_t k = 0; k < parts_.size(); ++k) check_common(k);
  tell_overlap();
}

// Row numbers say which row it was in its own table, and nothing about the others.
void Join::check_row_numbers() {
  const auto numbered = [](const Part& part) { return part.row_numbers && !part.named_by_user; };
  const auto first = std::ranges::find_if(parts_, numbered);
  if (first == parts_.end()) return;
  const auto other = std::ranges::find_if(
      parts_, [&](const Part& part) { return !numbered(part) || part.rows != first->rows; });
  if (other == parts_.end()) {
    for (Part& part : parts_) part.ids = first->ids;  // one counts from 0, another from 1
    return;
  }
  fail(Exit::data,
       "{}: {} {} only numbers its {} rows, as pandas and R do, and {} has {} rows{}: row numbers do not tell "
       "which rows belong together; write a column of ids into every table, or, if these numbers are ids, use "
       "--id-column '{}'",
       where_, file_name(first->file), column_text(first->id_name), first->rows, file_name(other->file),
       other->rows, numbered(*other) ? "" : fmt::format(" with ids ({})", column_text(other->id_name)),
       first->id_name.empty() ? "0" : first->id_name);
}

// Ids under an unknown header would become features, and the rows would be joined by something else.
void Join::check_hidden_ids() {
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    if (part.turned) continue;
    const bool has_own = part.has_ids && (!part.row_numbers || part.named_by_user);
    const Set ids = ids_besides(k);
    if (has_own && 2 * common_with(ids, part.ids) >= std::min(ids.size(), part.ids.size())) continue;
    for (const NumberColumn& column : part.numbers) {
      const auto refuse = [&](std::size_t common, const std::string& of) {
        fail(Exit::data,
             "{}: the column '{}' looks like ids: its {} values are different whole numbers, and {} of them "
             "are {}; use --id-column '{}', or leave it out with --ignore-columns '{}'",
             part.file, column.name, column.values.size(), common, of, column.name, column.name);
      };
      for (std::size_t i = 0; i < parts_.size(); ++i) {
        if (i == k) continue;
        const Part& other = parts_[i];
        const auto half = [&](std::size_t n) { return std::min(n, column.values.size()); };
        if (other.has_ids && !(other.row_numbers && !other.named_by_user))
          if (const std::size_t common = common_with({other.ids.begin(), other.ids.end()}, column.values);
              common > 0 && 2 * common >= half(other.ids.size()))
            refuse(common, fmt::format("ids of {}", file_name(other.file)));
        for (const NumberColumn& theirs : other.numbers)
          if (!has_own && theirs.name == column.name)
            if (const std::size_t common =
                    common_with({theirs.values.begin(), theirs.values.end()}, column.values);
                common > 0 && 2 * common >= half(theirs.values.size()))
              refuse(common, fmt::format("in the column of that name of {}", file_name(other.file)));
      }
    }
  }
}

void Join::check_meanings() const {
  const Part* first = nullptr;  // whose header says what its rows are
  for (const Part& part : parts_) {
    const std::string meaning = part.named_by_user ? "" : meaning_of_id(part.id_name);
    if (meaning.empty()) continue;
    if (first != nullptr && meaning != meaning_of_id(first->id_name))
      fail(Exit::data,
           "{}: the ids of {} are called '{}' and those of {} '{}'; if they are ids of the same things, use "
           "--id-column 0 (the first column of each table), or call them alike",
           where_, file_name(first->file), first->id_name, file_name(part.file), part.id_name);
    if (first == nullptr) first = &part;
  }
}

std::unordered_set<std::string_view> Join::ids_besides(std::size_t k) const {
  Set others;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (i != k) others.insert(parts_[i].ids.begin(), parts_[i].ids.end());
  return others;
}

// Genes as rows and samples as columns is how many tables of measurements lie.
void Join::check_upright() {
  const std::size_t views = data_.views.size();
  std::size_t lying = views;  // the first whose items are columns
  Names others_lie, others_stand;
  std::string counts;
  for (std::size_t k = 0; k < views; ++k) {
    const Set others = ids_besides(k);
    const View& view = data_.views[k];
    const std::size_t rows = common_with(others, parts_[k].ids),
                      columns = common_with(others, view.column_names);
    if (columns <= rows || columns * 2 < std::min(others.size(), view.columns())) {
      others_stand.push_back(file_name(parts_[k].file));
      continue;
    }
    others_lie.push_back(file_name(parts_[k].file));
    if (lying < views) continue;
    lying = k;
    counts = fmt::format("{} of its {} columns are ids of the other tables, {} of its {} rows", columns,
                         view.columns(), rows, parts_[k].rows);
  }
  if (lying == views) return;
  const Part& part = parts_[lying];
  if (part.turned)
    fail(Exit::data,
         "{}: --transpose transposes every view, but in this one the items are already rows ({} once "
         "transposed); transpose the others in their files, or describe each in a dataset.toml, with "
         "transpose = true where items are columns",
         part.file, counts);
  if (others_stand.empty())
    fail(Exit::data, "{}: the items are its columns, not its rows ({}); use --transpose", part.file, counts);
  fail(Exit::data,
       "{}: the items are its columns, not its rows ({}), while {} has items as rows, so --transpose, which "
       "transposes every view, does not help; transpose {}, or describe each table in a dataset.toml, with "
       "transpose = true for {}",
       part.file, counts, others_stand[0], join(others_lie, ", "), join(others_lie, ", "));
}

void Join::check_common(std::size_t k) {
  constexpr std::size_t kFew = 10;    // with this many ids, a single match suggests a mistake
  constexpr std::size_t kAsked = 20;  // ids that are compared with all others
  const Part& part = parts_[k];
  const Set others = ids_besides(k);
  const std::size_t common = common_with(others, part.ids),
                    smaller = std::min(others.size(), part.ids.size());
  if (common * 2 >= smaller && (common > 0 || smaller == 0)) return;
  const Set own(part.ids.begin(), part.ids.end());
  Names theirs, alone, partners;  // alone: those of theirs that have no partner here either
  for (std::size_t i = 0; i < parts_.size(); ++i)
    if (i != k) theirs.insert(theirs.end(), parts_[i].ids.begin(), parts_[i].ids.end());
  std::ranges::copy_if(theirs, std::back_inserter(alone), [&](const auto& id) { return !own.contains(id); });
  std::size_t asked = 0;
  for (const auto& id : part.ids) {
    if (others.contains(id)) continue;
    if (++asked > kAsked) break;
    if (std::string partner = likely_partner(id, alone); !partner.empty())
      partners.push_back(std::move(partner));
    if (partners.size() == 3) break;
  }
  const bool wrong = common * kFew < smaller || common == 0;
  if (wary_ && wrong &&
      (!data_.labels.empty() || smaller >= kFew))  // a few new items may well have one view each
    fail(Exit::data,
         "{}: {} of its {} ids occur in the other tables ({} ids): it has {}, they have {}{}; the tables do "
         "not belong together, or their ids are written differently (a dataset.toml joins them as they are)",
         part.file, common == 0 ? "none" : fmt::format("only {}", common), part.ids.size(), others.size(),
         first_few(part.ids), first_few(theirs), partners.empty() ? "" : partners[0]);
  if (parts_.size() == 2 && k == 0) return;  // the other one says it
  data_.notes.push_back(fmt::format(
      "warning: {} of the {} ids of {} occur in no other table ({} ids){}; are ids written in two ways?",
      part.ids.size() - common, part.ids.size(), file_name(part.file), others.size(), join(partners, "")));
}

// A column of classes or tags that is also a feature tells the answer.
void Join::check_list_name() const {
  const std::string list = folded(list_name_);
  for (std::size_t v = 0; v < data_.views.size(); ++v) {
    const Names& columns = data_.views[v].column_names;
    const auto at = std::ranges::find_if(columns, [&](const auto& name) { return folded(name) == list; });
    if (at != columns.end())
      fail(Exit::data,
           "{}: its column '{}' contains the labels, by its name, and would be a feature; leave it out with "
           "--ignore-columns '{}:{}'",
           parts_[v].file, *at, parts_[v].name, *at);
  }
}

void Join::tell_overlap() {
  Names tables;
  bool numbers = false;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    const Part& part = parts_[k];
    if (!part.has_ids) return;
    numbers = numbers || (part.row_numbers && !part.named_by_user);
    tables.push_back(fmt::format("{} {}", file_name(part.file), column_text(part.id_name)));
    if (parts_.size() > 1)
      tables.back() += fmt::format(" {} of {}", common_with(ids_besides(k), part.ids), part.ids.size());
  }
  if (parts_.size() == 1)
    data_.notes.push_back(fmt::format("ids are in {}", tables[0]));
  else if (numbers)
    data_.notes.push_back(
        fmt::format("warning: no table has ids, only row numbers ({}): rows are joined by position",
                    join(tables, ", ")));
  else
    data_.notes.push_back(
        fmt::format("rows are joined by id: {} ids occur in other tables", join(tables, ", ")));
}

void Join::tell_misspelt() {
  constexpr std::size_t kMost = 1000, kShown = 3;
  const auto pairs = misspelt_ids(data_, kMost);
  if (pairs.empty()) return;
  Names shown;
  for (std::size_t k = 0; k < std::min(kShown, pairs.size()); ++k)
    shown.push_back(fmt::format("'{}' and '{}'", data_.ids[pairs[k].b], data_.ids[pairs[k].a]));
  if (pairs.size() > kShown) shown.emplace_back("...");
  data_.notes.push_back(
      fmt::format("warning: {} of ids may be one item spelt in two ways, which separates its views from its "
                  "labels: {} (lacuna data inspect shows more)",
                  pairs.size() == 1 ? "1 pair" : fmt::format("{} pairs", pairs.size()), join(shown, ", ")));
}

}  // namespace lacuna
