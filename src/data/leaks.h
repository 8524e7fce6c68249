// Finds labels among the features, from which a model would read the answer.
#pragma once

#include <string>
#include <string_view>

#include "data/dataset.h"

namespace lacuna {

// In lower case and without surrounding blanks: names that then are equal are the same to people.
std::string folded(std::string_view name);

// A column with at most two values that has the name of a label, in any case, is that label: Exit::data with the
// columns if `refuse`, otherwise a note. A column with more values is noted, and so are columns that have the values of
// a label, whatever they are called, and labels that differ in case only.
void check_leaks(Dataset& data, const std::string& where, bool refuse);

}  // namespace lacuna
