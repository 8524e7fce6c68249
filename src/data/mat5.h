// The level 5 MATLAB format in numbers, for its reader and its writer.
#pragma once

#include <cstdint>

#include "data/mat.h"

namespace lacuna::mat5 {

enum Type : std::uint32_t {  // of a data element
  kInt8 = 1,
  kUint8 = 2,
  kInt16 = 3,
  kUint16 = 4,
  kInt32 = 5,
  kUint32 = 6,
  kSingle = 7,
  kDouble = 9,
  kInt64 = 12,
  kUint64 = 13,
  kMatrix = 14,
  kCompressed = 15,
  kUtf8 = 16,
  kUtf16 = 17,
  kUtf32 = 18,
};

enum Class : std::uint32_t {  // of an array
  kCellClass = 1,
  kStructClass = 2,
  kObjectClass = 3,
  kCharClass = 4,
  kSparseClass = 5,
  kDoubleClass = 6,
  kSingleClass = 7,
  kInt8Class = 8,
  kUint8Class = 9,
  kInt16Class = 10,
  kUint16Class = 11,
  kInt32Class = 12,
  kUint32Class = 13,
  kInt64Class = 14,
  kUint64Class = 15,
};

constexpr std::uint32_t kComplexFlag = 0x800, kLogicalFlag = 0x200;
constexpr std::size_t kFileHeader = 128;

}  // namespace lacuna::mat5

namespace lacuna {

inline constexpr int kDeepestCell = 16;  // cells within cells

class MappedFile;

std::vector<MatValue> read_mat5(const std::shared_ptr<const MappedFile>& file,
                                const std::vector<std::string>& names);
std::vector<MatValue> read_mat73(const std::string& path, const std::vector<std::string>& names);
void write_mat73(const std::string& path, std::span<const MatValue> values);

}  // namespace lacuna
