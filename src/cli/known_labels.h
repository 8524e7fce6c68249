// Known labels of the items of a data set, which inform the predictions of the others.
#pragma once

#include <string>
#include <vector>

#include "data/items.h"
#include "methods/model.h"

namespace lacuna::cli {

class KnownLabels {
 public:
  // Labels are matched by name. Exit::mismatch if the data has none that the model knows; labels that the model does
  // not know are ignored, with a note. The selection must outlive this.
  KnownLabels(const Selection& selection, const Model& model, const std::string& path);

  const std::vector<std::string>& notes() const { return notes_; }
  // Of `count` items from `begin` on, in the model's order: (count, labels) 1, 0, kUnknown.
  Matrix<std::int8_t> rows(std::size_t begin, std::size_t count) const;

 private:
  const Selection& selection_;
  std::vector<std::size_t>
      column_;  // of each label of the model in the data; labels of the data: it has none
  std::vector<std::string> notes_;
};

// Exit::mismatch unless the model has learned how known labels inform others; a note if they did not help beyond noise.
std::vector<std::string> check_label_links(const Model& model, const std::string& path);

}  // namespace lacuna::cli
