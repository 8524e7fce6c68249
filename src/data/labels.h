// Converts labels as written in files to our three values (1, 0, unknown).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace lacuna {

struct ReadOptions;

// `code` is ReadOptions::label_code. auto accepts 0/1 and -1/1, each with NaN = unknown; ambiguous numbers (-1, 0 and 1
// together) are refused, naming the choices. `columns`: their names in a table.
Matrix<std::int8_t> decode_labels(MatrixView<const float> values, const std::string& code,
                                  const std::string& where, const std::vector<std::string>& columns = {});
// One class number or name per row becomes one column per class, in the order of the numbers (names: in the order of
// their first occurrence).
void one_hot_labels(const std::vector<std::string>& classes, Dataset& data);

// One list of tags per row becomes one column per tag, in the order of their first occurrence. A list is `sun; beach`,
// `sun|beach`, `sun, beach`, or in brackets with quotes, as in Python and JSON; all lists of a column have the same
// form, which a note names. A tag that is not listed is a no, and a row with a blank list is unknown. With blanks "no"
// such a row has no tags; with "unknown" only listed tags are known.
void tag_labels(const std::vector<std::string>& lists, const std::string& column, const std::string& blanks,
                Dataset& data);
// The separator of a column of lists: the first of ; | and , that any cell contains, '[' if all cells are in brackets,
// 0 if there is none.
char tag_separator(const std::vector<std::string>& lists);
std::vector<std::string> split_tags(std::string_view list, char separator);

// Names from a file with one per line (a words file). Exit::data unless there are `count` of them.
std::vector<std::string> read_words(const std::string& path, std::size_t count);
// Where names are made up: takes those of options.label_file, or of STEM_words.txt beside `path` (STEM: the
// file's name without its ending, or the name of the data set with _six_view and the like cut), and notes
// where they came from.
void find_label_names(const std::string& path, const ReadOptions& options, Dataset& data);

}  // namespace lacuna
