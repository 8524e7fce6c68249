// Real data sets lie beside the checkout, in ../shared/data; tests that need one skip where it is absent.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace lacuna {

// The path of a file of ../shared/data; empty if it is not there.
inline std::string shared_data(const std::string& name) {
  const auto path = std::filesystem::path(LACUNA_SOURCE_DIR) / ".." / "shared" / "data" / name;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace lacuna

#define LACUNA_NEEDS(variable, name)                      \
  const std::string variable = lacuna::shared_data(name); \
  if (variable.empty()) GTEST_SKIP() << "needs ../shared/data/" << (name)
