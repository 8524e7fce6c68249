// Which column of a table contains the ids of its rows. Header and values decide together, so that neither row numbers
// of pandas and R become ids, nor ids become features.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lacuna {

struct IdColumn {  // one that may hold ids
  std::size_t column = 0;
  std::string name;
  bool named_by_user = false;
  std::vector<std::string> values;  // one per row
};

struct IdChoice {
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::size_t ids = kNone;           // which of the columns holds them
  bool row_numbers = false;          // they are only the numbers of the rows
  std::vector<std::size_t> dropped;  // row numbers in addition to ids: neither ids nor features
  std::vector<std::string> notes;
};

// The first column contains ids if its header is customary; elsewhere the values must be distinct, and strings or
// (under an unambiguous header, see ids.h) whole numbers. Row numbers are ids only if there are no others. Exit::data
// if two columns qualify.
IdChoice choose_ids(const std::vector<IdColumn>& columns, const std::string& where);

// Whether any header needs a closer look at its column.
bool may_hold_ids(const std::string& header, std::size_t column);

}  // namespace lacuna
