// What is missing of items: views from the views they have, labels from the labels that are known.
#include "capi/handles.h"

using namespace lacuna;
using capi::guarded;
using capi::need;

lacuna_status lacuna_model_recover(const lacuna_model* model, const lacuna_data* data, lacuna_data** filled,
                                   lacuna_data** deviations, lacuna_error** error) {
  return guarded(error, [&] {
    need(filled, "filled") = nullptr;
    if (deviations != nullptr) *deviations = nullptr;
    Filled found = capi::fitted(model).recover(select_all(need(data, "data").set));
    auto values = std::make_unique<lacuna_data>(lacuna_data{std::move(found.data)});
    if (deviations != nullptr) *deviations = new lacuna_data{std::move(found.deviations)};
    *filled = values.release();
  });
}

lacuna_status lacuna_model_refine(const lacuna_model* model, const int8_t* known, float* scores, size_t rows,
                                  lacuna_error** error) {
  return guarded(error, [&] {
    const Model& fitted = capi::fitted(model);
    const std::size_t labels = fitted.label_names().size();
    if (!fitted.label_links().learned())
      fail(Exit::mismatch,
           "the model has not learned how known labels inform others: that requires validation rows with "
           "known labels and 2 to {} labels",
           LabelLinks::kMostLabels);
    if (rows == 0) return;
    const MatrixView<const std::int8_t> told(&need(known, "known"), rows, labels);
    for (std::size_t i = 0; i < rows; ++i)
      for (const std::int8_t label : told.row(i))
        if (label != 0 && label != 1 && label != kUnknown)
          fail(Exit::data, "known labels, row {}: {} is not a label; 1, 0, or -1 = unknown", i, label);
    fitted.refine(told, MatrixView<float>(&need(scores, "scores"), rows, labels));
  });
}
