// Reading level 5 MATLAB files. A variable is decoded while it is decompressed: blocks of a few columns go
// straight into the row-major float32 matrix, so that the peak of memory is the result and one block.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/convert.h"
#include "data/flat_table.h"
#include "data/inflate.h"
#include "data/mat5.h"
#include "data/names.h"

namespace lacuna {
namespace {

using namespace mat5;

// The bytes of one variable in order, plain or decompressed on the way.
class Stream {
 public:
  Stream(Bytes plain, std::string where, std::uint64_t offset)
      : plain_(plain), where_(std::move(where)), offset_(offset) {}
  Stream(Inflate* packed, std::string where, std::uint64_t offset)
      : packed_(packed), where_(std::move(where)), offset_(offset) {}

  void read(std::span<std::byte> out) {
    if (out.empty()) return;
    if (packed_ != nullptr) {
      if (packed_->read(out) != out.size()) ends_early(out.size());
    } else {
      if (out.size() > plain_.size()) ends_early(out.size());
      std::memcpy(out.data(), plain_.data(), out.size());
      plain_ = plain_.subspan(out.size());
    }
    position_ += out.size();
  }
  void skip(std::uint64_t count) {
    std::array<std::byte, 4096> scratch;
    for (; packed_ != nullptr && count > 0;) {
      const std::size_t n = std::min<std::uint64_t>(count, scratch.size());
      read(std::span(scratch).first(n));
      count -= n;
    }
    if (count > plain_.size()) ends_early(count);
    plain_ = plain_.subspan(count);
    position_ += count;
  }
  std::uint64_t position() const { return position_; }
  // Where an error lies: a byte of the file, or of the decompressed variable.
  std::string place() const {
    return packed_ != nullptr ? fmt::format("{} (byte {} of the variable that is compressed at byte {})",
                                            where_, position_, offset_)
                              : fmt::format("{} (byte {})", where_, offset_ + position_);
  }
  const std::string& where() const { return where_; }

 private:
  [[noreturn]] void ends_early(std::uint64_t wanted) const {
    fail(Exit::data, "{}: ends where {} more bytes were expected", place(), wanted);
  }
  Bytes plain_;
  Inflate* packed_ = nullptr;
  std::string where_;
  std::uint64_t offset_, position_ = 0;
};

struct Tag {
  std::uint32_t type = 0, size = 0;
  std::array<std::byte, 4> small{};  // the data of a small element
  bool is_small = false;
  std::uint64_t padded() const { return is_small ? 0 : (std::uint64_t{size} + 7) / 8 * 8; }
};

struct ArrayHeader {
  std::uint32_t array_class = 0, flags = 0;
  std::vector<std::uint64_t> shape;
  std::string name;
  std::uint64_t rows() const { return shape[0]; }
  std::uint64_t cols() const {
    std::uint64_t n = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }
};

template <class T>
T byte_swapped(T value) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(T)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<T>(bytes);
}

const char* class_name(std::uint32_t array_class) {
  static constexpr const char* kNames[] = {"?",       "cell",    "struct", "object", "char",  "sparse",
                                           "float64", "float32", "int8",   "uint8",  "int16", "uint16",
                                           "int32",   "uint32",  "int64",  "uint64"};
  return array_class < std::size(kNames) ? kNames[array_class] : "object";
}

class Reader {
 public:
  Reader(Stream& stream, bool swapped, const std::vector<std::string>* wanted)
      : in_(stream), swapped_(swapped), wanted_(wanted) {}

  // One miMATRIX element, its tag included. False: the variable is not wanted (nothing more is read of it).
  bool matrix(MatValue& out, int depth = 0) {
    const Tag tag = read_tag();
    if (tag.type != kMatrix)
      fail(Exit::data, "{}: element type {}, expected an array (14)", in_.place(), tag.type);
    return matrix_body(tag, out, depth);
  }

 private:
  template <class T>
  T number() {
    std::array<std::byte, sizeof(T)> bytes;
    in_.read(bytes);
    const T value = std::bit_cast<T>(bytes);
    return swapped_ ? byte_swapped(value) : value;
  }

  Tag read_tag() {
    Tag tag;
    const auto first = number<std::uint32_t>();
    if (first >> 16 != 0) {
      tag.is_small = true;
      tag.type = first & 0xFFFF;
      tag.size = first >> 16;
      in_.read(tag.small);
      if (tag.size > 4)
        fail(Exit::data, "{}: a small element of {} bytes, at most 4 fit", in_.place(), tag.size);
    } else {
      tag.type = first;
      tag.size = number<std::uint32_t>();
    }
    return tag;
  }

  // A tag whose data must lie within the enclosing element.
  Tag inner_tag(std::uint64_t end) {
    const Tag tag = read_tag();
    if (in_.position() > end || (!tag.is_small && tag.size > end - in_.position()))
      fail(Exit::data, "{}: an element of {} bytes does not fit its array, which ends at {}", in_.place(),
           tag.size, end);
    return tag;
  }

  std::vector<std::byte> small_data(const Tag& tag, std::size_t most) {
    if (tag.size > most)
      fail(Exit::data, "{}: {} bytes, at most {} were expected", in_.place(), tag.size, most);
    std::vector<std::byte> data(tag.size);
    if (tag.is_small) {
      std::copy_n(tag.small.begin(), tag.size, data.begin());
    } else {
      in_.read(data);
      in_.skip(tag.padded() - tag.size);
    }
    return data;
  }

  template <class T>
  T value_at(std::span<const std::byte> data, std::size_t i) const {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    return swapped_ ? byte_swapped(value) : value;
  }

  ArrayHeader header(std::uint64_t end) {
    ArrayHeader h;
    const auto flags = small_data(inner_tag(end), 64);
    if (flags.size() < 8)
      fail(Exit::data, "{}: array flags of {} bytes, expected 8", in_.place(), flags.size());
    const auto word = value_at<std::uint32_t>(flags, 0);
    h.array_class = word & 255;
    h.flags = word;
    const auto sizes = small_data(inner_tag(end), 64);
    for (std::size_t i = 0; i < sizes.size() / 4; ++i) {
      const auto size = value_at<std::int32_t>(sizes, i);
      if (size < 0) fail(Exit::data, "{}: dimension {} is {}", in_.place(), i, size);
      h.shape.push_back(static_cast<std::uint64_t>(size));
    }
    std::uint64_t count = 1;
    bool fits = h.shape.size() >= 2;
    for (auto size : h.shape) fits = fits && !__builtin_mul_overflow(count, size, &count);
    if (!fits)
      fail(Exit::data, "{}: dimensions {} are not those of an array", in_.place(), shape_text(h.shape));
    const auto name = small_data(inner_tag(end), 4096);
    h.name = utf8_or_latin1({reinterpret_cast<const char*>(name.data()), name.size()});
    return h;
  }

  bool matrix_body(const Tag& tag, MatValue& out, int depth) {
    if (depth > kDeepestCell)
      fail(Exit::data, "{}: cells are nested deeper than {}", in_.place(), kDeepestCell);
    const std::uint64_t end = in_.position() + tag.size;
    if (tag.is_small || tag.size == 0) {  // an empty array without a header
      out.type = "float64";
      out.shape = {0, 0};
      return true;
    }
    const ArrayHeader h = header(end);
    if (wanted_ != nullptr && depth == 0 && !wanted_->empty() &&
        std::find(wanted_->begin(), wanted_->end(), h.name) == wanted_->end())
      return false;
    out.name = h.name;
    out.type = (h.flags & kLogicalFlag) != 0 ? "logical" : class_name(h.array_class);
    out.shape = h.shape;
    switch (h.array_class) {
      case kCellClass:
        cells(h, end, out, depth);
        break;
      case kCharClass:
        text(h, end, out);
        break;
      case kSparseClass:
        sparse(h, end, out);
        break;
      default:
        if (h.array_class >= kDoubleClass && h.array_class <= kUint64Class) {
          if ((h.flags & kComplexFlag) != 0)
            fail(Exit::data, "{}: '{}' contains complex numbers", in_.where(), h.name);
          numbers(h, end, out);
        }  // structs, objects and functions are passed over
    }
    if (in_.position() > end)
      fail(Exit::data, "{}: '{}' is longer than its size of {} bytes", in_.place(), h.name, tag.size);
    in_.skip(end - in_.position());
    return true;
  }

  void cells(const ArrayHeader& h, std::uint64_t end, MatValue& out, int depth) {
    const std::uint64_t count = h.rows() * h.cols();
    if (count > (end - in_.position()) / 8)
      fail(Exit::data, "{}: {} cells in {} bytes", in_.place(), count, end - in_.position());
    for (std::uint64_t i = 0; i < count; ++i) {
      const Tag tag = inner_tag(end);
      if (tag.type != kMatrix)
        fail(Exit::data, "{}: cell {} has element type {}, expected an array (14)", in_.place(), i, tag.type);
      matrix_body(tag, out.cells.emplace_back(), depth + 1);
      if (out.cells.back().name.empty()) out.cells.back().name = fmt::format("{}{{{}}}", h.name, i + 1);
    }
  }

  void numbers(const ArrayHeader& h, std::uint64_t end, MatValue& out) {
    const Tag tag = inner_tag(end);
    Matrix<float> values = decode(tag, h.rows(), h.cols(), h.name);
    out.values = std::move(values);
  }

  // The numbers of one element, column-major in the file, as a row-major matrix.
  Matrix<float> decode(const Tag& tag, std::uint64_t rows, std::uint64_t cols, const std::string& name) {
    switch (tag.type) {
      case kInt8:
        return decode_as<std::int8_t>(tag, rows, cols, name);
      case kUint8:
        return decode_as<std::uint8_t>(tag, rows, cols, name);
      case kInt16:
        return decode_as<std::int16_t>(tag, rows, cols, name);
      case kUint16:
        return decode_as<std::uint16_t>(tag, rows, cols, name);
      case kInt32:
        return decode_as<std::int32_t>(tag, rows, cols, name);
      case kUint32:
        return decode_as<std::uint32_t>(tag, rows, cols, name);
      case kInt64:
        return decode_as<std::int64_t>(tag, rows, cols, name);
      case kUint64:
        return decode_as<std::uint64_t>(tag, rows, cols, name);
      case kSingle:
        return decode_as<float>(tag, rows, cols, name);
      case kDouble:
        return decode_as<double>(tag, rows, cols, name);
      default:
        fail(Exit::data, "{}: '{}' has numbers of unknown type {}", in_.place(), name, tag.type);
    }
  }

  template <class S>
  Matrix<float> decode_as(const Tag& tag, std::uint64_t rows, std::uint64_t cols, const std::string& name) {
    if (tag.size / sizeof(S) != rows * cols || tag.size % sizeof(S) != 0)
      fail(Exit::data, "{}: '{}' is {} x {} but has {} bytes of {}-byte numbers", in_.place(), name, rows,
           cols, tag.size, sizeof(S));
    Matrix<float> out(rows, cols);
    if (rows == 0 || cols == 0) return out;
    if (tag.is_small) {
      convert_block<S>(tag.small, 0, rows, 0, cols, out, name);
      return out;
    }
    // Whole columns, about 256 kB of them; a longer column comes in parts.
    constexpr std::size_t kBlock = std::size_t{1} << 18;
    const std::size_t height = std::min<std::size_t>(rows, kBlock / sizeof(S));
    const std::size_t width = std::clamp<std::size_t>(kBlock / (height * sizeof(S)), 1, cols);
    std::vector<std::byte> block(height * width * sizeof(S));
    for (std::size_t column = 0; column < cols; column += width)
      for (std::size_t row = 0; row < rows; row += height) {
        const std::size_t h = std::min(height, rows - row), w = std::min<std::size_t>(width, cols - column);
        const auto part = std::span(block).first(h * w * sizeof(S));
        in_.read(part);
        convert_block<S>(part, row, h, column, w, out, name);
      }
    in_.skip(tag.padded() - tag.size);
    return out;
  }

  template <class S>
  void convert_block(std::span<const std::byte> block, std::size_t row, std::size_t height,
                     std::size_t column, std::size_t width, Matrix<float>& out,
                     const std::string& name) const {
    bool exact = true;
    for (std::size_t i = 0; i < height; ++i) {
      float* to = out.data() + (row + i) * out.cols() + column;
      const std::byte* from = block.data() + i * sizeof(S);
      for (std::size_t j = 0; j < width; ++j) {
        S value;
        std::memcpy(&value, from + j * height * sizeof(S), sizeof(S));
        if (swapped_) value = byte_swapped(value);
        exact &= to_float(value, to[j]);
      }
    }
    for (std::size_t j = 0; j < width && !exact; ++j)
      for (std::size_t i = 0; i < height; ++i) {
        const S value = value_at<S>(block, j * height + i);
        float ignored = 0;
        if (!to_float(value, ignored)) refuse_float(in_.where(), name, row + i, column + j, value);
      }
  }

  // Compressed columns in the file, compressed rows in memory.
  void sparse(const ArrayHeader& h, std::uint64_t end, MatValue& out) {
    const std::uint64_t rows = h.rows(), cols = h.cols();
    check_backed(rows, end - in_.position(), "rows", in_.where());
    const auto whole_numbers = [&](const char* what) {
      const Tag tag = inner_tag(end);
      if (tag.type != kInt32 && tag.type != kUint32)
        fail(Exit::data, "{}: the {} of sparse '{}' have type {}, expected 32-bit integers", in_.place(),
             what, h.name, tag.type);
      return small_data(tag, tag.size);
    };
    const auto row_of = whole_numbers("row numbers"), start_of = whole_numbers("column starts");
    if (start_of.size() / 4 != cols + 1)
      fail(Exit::data, "{}: sparse '{}' has {} column starts, expected {}", in_.place(), h.name,
           start_of.size() / 4, cols + 1);
    const std::uint64_t count = value_at<std::uint32_t>(start_of, cols);
    const Tag tag = inner_tag(end);
    const std::uint64_t stored = tag.size / std::max<std::size_t>(1, storage_size(tag.type));
    if (count > row_of.size() / 4 || count > stored)
      fail(Exit::data, "{}: sparse '{}' claims {} values, has {} row numbers and {} values", in_.place(),
           h.name, count, row_of.size() / 4, stored);
    const Matrix<float> values = decode(tag, 1, stored, h.name);
    Matrix<std::uint64_t> start(1, rows + 1);
    for (std::uint64_t k = 0; k < count; ++k) {
      const auto i = value_at<std::uint32_t>(row_of, k);
      if (i >= rows)
        fail(Exit::data, "{}: sparse '{}' has a value in row {} of {}", in_.place(), h.name, i, rows);
      ++start(0, i + 1);
    }
    for (std::uint64_t i = 0; i < rows; ++i) start(0, i + 1) += start(0, i);
    Matrix<std::uint32_t> index(1, count);
    Matrix<float> value(1, count);
    std::vector<std::uint64_t> next(start.values().begin(), start.values().end() - 1);
    for (std::uint64_t j = 0; j < cols; ++j) {
      const std::uint64_t from = value_at<std::uint32_t>(start_of, j),
                          to = value_at<std::uint32_t>(start_of, j + 1);
      if (from > to || to > count)
        fail(Exit::data, "{}: column {} of sparse '{}' spans {} to {}", in_.place(), j, h.name, from, to);
      for (std::uint64_t k = from; k < to; ++k) {
        const std::uint64_t at = next[value_at<std::uint32_t>(row_of, k)]++;
        if (at >= count) fail(Exit::data, "{}: the columns of sparse '{}' overlap", in_.place(), h.name);
        index(0, at) = static_cast<std::uint32_t>(j);
        value(0, at) = values(0, k);
      }
    }
    out.sparse = Csr{std::move(start), std::move(index), std::move(value), cols};
  }

  static std::size_t storage_size(std::uint32_t type) {
    switch (type) {
      case kInt8:
      case kUint8:
        return 1;
      case kInt16:
      case kUint16:
        return 2;
      case kInt32:
      case kUint32:
      case kSingle:
        return 4;
      default:
        return 8;
    }
  }

  void text(const ArrayHeader& h, std::uint64_t end, MatValue& out) {
    if (in_.position() >= end) return;  // an empty text may lack its data
    const Tag tag = inner_tag(end);
    const auto data = small_data(tag, std::size_t{1} << 28);
    std::u32string units;
    if (tag.type == kUtf8 || tag.type == kInt8 || tag.type == kUint8) {
      units = to_code_points(utf8_or_latin1({reinterpret_cast<const char*>(data.data()), data.size()}));
    } else if (tag.type == kUint16 || tag.type == kUtf16) {
      for (std::size_t i = 0; i < data.size() / 2; ++i) units += value_at<std::uint16_t>(data, i);
    } else if (tag.type == kUtf32) {
      for (std::size_t i = 0; i < data.size() / 4; ++i) units += value_at<std::uint32_t>(data, i);
    } else {
      fail(Exit::data, "{}: '{}' has text of unknown type {}", in_.place(), h.name, tag.type);
    }
    const std::uint64_t rows = h.rows();
    for (std::uint64_t i = 0; i < rows && i < units.size(); ++i) {
      std::u32string row;
      for (std::uint64_t at = i; at < units.size(); at += rows) {
        const char32_t unit = units[at];
        if (unit == 0) continue;
        if (unit >= 0xDC00 && unit < 0xE000 && !row.empty() && row.back() >= 0xD800 && row.back() < 0xDC00)
          row.back() = 0x10000 + ((row.back() - 0xD800) << 10) + (unit - 0xDC00);
        else
          row += unit;
      }
      if (rows > 1)
        row.resize(row.find_last_not_of(U' ') + 1);  // the rows of a char array are padded to one length
      out.text.push_back(from_code_points(row));
    }
  }

  Stream& in_;
  bool swapped_;
  const std::vector<std::string>* wanted_;
};

}  // namespace

std::vector<MatValue> read_mat5(const std::shared_ptr<const MappedFile>& file,
                                const std::vector<std::string>& names) {
  const Bytes bytes = file->bytes();
  const std::string& path = file->path();
  const bool swapped = bytes[126] == std::byte{'M'};
  const auto word = [&](std::size_t at) {
    std::uint32_t value;
    std::memcpy(&value, bytes.data() + at, sizeof(value));
    return swapped ? byte_swapped(value) : value;
  };
  std::vector<MatValue> values;
  for (std::size_t at = kFileHeader; at < bytes.size();) {
    if (bytes.size() - at < 8) fail(Exit::data, "{}: ends within an element at byte {}", path, at);
    const std::uint32_t type = word(at), size = word(at + 4);
    if (size > bytes.size() - at - 8)
      fail(Exit::data,
           "{}: the variable at byte {} has {} bytes, the file only {} more; it is cut off or damaged", path,
           at, size, bytes.size() - at - 8);
    const Bytes body = bytes.subspan(at + 8, size);
    MatValue value;
    if (type == kCompressed) {
      Inflate peek(body, Inflate::Wrapping::zlib, path, at + 8);
      std::array<std::byte, 8> tag;
      std::uint32_t claimed = 0;
      if (peek.read(tag) == tag.size()) std::memcpy(&claimed, tag.data() + 4, sizeof(claimed));
      verify_expansion(body, Inflate::Wrapping::zlib,
                       std::uint64_t{swapped ? byte_swapped(claimed) : claimed} + 8, path, at + 8);
      Inflate packed(body, Inflate::Wrapping::zlib, path, at + 8);
      Stream stream(&packed, path, at);
      if (Reader(stream, swapped, &names).matrix(value)) values.push_back(std::move(value));
      at += 8 + size;
    } else {
      if (type == kMatrix) {
        Stream stream(bytes.subspan(at, 8 + std::size_t{size}), path, at);
        if (Reader(stream, swapped, &names).matrix(value)) values.push_back(std::move(value));
      }
      at += 8 + (std::size_t{size} + 7) / 8 * 8;
    }
  }
  return values;
}

}  // namespace lacuna
