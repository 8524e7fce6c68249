// Gaps and splits for experiments.
#include "data/folds.h"

#include <nlohmann/json.hpp>

#include "capi/handles.h"

using namespace lacuna;
using capi::guarded;
using capi::need;

lacuna_status lacuna_folds_new(const lacuna_data* data, const lacuna_setting* settings, size_t count,
                               lacuna_folds** folds, lacuna_error** error) {
  return guarded(error, [&] {
    need(folds, "folds") = nullptr;
    const auto mask = capi::from_settings<MaskOptions>(settings, count, "masks");
    *folds = new lacuna_folds{make_folds(need(data, "data").set, mask)};
  });
}

lacuna_status lacuna_folds_read(const char* path, lacuna_folds** folds, lacuna_error** error) {
  return guarded(error, [&] {
    need(folds, "folds") = nullptr;
    *folds = new lacuna_folds{read_folds(capi::text_of(path, "path"))};
  });
}

lacuna_status lacuna_folds_write(const lacuna_folds* folds, const char* path, lacuna_error** error) {
  return guarded(error, [&] { write_folds(need(folds, "folds").folds, capi::text_of(path, "path")); });
}

void lacuna_folds_free(lacuna_folds* folds) {
  delete folds;
}

lacuna_status lacuna_folds_describe(const lacuna_folds* folds, char** json, lacuna_error** error) {
  return guarded(error, [&] {
    need(json, "json") = nullptr;
    const Folds& all = need(folds, "folds").folds;
    *json = capi::copied(nlohmann::json{{"count", all.folds.size()},
                                        {"rows", all.rows},
                                        {"views", all.views},
                                        {"labels", all.labels},
                                        {"train", all.train_rows()},
                                        {"val", all.val_rows()},
                                        {"test", all.rows - all.train_rows() - all.val_rows()},
                                        {"hash", all.hash()}});
  });
}

lacuna_status lacuna_folds_at(const lacuna_folds* folds, size_t fold, const uint8_t** W, const uint8_t** G,
                              const uint32_t** order, lacuna_error** error) {
  return guarded(error, [&] {
    const auto& all = need(folds, "folds").folds.folds;
    if (fold >= all.size())
      fail(Exit::usage, "there is no fold {}: there are {} (from 0)", fold, all.size());
    need(W, "W") = all[fold].W.data();
    need(G, "G") = all[fold].G.data();
    need(order, "order") = all[fold].order.data();
  });
}
