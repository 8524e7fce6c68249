// Converts one number of a file's own type to float32 or to an integer, exactly or not at all.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "data/arrays.h"

namespace lacuna {

// A float16 as stored in a file.
struct Half {
  std::uint16_t bits;
};

inline float half_to_float(Half h) {
  const std::uint32_t sign = (h.bits & 0x8000u) << 16, exponent = h.bits >> 10 & 31u,
                      fraction = h.bits & 1023u;
  if (exponent == 0)
    return std::copysign(static_cast<float>(fraction) * 0x1p-24f, std::bit_cast<float>(sign | 0x3F800000u));
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000u | fraction << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

// The value as a number that can be printed and compared.
template <class S>
auto number_of(S value) {
  if constexpr (std::is_same_v<S, Half>) {
    return half_to_float(value);
  } else {
    return +value;
  }
}

// False where float32 cannot hold an integer exactly, or a finite float64 lies beyond its range.
template <class S>
bool to_float(S value, float& out) {
  if constexpr (std::is_same_v<S, Half>) {
    out = half_to_float(value);
    return true;
  } else if constexpr (std::is_same_v<S, double>) {
    out = static_cast<float>(value);
    return std::isfinite(out) || !std::isfinite(value);
  } else if constexpr (std::is_integral_v<S> && sizeof(S) >= 4) {
    out = static_cast<float>(value);
    using U = std::make_unsigned_t<S>;
    const U size = value < 0 ? static_cast<U>(U{0} - static_cast<U>(value)) : static_cast<U>(value);
    return size == 0 || std::bit_width(size) - std::countr_zero(size) <= 24;
  } else {
    out = static_cast<float>(value);
    return true;
  }
}

template <class S>
[[noreturn]] void refuse_float(const std::string& where, const std::string& name, std::size_t i,
                               std::size_t j, S value) {
  if constexpr (std::is_integral_v<S>)
    fail(Exit::data,
         "{}: '{}' at row {}, column {} contains the integer {}, which float32 cannot represent exactly; "
         "store it as floating point if rounding is meant",
         where, name, i, j, value);
  else
    fail(Exit::data, "{}: '{}' at row {}, column {} is {}, beyond the range of float32", where, name, i, j,
         number_of(value));
}

template <class T, class S>
bool to_integer(S from, T& out) {
  const auto value = number_of(from);
  if constexpr (std::is_floating_point_v<decltype(value)>) {
    if (!(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
          value < std::ldexp(1.0, std::numeric_limits<T>::digits)) ||
        value != std::floor(value))
      return false;
  } else {
    if (!std::in_range<T>(from)) return false;
  }
  out = static_cast<T>(value);
  return true;
}

// f(S{}) with the C++ type of the element.
template <class F>
void with_element(Element element, F&& f) {
  switch (element) {
    case Element::boolean:
    case Element::u8:
      return f(std::uint8_t{});
    case Element::i8:
      return f(std::int8_t{});
    case Element::i16:
      return f(std::int16_t{});
    case Element::u16:
      return f(std::uint16_t{});
    case Element::i32:
      return f(std::int32_t{});
    case Element::u32:
      return f(std::uint32_t{});
    case Element::i64:
      return f(std::int64_t{});
    case Element::u64:
      return f(std::uint64_t{});
    case Element::f16:
      return f(Half{});
    case Element::f32:
      return f(float{});
    case Element::f64:
      return f(double{});
    case Element::text:
      break;
  }
  assert(false && "text is not a number");
}

}  // namespace lacuna
