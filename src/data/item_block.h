// A block of items that arrive one by one (lines of a stream, requests to a server), filled row by row and then scored
// together. Rows are independent: several threads may fill different ones. A block is reused, and allocates memory for
// its largest number of rows once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/matrix.h"
#include "data/dataset.h"

namespace lacuna {

// A view that a model knows.
struct ViewShape {
  std::string name;
  std::size_t columns = 0;
  std::vector<std::string> column_names = {};  // empty, or one per column
  std::vector<float> fill =
      {};  // what stands for an empty cell, one per column; empty = such a cell is refused
};

class ItemBlock {
 public:
  // `labels`: names of the labels that items may state; empty if labels are not used.
  ItemBlock(std::vector<ViewShape> views, std::size_t capacity, std::vector<std::string> labels = {});
  ItemBlock(const ItemBlock&) = delete;
  ItemBlock& operator=(const ItemBlock&) = delete;
  // So many rows fit into a block of at most `bytes` (at least 1).
  static std::size_t rows_for(const std::vector<ViewShape>& views, std::size_t bytes);

  const std::vector<ViewShape>& views() const { return views_; }
  std::size_t capacity() const { return ids_.size(); }
  std::size_t view_index(std::string_view name) const;  // views().size() if there is none

  const std::vector<std::string>& labels() const { return labels_; }
  std::size_t label_index(std::string_view name) const;  // labels().size() if there is none

  void clear_row(std::size_t i);  // no id, no view, no known label
  // The values of a view that item i has, to be written by the caller. They are not zeroed.
  std::span<float> put_view(std::size_t i, std::size_t v);
  void drop_view(std::size_t i, std::size_t v) { present_(i, v) = 0; }
  bool has(std::size_t i, std::size_t v) const { return present_(i, v) != 0; }
  bool has_any(std::size_t i) const;
  std::span<const float> values(std::size_t i, std::size_t v) const { return features_[v].row(i); }
  // Its id; empty = it has none. An id that is a number in the input is a number in the answer.
  const std::string& id(std::size_t i) const { return ids_[i]; }
  bool id_is_number(std::size_t i) const { return numbers_[i] != 0; }
  void set_id(std::size_t i, std::string id, bool number = false) {
    ids_[i] = std::move(id);
    numbers_[i] = number;
  }

  // The labels that item i states: 1, 0 or kUnknown, one per label.
  std::span<const std::int8_t> known(std::size_t i) const { return known_.row(i); }
  void set_label(std::size_t i, std::size_t label, std::int8_t value) { known_(i, label) = value; }

  // The first `rows` rows as a data set without labels. It points into the block: use it before the next row
  // is written.
  Dataset dataset(std::size_t rows, const std::string& name) const;

 private:
  std::vector<ViewShape> views_;
  std::vector<Matrix<float>> features_;
  Matrix<std::uint8_t> present_;
  std::vector<std::string> ids_;
  std::vector<std::uint8_t> numbers_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string_view, std::size_t> label_places_;  // points into labels_
  Matrix<std::int8_t> known_;                                       // (capacity, labels)
};

}  // namespace lacuna
