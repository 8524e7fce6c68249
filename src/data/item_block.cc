#include "data/item_block.h"

#include <algorithm>

namespace lacuna {

ItemBlock::ItemBlock(std::vector<ViewShape> views, std::size_t capacity, std::vector<std::string> labels)
    : views_(std::move(views)),
      present_(capacity, views_.size()),
      ids_(capacity),
      numbers_(capacity),
      labels_(std::move(labels)),
      known_(capacity, labels_.size()) {
  for (const auto& view : views_) features_.emplace_back(capacity, view.columns);
  for (std::size_t j = 0; j < labels_.size(); ++j) label_places_.emplace(labels_[j], j);
  std::ranges::fill(known_.values(), kUnknown);
}

std::size_t ItemBlock::label_index(std::string_view name) const {
  const auto at = label_places_.find(name);
  return at == label_places_.end() ? labels_.size() : at->second;
}

std::size_t ItemBlock::rows_for(const std::vector<ViewShape>& views, std::size_t bytes) {
  std::size_t columns = 1;
  for (const auto& view : views) columns += view.columns;
  return std::max<std::size_t>(1, bytes / sizeof(float) / columns);
}

std::size_t ItemBlock::view_index(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::find(views_, name, &ViewShape::name) - views_.begin());
}

void ItemBlock::clear_row(std::size_t i) {
  ids_[i].clear();
  std::ranges::fill(present_.row(i), std::uint8_t{0});
  std::ranges::fill(known_.row(i), kUnknown);
}

std::span<float> ItemBlock::put_view(std::size_t i, std::size_t v) {
  present_(i, v) = 1;
  return features_[v].row(i);
}

bool ItemBlock::has_any(std::size_t i) const {
  return std::ranges::find(present_.row(i), std::uint8_t{1}) != present_.row(i).end();
}

Dataset ItemBlock::dataset(std::size_t rows, const std::string& name) const {
  Dataset data;
  data.name = name;
  data.rows = rows;
  for (std::size_t v = 0; v < views_.size(); ++v) {
    View view;
    view.name = views_[v].name;
    view.features = Table<float>(nullptr, features_[v].view().top(rows));
    view.column_names = views_[v].column_names;
    data.views.push_back(std::move(view));
  }
  data.present = Table<std::uint8_t>(nullptr, present_.view().top(rows));
  return data;
}

}  // namespace lacuna
