// Writing level 5 MATLAB files: each variable compressed, as MATLAB does since level 7.
#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "data/mat5.h"
#include "data/names.h"

namespace lacuna {
namespace {

using namespace mat5;

struct Storage {
  const char* name;
  std::uint32_t type, array_class;
  std::size_t size;
};
constexpr Storage kStorages[] = {
    {"float32", kSingle, kSingleClass, 4}, {"float64", kDouble, kDoubleClass, 8},
    {"int8", kInt8, kInt8Class, 1},        {"uint8", kUint8, kUint8Class, 1},
    {"logical", kUint8, kUint8Class, 1},   {"int16", kInt16, kInt16Class, 2},
    {"uint16", kUint16, kUint16Class, 2},  {"int32", kInt32, kInt32Class, 4},
    {"uint32", kUint32, kUint32Class, 4},
};

const Storage& storage_of(const MatValue& value) {
  for (const auto& storage : kStorages)
    if (value.type == storage.name) return storage;
  fail(Exit::failed, "numbers of type '{}' cannot be written to a MATLAB file", value.type);
}

// ASCII goes as UTF-8, anything else as UTF-16: what other readers expect of a count of characters.
bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; });
}

std::uint64_t padded(std::uint64_t size) {
  return (size + 7) / 8 * 8;
}

std::u16string utf16(const std::string& text) {
  std::u16string out;
  for (char32_t point : to_code_points(text)) {
    if (point >= 0x10000) {
      out += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10));
      point = 0xDC00 + ((point - 0x10000) & 0x3FF);
    }
    out += static_cast<char16_t>(point);
  }
  return out;
}

// Bytes of the array element's body, its own tag not counted.
std::uint64_t body_size(const MatValue& value) {
  const std::uint64_t header = 16 + 16 + 8 + padded(value.name.size());
  if (value.type == "cell") {
    std::uint64_t size = header;
    for (const auto& cell : value.cells) size += 8 + body_size(cell);
    return size;
  }
  if (value.type == "char") {
    const std::string text = value.text.empty() ? "" : value.text[0];
    return header + 8 + padded(is_ascii(text) ? text.size() : 2 * utf16(text).size());
  }
  if (value.sparse) {
    const std::uint64_t count = value.sparse->value.cols();
    return header + 8 + padded(4 * count) + 8 + padded(4 * (value.sparse->columns + 1)) + 8 + 8 * count;
  }
  return header + 8 + padded(storage_of(value).size * value.values.view().size());
}

class Mat5Writer {
 public:
  explicit Mat5Writer(std::string& out) : out_(out), buffer_(std::size_t{1} << 18) {
    if (deflateInit(&stream_, 3) != Z_OK) fail(Exit::failed, "zlib cannot start");
  }
  ~Mat5Writer() { deflateEnd(&stream_); }
  Mat5Writer(const Mat5Writer&) = delete;
  Mat5Writer& operator=(const Mat5Writer&) = delete;

  void matrix(const MatValue& value) {
    tag(kMatrix, body_size(value));
    if (value.type == "cell") {
      header(value, kCellClass, value.shape);
      for (const auto& cell : value.cells) matrix(cell);
    } else if (value.type == "char") {
      const std::string text = value.text.empty() ? "" : value.text[0];
      const auto units = utf16(text);
      header(value, kCharClass, {text.empty() ? 0u : 1u, units.size()});
      if (is_ascii(text))
        element(kUtf8, as_bytes(text));
      else
        element(kUtf16, std::as_bytes(std::span(units)));
    } else if (value.sparse) {
      sparse(value);
    } else {
      numbers(value);
    }
  }
  void finish() { push({}, true); }

 private:
  void push(Bytes bytes, bool last = false) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      stream_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      out_.append(buffer_.data(), buffer_.size() - stream_.avail_out);
    } while (stream_.avail_out == 0);
  }
  void words(std::initializer_list<std::uint32_t> values) {
    push(std::as_bytes(std::span(values.begin(), values.size())));
  }
  void tag(std::uint32_t type, std::uint64_t size) { words({type, static_cast<std::uint32_t>(size)}); }
  void pad(std::uint64_t size) {
    static constexpr std::byte kZeros[8]{};
    push(Bytes(kZeros).first(padded(size) - size));
  }
  void element(std::uint32_t type, Bytes bytes) {
    tag(type, bytes.size());
    push(bytes);
    pad(bytes.size());
  }
  void header(const MatValue& value, std::uint32_t array_class, const std::vector<std::uint64_t>& shape,
              std::uint32_t most = 0) {
    words({kUint32, 8, array_class | (value.type == "logical" ? kLogicalFlag : 0u), most});
    words({kInt32, 8, static_cast<std::uint32_t>(shape[0]), static_cast<std::uint32_t>(shape[1])});
    element(kInt8, as_bytes(value.name));
  }

  void numbers(const MatValue& value) {
    const Storage& storage = storage_of(value);
    header(value, storage.array_class, {value.values.rows(), value.values.cols()});
    tag(storage.type, storage.size * value.values.view().size());
    switch (storage.type) {
      case kSingle:
        columns<float>(value);
        break;
      case kDouble:
        columns<double>(value);
        break;
      case kInt8:
        columns<std::int8_t>(value);
        break;
      case kUint8:
        columns<std::uint8_t>(value);
        break;
      case kInt16:
        columns<std::int16_t>(value);
        break;
      case kUint16:
        columns<std::uint16_t>(value);
        break;
      case kInt32:
        columns<std::int32_t>(value);
        break;
      default:
        columns<std::uint32_t>(value);
        break;
    }
    pad(storage.size * value.values.view().size());
  }

  template <class T>
  void columns(const MatValue& value) {
    const auto from = value.values.view();
    std::vector<T> column(from.rows);
    for (std::size_t j = 0; j < from.cols; ++j) {
      for (std::size_t i = 0; i < from.rows; ++i) {
        column[i] = static_cast<T>(from(i, j));
        assert(static_cast<float>(column[i]) == from(i, j) || from(i, j) != from(i, j));
      }
      push(std::as_bytes(std::span(column)));
    }
  }

  void sparse(const MatValue& value) {
    const Csr& csr = *value.sparse;
    const std::size_t rows = csr.start.cols() - 1, count = csr.value.cols();
    header(value, kSparseClass, {rows, csr.columns},
           static_cast<std::uint32_t>(std::max<std::size_t>(1, count)));
    std::vector<std::uint32_t> start(csr.columns + 1), row(count);
    std::vector<double> values(count);
    for (std::size_t k = 0; k < count; ++k) ++start[csr.index(0, k) + 1];
    for (std::size_t j = 0; j < csr.columns; ++j) start[j + 1] += start[j];
    std::vector<std::uint32_t> next(start.begin(), start.end() - 1);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::uint64_t k = csr.start(0, i); k < csr.start(0, i + 1); ++k) {
        const std::uint32_t at = next[csr.index(0, k)]++;
        row[at] = static_cast<std::uint32_t>(i);
        values[at] = double{csr.value(0, k)};
      }
    element(kInt32, std::as_bytes(std::span(row)));
    element(kInt32, std::as_bytes(std::span(start)));
    element(kDouble, std::as_bytes(std::span(values)));
  }

  std::string& out_;
  std::vector<char> buffer_;
  z_stream stream_{};
};

}  // namespace

void write_mat(const std::string& path, std::span<const MatValue> values) {
  constexpr std::uint64_t kMost =
      INT32_MAX - 1024;  // level 5 counts bytes in 32 bits; MATLAB reads 31 of them
  for (const auto& value : values)
    if (body_size(value) > kMost) return write_mat73(path, values);
  AtomicFile file(path);
  std::string header = "MATLAB 5.0 MAT-file, written by lacuna";
  header.resize(124, ' ');
  header += std::string("\x00\x01IM", 4);
  file.write(header);
  for (const auto& value : values) {
    std::string packed;
    Mat5Writer writer(packed);
    writer.matrix(value);
    writer.finish();
    const std::uint32_t tag[2] = {kCompressed, static_cast<std::uint32_t>(packed.size())};
    file.write(std::as_bytes(std::span(tag)));
    file.write(packed);
  }
  file.commit();
}

}  // namespace lacuna
