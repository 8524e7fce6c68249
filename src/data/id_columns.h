// Which column of a table contains the ids of its rows. Headers and values decide together, so that row numbers
// written by pandas and R are not taken for ids, nor ids for features.
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
  bool row_numbers = false;          // they are the numbers of the rows, for want of anything better
  std::vector<std::size_t> dropped;  // row numbers beside ids: neither ids nor features
  std::vector<std::string> notes;
};

// The first column with a usual header holds ids; elsewhere the values must be distinct, and texts or (under a header
// that is sure, see ids.h) whole numbers. Row numbers are ids only if nothing else is. Exit::data where two columns
// could be meant.
IdChoice choose_ids(const std::vector<IdColumn>& columns, const std::string& where);

// Whether a column of any header has to be looked at at all.
bool may_hold_ids(const std::string& header, std::size_t column);

}  // namespace lacuna
