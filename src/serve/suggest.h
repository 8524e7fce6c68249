// /v1/suggest: takes an item as a JSON line (data/jsonl.h), returns its tags in order. /v1/suggest-batch: many lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/item_block.h"
#include "serve/limits.h"
#include "serve/message.h"
#include "serve/queue.h"

namespace lacuna::serve {

struct SuggestSettings {
  std::string model;     // empty: the only one
  std::size_t top = 5;   // tags of an item; 0 = all
  bool explain = false;  // with what each view adds to a tag
};
SuggestSettings read_settings(std::string_view query);  // "model=photos&top=5&explain=true"; refuses others

struct Suggestions {
  SuggestSettings settings;
  bool many = false;
  std::unique_ptr<ItemBlock> block;
  Rows rows;  // of the items that could be read and have a view
  struct Line {
    std::string id, error;
    std::size_t row = 0;  // in the block
    bool number = false;  // the id was one, and is one in the answer
    bool bare = false;    // an item without views
  };
  std::vector<Line> lines;
};

Suggestions read_items(std::string_view body, bool many, const ServedModel& model,
                       const SuggestSettings& settings, const Limits& limits);
Reply write_suggestions(const Suggestions& items, const ServedModel& model, const Outcome& outcome);

std::string percent_decoded(std::string_view text);  // refuses (400) what is no escape

}  // namespace lacuna::serve
