// Level 7.3 MATLAB files, written through libmatio: for variables that are too large for level 5.
#include <matio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/files.h"
#include "data/flat_table.h"
#include "data/mat5.h"
#include "data/mat_handles.h"
#include "data/names.h"

namespace lacuna {
namespace {

matvar_t* make_variable(const MatValue& value, const char* name) {
  if (value.type == "cell") {
    std::size_t dims[2] = {1, value.cells.size()};
    matvar_t* cell = Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, dims, nullptr, 0);
    for (std::size_t i = 0; cell != nullptr && i < value.cells.size(); ++i)
      Mat_VarSetCell(cell, static_cast<int>(i), make_variable(value.cells[i], nullptr));
    return cell;
  }
  if (value.type == "char") {
    std::u16string text;
    for (char32_t point : to_code_points(value.text.empty() ? "" : value.text[0])) {
      if (point >= 0x10000) {
        text += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
        point = 0xDC00 + ((point - 0x10000) & 0x3FF);
      }
      text += static_cast<char16_t>(point);
    }
    std::size_t dims[2] = {text.empty() ? 0u : 1u, text.size()};
    return Mat_VarCreate(name, MAT_C_CHAR, MAT_T_UINT16, 2, dims, text.data(), 0);
  }
  if (value.sparse) {
    const Csr columns = transposed(*value.sparse);
    std::vector<std::uint32_t> start, index;
    std::vector<double> values;
    for (std::size_t j = 0; j < columns.start.cols(); ++j)
      start.push_back(static_cast<std::uint32_t>(columns.start(0, j)));
    for (std::size_t k = 0; k < columns.value.cols(); ++k) {
      index.push_back(columns.index(0, k));
      values.push_back(double{columns.value(0, k)});
    }
    mat_sparse_t sparse{};
    const auto count = static_cast<std::uint32_t>(values.size());
    sparse.nzmax = sparse.nir = sparse.ndata = count;
    sparse.njc = static_cast<std::uint32_t>(start.size());
    sparse.ir = index.data();
    sparse.jc = start.data();
    sparse.data = values.data();
    std::size_t dims[2] = {columns.columns, columns.start.cols() - 1};
    return Mat_VarCreate(name, MAT_C_SPARSE, MAT_T_DOUBLE, 2, dims, &sparse, 0);
  }
  std::size_t dims[2] = {value.values.rows(), value.values.cols()};
  if (value.type == "uint8" || value.type == "logical") {
    std::vector<std::uint8_t> bytes(dims[0] * dims[1]);
    for (std::size_t j = 0; j < dims[1]; ++j)
      for (std::size_t i = 0; i < dims[0]; ++i)
        bytes[j * dims[0] + i] = static_cast<std::uint8_t>(value.values(i, j));
    return Mat_VarCreate(name, MAT_C_UINT8, MAT_T_UINT8, 2, dims, bytes.data(), 0);
  }
  const Table<float> columns = transposed(value.values);
  return Mat_VarCreate(name, MAT_C_SINGLE, MAT_T_SINGLE, 2, dims, const_cast<float*>(columns.view().data),
                       0);  // copied, not changed
}

}  // namespace

void write_mat73(const std::string& path, std::span<const MatValue> values) {
  AtomicFile file(path);
  {
    ::unlink(file.temporary().c_str());
    const MatHandle mat(Mat_CreateVer(file.temporary().c_str(), nullptr, MAT_FT_MAT73));
    if (!mat) fail(Exit::failed, "{}: cannot be written as a MATLAB file of level 7.3", path);
    for (const auto& value : values) {
      const Variable variable(make_variable(value, value.name.c_str()));
      if (!variable || Mat_VarWrite(mat.get(), variable.get(), MAT_COMPRESSION_ZLIB) != 0)
        fail(Exit::failed, "{}: the variable '{}' could not be written", path, value.name);
    }
  }
  file.reopen();
  file.commit();
}

}  // namespace lacuna
