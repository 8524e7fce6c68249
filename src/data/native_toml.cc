#include "data/native_toml.h"

#include "base/error.h"
#include "data/formats.h"

namespace lacuna {

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string toml_top(const Dataset& data) {
  std::string toml = fmt::format("schema = \"{}\"\n", kSchema);
  for (const auto& [key, value] :
       {std::pair{"name", &data.name}, {"source", &data.source}, {"licence", &data.licence}})
    if (!value->empty()) toml += fmt::format("{} = {}\n", key, toml_text(*value));
  return toml + fmt::format("rows = {}\n", data.rows);
}

}  // namespace lacuna
