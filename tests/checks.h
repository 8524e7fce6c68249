// What many tests ask.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/matrix.h"

namespace lacuna {

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool same(const Matrix<float>& a, const Matrix<float>& b) {
  return std::ranges::equal(a.values(), b.values());
}

// What `f` is refused with, which must be of this kind.
template <class F>
std::string message_of(F&& f, Exit code) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace lacuna
