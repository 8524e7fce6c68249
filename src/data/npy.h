// NumPy's own files: one array (.npy), or a zip of named arrays (.npz), stored or deflated. Numbers of every
// size, either byte order, either order of dimensions, and text arrays; never pickled objects.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/arrays.h"

namespace lacuna {

Array read_npy(const std::string& path);  // memory-mapped; Exit::data when damaged
std::vector<Array> read_npz(
    const std::string& path);  // in the order of the file; stored entries are memory-mapped
// The bytes of a .npy file; the array points into them and shares `owner`.
Array parse_npy(std::shared_ptr<const void> owner, Bytes bytes, const std::string& where);

void write_npy(const std::string& path, const Array& array);             // atomic
void write_npz(const std::string& path, std::span<const Array> arrays);  // atomic, deflated
// The bytes that precede an array's values in a .npy file; a multiple of 64.
std::string npy_header(const Array& array);
std::string npy_text(const Array& array);  // the values of a text array as they follow its header

const Array* find_array(std::span<const Array> arrays, const std::string& name);  // null if there is none

}  // namespace lacuna
