// Ids of rows as people write them: which headers name a column of ids, and which two ids are likely the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

// A customary header of a first column with ids: id, sample, Sample_ID, bcr_patient_barcode, an empty cell, ...
bool is_id_name(const std::string& header);
// One that names ids in any position, even if they are numbers: id, sample, patient_id, ID_REF, Proben-Nr.
bool is_sure_id_name(const std::string& header);
// One under which pandas and R write row numbers: an empty cell, Unnamed: 0, index, row, ...
bool is_row_number_name(const std::string& header);
// What the header says the rows are, in lower case ("sample" of Sample_ID and samples); "" where it says
// nothing (id, Unnamed: 0, an empty cell).
std::string meaning_of_id(const std::string& header);

// 0, 1, 2, ... or 1, 2, 3, ..., in this order: the numbers of the rows.
bool are_row_numbers(const std::vector<std::string>& ids);

// The likely partner of an unmatched id among `others`: " (is 'PTA_1' the same as 'PAT_1'?)", or that '1.0' and '1' are
// the same number; "" if none is near.
std::string likely_partner(const std::string& id, const std::vector<std::string>& others);

// Pairs of rows whose ids differ by case, blanks, punctuation, leading zeros, one letter or two transposed letters, and
// which have no view in common, nor labels: likely one item with a misspelt id. At most `most` of them.
struct Misspelt {
  std::size_t a, b;  // rows; a has more
};
std::vector<Misspelt> misspelt_ids(const Dataset& data, std::size_t most);

}  // namespace lacuna
