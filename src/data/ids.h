// Ids of rows as people write them: which header names a column of ids, and which two ids are likely the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

// A usual header of a column of ids: id, sample, Sample_ID, patient, barcode, Unnamed: 0, nothing at all, ...
bool is_id_name(const std::string& header);
// What the header says the rows are, in small letters ("sample" of Sample_ID and samples); "" where it says
// nothing (id, Unnamed: 0, an empty cell).
std::string meaning_of_id(const std::string& header);

// Pairs of rows whose ids differ by case, blanks, punctuation, one letter or two transposed letters, and which
// have no view in common, nor labels: likely one item with a misspelt id. At most `most` of them.
struct Misspelt {
  std::size_t a, b;  // rows; a has more
};
std::vector<Misspelt> misspelt_ids(const Dataset& data, std::size_t most);

}  // namespace lacuna
