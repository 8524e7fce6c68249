#include "data/arrays.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "data/convert.h"

namespace lacuna {
namespace {

constexpr std::size_t kSizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 0};
constexpr const char* kElementNames[] = {"bool",    "int8",    "uint8", "int16",  "uint16",
                                         "int32",   "uint32",  "int64", "uint64", "float16",
                                         "float32", "float64", "text"};

void require_matrix(const Array& array, const std::string& where) {
  if (array.type == Element::text)
    fail(Exit::data, "{}: '{}' contains text, expected numbers", where, array.name);
  if (array.shape.size() > 2)
    fail(Exit::data, "{}: '{}' has {} dimensions ({}), expected at most 2", where, array.name,
         array.shape.size(), shape_text(array.shape));
}

// f(i, j, value) for each value in the order of the file; value has the file's own type.
template <class F>
void for_each(const Array& array, F&& f) {
  if (array.count() == 0) return;  // rows without columns may be any number
  with_element(array.type, [&]<class S>(S) {
    const std::size_t rows = array.rows(), cols = array.cols();
    const std::byte* at = array.bytes.data();
    const std::size_t outer = array.column_major ? cols : rows, inner = array.column_major ? rows : cols;
    for (std::size_t a = 0; a < outer; ++a)
      for (std::size_t b = 0; b < inner; ++b, at += sizeof(S)) {
        S value;
        std::memcpy(&value, at, sizeof(S));
        array.column_major ? f(b, a, value) : f(a, b, value);
      }
  });
}

template <class T>
Array borrow_as(std::string name, Element type, MatrixView<const T> values) {
  assert(values.stride == values.cols || values.rows <= 1);
  Array array;
  array.name = std::move(name);
  array.type = type;
  array.shape = {values.rows, values.cols};
  array.bytes = std::as_bytes(std::span(values.data, values.size()));
  return array;
}

}  // namespace

std::size_t element_size(Element element) {
  return kSizes[static_cast<std::size_t>(element)];
}
const char* element_name(Element element) {
  return kElementNames[static_cast<std::size_t>(element)];
}

std::uint64_t Array::count() const {
  std::uint64_t n = 1;
  for (auto size : shape) n *= size;
  return n;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  if (shape.empty()) return "a single value";
  std::string text;
  for (auto size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return shape.size() == 1 ? text + " values" : text;
}

Table<float> to_floats(const Array& array, const std::string& where) {
  require_matrix(array, where);
  const auto address = reinterpret_cast<std::uintptr_t>(array.bytes.data());
  const bool flat = !array.column_major || array.rows() <= 1 || array.cols() <= 1;
  if (array.type == Element::f32 && flat && array.owner != nullptr && address % alignof(float) == 0)
    return {array.owner, {reinterpret_cast<const float*>(array.bytes.data()), array.rows(), array.cols()}};
  Matrix<float> out(array.rows(), array.cols());
  for_each(array, [&](std::size_t i, std::size_t j, auto value) {
    float& to = out(i, j);
    if (!to_float(value, to)) refuse_float(where, array.name, i, j, value);
  });
  return out;
}

template <class T>
Matrix<T> to_integers(const Array& array, const std::string& where) {
  require_matrix(array, where);
  Matrix<T> out(array.rows(), array.cols());
  for_each(array, [&](std::size_t i, std::size_t j, auto value) {
    if (!to_integer(value, out(i, j)))
      fail(Exit::data, "{}: '{}' at ({}, {}) is {}, expected a whole number from {} to {}", where, array.name,
           i, j, number_of(value), +std::numeric_limits<T>::min(), +std::numeric_limits<T>::max());
  });
  return out;
}
template Matrix<std::int8_t> to_integers(const Array&, const std::string&);
template Matrix<std::int64_t> to_integers(const Array&, const std::string&);
template Matrix<std::uint8_t> to_integers(const Array&, const std::string&);
template Matrix<std::uint32_t> to_integers(const Array&, const std::string&);
template Matrix<std::uint64_t> to_integers(const Array&, const std::string&);

Array borrow(std::string name, MatrixView<const float> values) {
  return borrow_as(std::move(name), Element::f32, values);
}
Array borrow(std::string name, MatrixView<const std::uint8_t> values) {
  return borrow_as(std::move(name), Element::u8, values);
}
Array borrow(std::string name, MatrixView<const std::int8_t> values) {
  return borrow_as(std::move(name), Element::i8, values);
}
Array borrow(std::string name, MatrixView<const std::uint32_t> values) {
  return borrow_as(std::move(name), Element::u32, values);
}
Array borrow(std::string name, MatrixView<const std::uint64_t> values) {
  return borrow_as(std::move(name), Element::u64, values);
}

Array text_array(std::string name, std::vector<std::string> values) {
  Array array;
  array.name = std::move(name);
  array.type = Element::text;
  array.shape = {values.size()};
  array.text = std::move(values);
  return array;
}

Array text_value(std::string name, std::string value) {
  Array array = text_array(std::move(name), {std::move(value)});
  array.shape.clear();
  return array;
}

}  // namespace lacuna
