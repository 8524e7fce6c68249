// The contents of a data set and its likely problems, as shown by `lacuna data inspect`.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

// Figures are over present instances and finite values; the zeros of a sparse view count as values.
struct ViewReport {
  std::string name, type;  // type: element type in the file
  std::size_t columns = 0;
  bool sparse = false;
  double missing = 0;                       // share of the rows without this view
  double density = 0;                       // share of values that are not 0
  double min = 0, median = 0, max = 0;      // the median of a sample of the rows; NaN where there is no value
  double mean = 0, deviation = 0;           // of all values together
  std::uint64_t constant_columns = 0;       // columns that never vary
  std::uint64_t zero_rows = 0;              // present instances that are all zero
  std::uint64_t non_finite = 0;             // NaN and infinities
  std::size_t bad_row = 0, bad_column = 0;  // the first of them
  std::string prepare, reason;              // the choice of --prepare auto, and why; empty if not finite
};

struct LabelCount {
  std::string name;
  std::uint64_t positives = 0, known = 0;
};

struct Report {
  std::string name, source, licence;
  std::size_t rows = 0;
  bool ids = false;
  std::vector<ViewReport> views;
  std::vector<std::uint64_t> rows_with_views;   // [k]: rows that have exactly k views; 0..m
  std::vector<LabelCount> labels;               // in the order of the data
  double cardinality = 0;                       // known positives per row
  double unknown = 0;                           // share of unknown label cells
  std::uint64_t rows_without_positive = 0;      // rows with no known positive
  std::uint64_t duplicates = 0;                 // rows that repeat an earlier row in every view
  std::size_t duplicate_of = 0, duplicate = 0;  // the first such pair
  std::vector<std::pair<std::string, std::string>> misspelt;  // ids that may be one: (likely right, likely wrong)
  std::vector<std::string> advice;              // likely problems, in plain words
};

Report inspect(const Dataset& data);

}  // namespace lacuna
