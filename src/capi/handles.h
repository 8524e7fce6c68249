// The types behind the handles of lacuna.h, and the one place where exceptions become errors.
#pragma once

#include <lacuna.h>

#include <cmath>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/options.h"
#include "data/dataset.h"
#include "data/folds.h"
#include "methods/model.h"

struct lacuna_error {
  lacuna_status status = LACUNA_FAILED;
  std::string message;
};

// Every change is checked when it is made, so that a data set is sound at any time.
struct lacuna_data {
  lacuna::Dataset set;
};

struct lacuna_folds {
  lacuna::Folds folds;
};

// `plan` holds the settings and is never fitted; each fit makes a model of its own from it, and replaces the
// one before only if it succeeds.
struct lacuna_model {
  lacuna::Model plan;
  std::optional<lacuna::Model> fitted;
  std::optional<lacuna::Metrics> validation;  // of `fitted`, where it was fitted here
};

namespace lacuna::capi {

// Puts the exception that is being handled into *error.
lacuna_status report(lacuna_error** error) noexcept;

template <class F>
lacuna_status guarded(lacuna_error** error, F&& body) noexcept {
  if (error != nullptr) *error = nullptr;
  try {
    body();
    return LACUNA_OK;
  } catch (...) {
    return report(error);
  }
}

// An argument that must not be NULL. Exit::usage names it.
template <class T>
T& need(T* pointer, const char* name) {
  if (pointer == nullptr) fail(Exit::usage, "the argument '{}' is NULL", name);
  return *pointer;
}
// The row of a missing view, or the scores of an item without any view.
template <class T>
bool all_nan(std::span<const T> row) {
  for (const T x : row)
    if (!std::isnan(x)) return false;
  return true;
}

std::string text_of(const char* text, const char* name);  // as need()
std::vector<std::string> texts_of(const char* const* texts, std::size_t count, const char* name);

char* copied(const std::string& text);         // for the caller, who calls lacuna_free
char* copied(const nlohmann::json& document);  // invalid UTF-8 is replaced

void apply(Options& options, const lacuna_setting* settings, std::size_t count, const std::string& where);
template <class T>  // options of a verb
T from_settings(const lacuna_setting* settings, std::size_t count, const std::string& where) {
  T values;
  Options options;
  values.declare(options);
  apply(options, settings, count, where);
  return values;
}
nlohmann::json described(const Options& options);

const Model& fitted(const lacuna_model* model);  // Exit::usage before a fit

}  // namespace lacuna::capi
