// One item as a line of JSON:
//   {"id": "a", "views": {"rna": [0.1, 2, ...], "img": null, "text": {"indices": [3, 17], "values":
//   [1, 2.5]}}}
// A view that is omitted or null is missing. `id` is a string or a whole number, or absent. If the block uses labels,
// an item may state known ones: "labels": {"beach": 1, "city": 0, "sun": null} (or true and false), or the names of
// those that it has, "labels": ["beach"]. A label that is omitted or null is unknown. Other keys are skipped.
//
// The line is not trusted. Anything else is an error (Exit::data): malformed JSON, a duplicate key, an unknown
// view, a wrong number of values, a number beyond float32, an index out of range or given twice, nesting deeper
// than 64. Only the id is allocated; time is proportional to the length of the line.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "data/item_block.h"

namespace lacuna {

// A view with another number of values than the model expects.
struct WrongSize : Error {
  WrongSize(const std::string& name, std::size_t given, std::size_t wanted);
  std::string view;
  std::size_t columns, expected;
};

// Parses a line into row i of the block. On an error the row is cleared. Different rows may be filled by
// different threads at once.
void parse_item(std::string_view line, ItemBlock& block, std::size_t i);

// The JSON number that begins at `at`, correctly rounded; `at` moves behind it. Null if there is none, or if its
// magnitude is beyond float32.
const char* parse_json_number(const char* at, const char* end, float& value);

// A JSON text of any string: quoted, escaped, UTF-8.
void append_json(std::string& out, std::string_view text);

}  // namespace lacuna
