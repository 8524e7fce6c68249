#include "capi/handles.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "base/threads.h"
#include "data/names.h"
#include "ops/device.h"

namespace lacuna::capi {
namespace {

// For the case that there is no memory even for an error.
lacuna_error no_memory{LACUNA_NO_MEMORY, ""};

lacuna_status status_of(Exit code) {
  switch (code) {
    case Exit::usage:
      return LACUNA_USAGE;
    case Exit::data:
      return LACUNA_DATA;
    case Exit::mismatch:
      return LACUNA_MISMATCH;
    case Exit::diverged:
      return LACUNA_DIVERGED;
    case Exit::interrupted:
    case Exit::terminated:
      return LACUNA_INTERRUPTED;
    case Exit::ok:
    case Exit::failed:
      break;
  }
  return LACUNA_FAILED;
}

lacuna_status put(lacuna_error** error, lacuna_status status, const char* message) noexcept {
  if (error == nullptr) return status;
  try {
    *error = new lacuna_error{status, message};
  } catch (...) {
    *error = &no_memory;
  }
  return status;
}

const char* type_of(const Option& option) {
  static constexpr const char* kNames[] = {"bool", "integer", "integer", "integer", "number",
                                           "text", "texts",   "numbers", "text"};
  static_assert(std::variant_size_v<Option::Target> == std::size(kNames));
  return kNames[option.target.index()];
}

}  // namespace

lacuna_status report(lacuna_error** error) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    return put(error, status_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return put(error, LACUNA_NO_MEMORY, "there is not enough memory for this");
  } catch (const std::length_error&) {
    return put(error, LACUNA_NO_MEMORY, "this is larger than any memory");
  } catch (const std::exception& e) {
    return put(error, LACUNA_FAILED, e.what());
  } catch (...) {
    return put(error, LACUNA_FAILED, "an unknown error");
  }
}

std::string text_of(const char* text, const char* name) {
  std::string result(&need(text, name));
  if (!valid_utf8(result)) fail(Exit::usage, "the argument '{}' is not UTF-8 text", name);
  return result;
}

std::vector<std::string> texts_of(const char* const* texts, std::size_t count, const char* name) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back(text_of((&need(texts, name))[i], name));
  return result;
}

char* copied(const std::string& text) {
  auto* memory = static_cast<char*>(std::malloc(text.size() + 1));
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, text.c_str(), text.size() + 1);
  return memory;
}

char* copied(const nlohmann::json& document) {
  return copied(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void apply(Options& options, const lacuna_setting* settings, std::size_t count, const std::string& where) {
  for (std::size_t i = 0; i < count; ++i) {
    const lacuna_setting& setting = (&need(settings, "settings"))[i];
    options.set(text_of(setting.name, "settings"), text_of(setting.value, "settings"), where);
  }
}

nlohmann::json described(const Options& options) {
  nlohmann::json list = nlohmann::json::array();
  for (const Option& option : options.all()) {
    nlohmann::json entry = {{"name", option.name},
                            {"type", type_of(option)},
                            {"value", option.text()},
                            {"default", option.default_text},
                            {"help", option.help}};
    if (std::isfinite(option.low)) entry["low"] = option.low;
    if (std::isfinite(option.high)) entry["high"] = option.high;
    if (!option.allowed.empty()) entry["choices"] = option.allowed;
    list.push_back(std::move(entry));
  }
  return list;
}

const Model& fitted(const lacuna_model* model) {
  if (!need(model, "model").fitted) fail(Exit::usage, "the model is not fitted yet");
  return *model->fitted;
}

}  // namespace lacuna::capi

using namespace lacuna;

int lacuna_api_version(void) {
  return LACUNA_API_VERSION;
}
const char* lacuna_version(void) {
  return LACUNA_VERSION;
}

lacuna_status lacuna_error_status(const lacuna_error* error) {
  return error == nullptr ? LACUNA_OK : error->status;
}
const char* lacuna_error_message(const lacuna_error* error) {
  if (error == nullptr) return "";
  return error == &capi::no_memory ? "there is no memory left" : error->message.c_str();
}
void lacuna_error_free(lacuna_error* error) {
  if (error != &capi::no_memory) delete error;
}

void lacuna_free(void* memory) {
  std::free(memory);
}

lacuna_status lacuna_set_device(const char* device, lacuna_error** error) {
  return capi::guarded(error, [&] { set_device(parse_device(capi::text_of(device, "device"))); });
}

lacuna_status lacuna_set_threads(int count, lacuna_error** error) {
  return capi::guarded(error, [&] {
    if (count < 0 || count > 1024) fail(Exit::usage, "the number of threads is from 0 to 1024, not {}", count);
    set_threads(count);
  });
}
