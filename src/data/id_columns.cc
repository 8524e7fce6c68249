#include "data/id_columns.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/ids.h"

namespace lacuna {
namespace {

struct Facts {
  bool whole = true, text = false, blank = false;
  std::size_t different = 0;
};

Facts facts_of(const std::vector<std::string>& values) {
  Facts facts;
  std::unordered_set<std::string_view> seen;
  float ignored = 0;
  for (const auto& value : values) {
    const auto cell = trim(value);
    seen.insert(cell);
    facts.blank = facts.blank || cell.empty();
    const bool whole = parse_int(cell).has_value();
    facts.whole = facts.whole && whole;
    facts.text = facts.text || (!whole && !parse_double(cell) && !parse_cell(cell, ignored));
  }
  facts.different = seen.size();
  return facts;
}

std::string shown(const IdColumn& column) {
  if (!column.name.empty()) return fmt::format("'{}'", column.name);
  return column.column == 0 ? "its unnamed first column"
                            : fmt::format("its unnamed column {}", column.column);
}

std::string flag_of(const IdColumn& column) {
  return column.name.empty() ? std::to_string(column.column) : column.name;
}

}  // namespace

bool may_hold_ids(const std::string& header, std::size_t column) {
  return is_id_name(header) || (is_row_number_name(header) && (column == 0 || trim(header) != "X"));
}

IdChoice choose_ids(const std::vector<IdColumn>& columns, const std::string& where) {
  constexpr std::size_t kGroups = 10;  // a column with this many different numbers is not a code
  IdChoice choice;
  std::vector<std::size_t> counters, likely;
  for (std::size_t k = 0; k < columns.size(); ++k) {
    const IdColumn& column = columns[k];
    if (column.named_by_user) {
      choice.ids = k;
      continue;
    }
    if (is_row_number_name(column.name) && are_row_numbers(column.values)) {
      counters.push_back(k);
      continue;
    }
    if (!is_id_name(column.name)) continue;
    if (column.column == 0) {
      likely.push_back(k);
      continue;
    }
    const Facts facts = facts_of(column.values);
    const bool sure = is_sure_id_name(column.name),
               distinct = !facts.blank && facts.different == column.values.size();
    if (distinct && (facts.text || (sure && facts.whole))) {
      likely.push_back(k);
    } else if (sure && facts.whole && facts.different > kGroups) {
      choice.notes.push_back(fmt::format(
          "its column '{}' has a name for ids, but {} values in {} rows are not distinct: it is a feature; "
          "--ignore-columns '{}' leaves it out",
          column.name, facts.different, column.values.size(), column.name));
    }
  }
  const auto drop = [&](std::size_t k, const char* why) {
    choice.dropped.push_back(k);
    choice.notes.push_back(fmt::format("{} {} and is left out", shown(columns[k]), why));
  };
  // The index of a table that was cut, and ids that are written twice, are nothing to choose from.
  std::size_t best = choice.ids;
  for (const std::size_t k : likely)
    if (best == IdChoice::kNone || (!columns[best].named_by_user && is_row_number_name(columns[best].name)))
      best = k;
  for (const std::size_t k : likely) {
    if (k == best) continue;
    if (columns[k].values == columns[best].values) {
      drop(k, "repeats the ids");
    } else if (is_row_number_name(columns[k].name) && facts_of(columns[k].values).whole) {
      drop(k, "contains numbers of rows");
    } else if (columns[best].named_by_user) {
      fail(Exit::data,
           "{}: {} looks like ids as well as {}, and ids are not features; leave it out with --ignore-columns "
           "'{}'",
           where, shown(columns[k]), shown(columns[best]), flag_of(columns[k]));
    } else {
      fail(Exit::data,
           "{}: {} and {} could both hold the ids; say which with --id-column '{}' and leave the other out "
           "with --ignore-columns '{}' (or the other way round)",
           where, shown(columns[std::min(k, best)]), shown(columns[std::max(k, best)]),
           flag_of(columns[best]), flag_of(columns[k]));
    }
  }
  choice.ids = best;
  if (best == IdChoice::kNone && !counters.empty()) {
    choice.ids = counters[0];
    choice.row_numbers = true;
    counters.erase(counters.begin());
  }
  for (const std::size_t k : counters) drop(k, "only numbers the rows");
  return choice;
}

}  // namespace lacuna
