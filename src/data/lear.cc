// LEAR's vector files: each row is its dimension followed by its values, both in the same width.
//   .fvec     uint32, float32 values        .hvecs    uint16, uint16 values       .hvecs32  uint32, uint32
//   values
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "data/convert.h"
#include "data/flat_table.h"

namespace lacuna {
namespace {

template <class H, class S>
FlatTable read_vectors(const MappedFile& file, const char* type) {
  const std::string& path = file.path();
  const Bytes bytes = file.bytes();
  const auto at = [&]<class T>(std::size_t offset, T& value) {
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
  };
  H width = 0;
  if (bytes.size() < sizeof(H))
    fail(Exit::data, "{}: {} bytes are too few for a vector file", path, bytes.size());
  at(0, width);
  const std::size_t row_bytes = sizeof(H) + std::size_t{width} * sizeof(S);
  if (width == 0 || bytes.size() % row_bytes != 0)
    fail(Exit::data,
         "{}: the first row has {} values, so rows have {} bytes; {} bytes are {} rows and {} bytes", path,
         width, row_bytes, bytes.size(), bytes.size() / row_bytes, bytes.size() % row_bytes);
  Matrix<float> values(bytes.size() / row_bytes, width);
  for (std::size_t i = 0; i < values.rows(); ++i) {
    H count = 0;
    at(i * row_bytes, count);
    if (count != width)
      fail(Exit::data, "{}: row {} at byte {} has {} values, the first row has {}", path, i, i * row_bytes,
           count, width);
    for (std::size_t j = 0; j < width; ++j) {
      S value;
      at(i * row_bytes + sizeof(H) + j * sizeof(S), value);
      if (!to_float(value, values(i, j))) refuse_float(path, "values", i, j, value);
    }
  }
  FlatTable table;
  table.values = std::move(values);
  table.source_type = type;
  return table;
}

}  // namespace

FlatTable read_lear(const std::string& path, const ReadOptions&) {
  const auto file = MappedFile::open(path);
  if (path.ends_with(".hvecs")) return read_vectors<std::uint16_t, std::uint16_t>(*file, "uint16");
  if (path.ends_with(".hvecs32")) return read_vectors<std::uint32_t, std::uint32_t>(*file, "uint32");
  return read_vectors<std::uint32_t, float>(*file, "float32");
}

}  // namespace lacuna
