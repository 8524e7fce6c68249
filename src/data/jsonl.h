// One item as a line of JSON:
//   {"id": "a", "views": {"rna": [0.1, 2, ...], "img": null, "text": {"indices": [3, 17], "values":
//   [1, 2.5]}}}
// A view left out or null is missing. `id` is a text or a whole number, or absent. Where the block asks for labels, an item
// may tell what is known of them: "labels": {"beach": 1, "city": 0, "sun": null}, true and false as well, or the names of
// those that it has, "labels": ["beach"]. A label left out or null is unknown. Other keys are skipped.
//
// The line is not trusted. Error (Exit::data) for anything that is not exactly this: broken JSON, a key that
// comes twice, a view that the model does not know, another number of values, a number that float32 cannot
// hold, an index out of range or twice, values nested more than 64 deep. Nothing is allocated but the id;
// time is proportional to the line.
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

// The number that begins at `at`, as JSON writes numbers, correctly rounded; `at` moves behind it. Null if
// there is none, or one that float32 cannot hold (larger than its largest).
const char* parse_json_number(const char* at, const char* end, float& value);

// A JSON text of any string: quoted, escaped, UTF-8.
void append_json(std::string& out, std::string_view text);

}  // namespace lacuna
