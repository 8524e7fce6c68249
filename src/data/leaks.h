// Finds labels among the features, from which a model would read the answer.
#pragma once

#include <string>
#include <string_view>

#include "data/dataset.h"

namespace lacuna {

// In small letters and without blanks around it: names that are equal so are the same to people.
std::string folded(std::string_view name);

// A column of two values (or one) that is called like a label, in any case, is that label: Exit::data with the columns
// where `refuse`, otherwise a note. A column of more values is noted. So are columns that have the values of a label,
// whatever they are called, and labels that differ in case only.
void check_leaks(Dataset& data, const std::string& where, bool refuse);

}  // namespace lacuna
