// Arrays as stored in files: typed, named, of any shape. The array readers (.npy, .npz) return and take these; data
// sets, folds and scores are made of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/matrix.h"

namespace lacuna {

enum class Element { boolean, i8, u8, i16, u16, i32, u32, i64, u64, f16, f32, f64, text };
std::size_t element_size(Element element);  // bytes; 0 for text
const char* element_name(Element element);  // "float32", "uint16", ...

struct Array {
  std::string name;
  Element type = Element::f32;
  std::vector<std::uint64_t> shape;  // empty = a single value
  Bytes bytes;                       // little-endian, contiguous; points into `owner` or into borrowed memory
  std::shared_ptr<const void> owner;  // keeps the bytes alive; null = borrowed, valid until written
  std::vector<std::string> text;      // the values of a text array
  bool column_major = false;

  std::uint64_t count()
      const;  // number of values; sizes are checked when an array is read, so it does not overflow
  // As a matrix: a vector is one column (n, 1), a single value is (1, 1); more than two dimensions have none.
  std::size_t rows() const { return shape.empty() ? 1 : shape[0]; }
  std::size_t cols() const { return shape.size() < 2 ? 1 : shape[1]; }
};

std::string shape_text(const std::vector<std::uint64_t>& shape);  // "4999 x 260"

// Float32 values, row-major. Shares the array's memory where it can. Integers that float32 cannot hold
// exactly and float64 values beyond its range are refused (Exit::data, with value and place); other float64
// values are rounded.
Table<float> to_floats(const Array& array, const std::string& where);
// Whole numbers within the range of T, from any numeric type; anything else is refused (Exit::data).
template <class T>
Matrix<T> to_integers(const Array& array, const std::string& where);

// Arrays that borrow the memory of a contiguous matrix (stride = columns), to be written.
Array borrow(std::string name, MatrixView<const float> values);
Array borrow(std::string name, MatrixView<const std::uint8_t> values);
Array borrow(std::string name, MatrixView<const std::int8_t> values);
Array borrow(std::string name, MatrixView<const std::uint32_t> values);
Array borrow(std::string name, MatrixView<const std::uint64_t> values);
Array text_array(std::string name, std::vector<std::string> values);  // of shape (n)
Array text_value(std::string name, std::string value);                // a single text

}  // namespace lacuna
