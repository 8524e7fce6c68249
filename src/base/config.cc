#include "base/config.h"

#include <toml++/toml.h>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace lacuna {
namespace {

std::string value_text(const toml::node& node, const std::string& where) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (const auto* whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* real = node.as_floating_point()) return fmt::format("{}", real->get());
  if (const auto* list = node.as_array()) {
    std::vector<std::string> parts;
    for (const auto& item : *list) parts.push_back(value_text(item, where));
    return join(parts, ",");
  }
  fail(Exit::data, "{}: a setting is text, a number, true, false or a list of these", where);
}

void collect(const toml::table& table, const std::string& path, std::vector<std::string>& tables,
             std::vector<ConfigEntry>& entries) {
  for (const auto& [key, node] : table) {
    if (const auto* inner = node.as_table()) {
      tables.emplace_back(key.str());
      collect(*inner, path, tables, entries);
      tables.pop_back();
      continue;
    }
    const std::string where = fmt::format("{}:{}", path, key.source().begin.line);
    entries.push_back({std::string(key.str()), value_text(node, where), where, tables});
  }
}

}  // namespace

std::vector<ConfigEntry> read_config(const std::string& path) {
  return parse_config(read_text(path, std::size_t{1} << 20), path);
}

std::vector<ConfigEntry> parse_config(const std::string& text, const std::string& path) {
  std::vector<ConfigEntry> entries;
  std::vector<std::string> tables;
  try {
    collect(toml::parse(text, path), path, tables, entries);
  } catch (const toml::parse_error& error) {
    const auto at = error.source().begin;
    fail(Exit::data, "{}:{}:{}: {}", path, at.line, at.column, std::string(error.description()));
  }
  return entries;
}

void apply_config(const std::vector<ConfigEntry>& entries, Options& options,
                  const std::vector<std::string>& skip) {
  for (const auto& entry : entries)
    if (std::find(skip.begin(), skip.end(), entry.name) == skip.end())
      options.set(entry.name, entry.text, entry.where);
}

std::string config_text(const Options& options, const std::vector<std::string>& skip) {
  std::string text;
  for (const auto& option : options.all()) {
    if (std::find(skip.begin(), skip.end(), option.name) != skip.end()) continue;
    // JSON's strings, numbers, booleans and flat arrays are TOML as well.
    text += fmt::format("{} = {}\n", option.name, option.json().dump());
  }
  return text;
}

}  // namespace lacuna
