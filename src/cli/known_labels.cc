#include "cli/known_labels.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/counted.h"

namespace lacuna::cli {

KnownLabels::KnownLabels(const Selection& selection, const Model& model, const std::string& path)
    : selection_(selection) {
  constexpr std::size_t kNamed = 5;
  const auto& names = selection.data->label_names;
  if (selection.data->labels.empty())
    fail(Exit::mismatch,
         "{}: has no labels, so --known-labels has no effect; name their columns (--label-columns, "
         "--tags-column, --label-file; for .h5ad and .h5mu first use lacuna data convert {} NEW --labels "
         "COLUMN)",
         path, path);
  for (const auto& label : model.label_names())
    column_.push_back(static_cast<std::size_t>(std::ranges::find(names, label) - names.begin()));
  std::vector<std::string> unknown;
  for (const auto& name : names)
    if (std::ranges::find(model.label_names(), name) == model.label_names().end()) unknown.push_back(name);
  if (unknown.size() == names.size())
    fail(Exit::mismatch, "{}: none of its {} labels is one of the model's {} ('{}' is not{})", path,
         names.size(), model.label_names().size(), unknown.front(),
         did_you_mean(unknown.front(), model.label_names()));
  if (unknown.empty()) return;
  std::vector<std::string> shown;
  for (std::size_t k = 0; k < std::min(unknown.size(), kNamed); ++k)
    shown.push_back(fmt::format("'{}'{}", unknown[k], did_you_mean(unknown[k], model.label_names())));
  notes_.push_back(fmt::format("{} of its {} labels are ignored, the model does not have them: {}{}",
                               unknown.size(), names.size(), join(shown, ", "),
                               unknown.size() > kNamed ? ", ..." : ""));
}

Matrix<std::int8_t> KnownLabels::rows(std::size_t begin, std::size_t count) const {
  Matrix<std::int8_t> known(count, column_.size());
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < column_.size(); ++j)
      known(i, j) =
          column_[j] < selection_.data->label_count() ? selection_.label(begin + i, column_[j]) : kUnknown;
  return known;
}

std::vector<std::string> check_label_links(const Model& model, const std::string& path) {
  const LabelLinks& links = model.label_links();
  if (!links.learned())
    fail(
        Exit::mismatch,
        "{}: the model has not learned how known labels inform others: that requires validation rows with "
        "known labels (--hold-out above 0) and 2 to {} labels, and models of version 0.1 have none; train it "
        "again, or omit --known-labels",
        path, LabelLinks::kMostLabels);
  if (!links.empty()) return {};
  return {fmt::format(
      "known labels are written as known and change no other score: on the model's {} they did not "
      "help beyond noise",
      counted(links.rows(), "validation row"))};
}

}  // namespace lacuna::cli
