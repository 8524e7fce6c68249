#include "data/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "data/names.h"

namespace lacuna {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are used as they lie");

struct Header {
  std::size_t size = 0;  // bytes before the values
  char kind = 0;         // 'f', 'i', 'u', 'b', 'U', 'S'
  std::uint64_t item = 0;
  bool swapped = false, column_major = false;
  std::vector<std::uint64_t> shape;
};

// The value of a key in the header's Python dictionary: the text behind "'key':".
std::string_view dictionary_value(std::string_view header, std::string_view key, const std::string& where) {
  for (const char quote : {'\'', '"'}) {
    const std::string pattern = quote + std::string(key) + quote;
    const auto at = header.find(pattern);
    if (at == std::string_view::npos) continue;
    auto rest = header.substr(at + pattern.size());
    rest = rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
    if (!rest.starts_with(':')) break;
    rest.remove_prefix(1);
    return rest.substr(std::min(rest.size(), rest.find_first_not_of(' ')));
  }
  fail(Exit::data, "{}: the .npy header lacks '{}'", where, std::string(key));
}

Header parse_header(Bytes bytes, const std::string& where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY"))
    fail(Exit::data, "{}: is not a .npy array: the magic bytes are missing", where);
  if (text.size() < 10) fail(Exit::data, "{}: ends within the .npy header at byte {}", where, text.size());
  const int major = text[6];
  if (major < 1 || major > 3) fail(Exit::data, "{}: .npy version {} is unknown (1 to 3 are)", where, major);
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<std::uint8_t>(text[i])}; };
  Header header;
  const std::size_t prefix = major == 1 ? 10 : 12;
  if (text.size() < prefix)
    fail(Exit::data, "{}: ends within the .npy header at byte {}", where, text.size());
  const std::size_t length = byte(8) | byte(9) << 8 | (major == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > text.size() - prefix)
    fail(Exit::data, "{}: the .npy header claims {} bytes, {} are there", where, length,
         text.size() - prefix);
  header.size = prefix + length;
  const auto dictionary = text.substr(prefix, length);

  auto type = dictionary_value(dictionary, "descr", where);
  if (type.empty() || (type[0] != '\'' && type[0] != '"'))
    fail(Exit::data, "{}: is an array of records; only plain numbers and text are read", where);
  type = type.substr(1, type.find(type[0], 1) - 1);
  if (type.size() >= 3 && std::string_view("<>|=").find(type[0]) != std::string_view::npos) {
    header.swapped = type[0] == '>';
    header.kind = type[1];
    const auto [end, error] = std::from_chars(type.data() + 2, type.data() + type.size(), header.item);
    if (error != std::errc() || end != type.data() + type.size()) header.kind = 0;
  }
  if (type.ends_with('O'))
    fail(Exit::data,
         "{}: contains pickled Python objects, which are never read; save plain arrays, with .astype(str) for "
         "names and .astype(float) for numbers",
         where);
  if (header.kind == 0 || std::string_view("fiubUS").find(header.kind) == std::string_view::npos)
    fail(Exit::data, "{}: element type '{}' is not supported", where, utf8_or_latin1(type));

  const auto order = dictionary_value(dictionary, "fortran_order", where);
  header.column_major = order.starts_with("True");
  if (!header.column_major && !order.starts_with("False"))
    fail(Exit::data, "{}: the .npy header's fortran_order is neither True nor False", where);

  auto shape = dictionary_value(dictionary, "shape", where);
  const auto close = shape.find(')');
  if (!shape.starts_with('(') || close == std::string_view::npos)
    fail(Exit::data, "{}: the .npy header's shape is not a tuple", where);
  shape = shape.substr(1, close - 1);
  for (auto part : split(shape, ',')) {
    part = trim(part);
    if (part.empty()) continue;
    const auto size = parse_int(part);
    if (!size || *size < 0 || header.shape.size() == 8)
      fail(Exit::data, "{}: the .npy header's shape ({}) is not up to 8 sizes", where, utf8_or_latin1(shape));
    header.shape.push_back(static_cast<std::uint64_t>(*size));
  }
  return header;
}

std::optional<Element> element_of(const Header& header) {
  const auto at =
      [&](std::initializer_list<std::pair<std::uint64_t, Element>> sizes) -> std::optional<Element> {
    for (const auto& [size, element] : sizes)
      if (size == header.item) return element;
    return std::nullopt;
  };
  switch (header.kind) {
    case 'f':
      return at({{2, Element::f16}, {4, Element::f32}, {8, Element::f64}});
    case 'i':
      return at({{1, Element::i8}, {2, Element::i16}, {4, Element::i32}, {8, Element::i64}});
    case 'u':
      return at({{1, Element::u8}, {2, Element::u16}, {4, Element::u32}, {8, Element::u64}});
    case 'b':
      return at({{1, Element::boolean}});
    default:
      return Element::text;
  }
}

// Values in the machine's byte order; a copy only where the file's differs.
void swap_bytes(Array& array, std::size_t size) {
  auto copy = std::make_shared<std::vector<std::byte>>(array.bytes.begin(), array.bytes.end());
  for (std::size_t at = 0; at + size <= copy->size(); at += size)
    std::reverse(copy->begin() + static_cast<std::ptrdiff_t>(at),
                 copy->begin() + static_cast<std::ptrdiff_t>(at + size));
  array.bytes = *copy;
  array.owner = std::move(copy);
}

void decode_text(Array& array, const Header& header) {
  const std::size_t item = header.kind == 'U' ? header.item * 4 : header.item;
  array.text.reserve(item == 0 ? 0 : array.count());
  for (std::size_t at = 0; item != 0 && at < array.bytes.size(); at += item) {
    const Bytes cell = array.bytes.subspan(at, item);
    if (header.kind == 'S') {
      std::string_view text(reinterpret_cast<const char*>(cell.data()), cell.size());
      array.text.push_back(utf8_or_latin1(text.substr(0, text.find_last_not_of('\0') + 1)));
    } else {
      std::u32string points(header.item, U'\0');
      std::memcpy(points.data(), cell.data(), cell.size());
      points.resize(points.find_last_not_of(U'\0') + 1);
      array.text.push_back(from_code_points(points));
    }
  }
  if (item == 0) array.text.resize(std::min<std::uint64_t>(array.count(), 1u << 20));
  array.bytes = {};
  array.owner.reset();
}

}  // namespace

Array parse_npy(std::shared_ptr<const void> owner, Bytes bytes, const std::string& where) {
  const Header header = parse_header(bytes, where);
  Array array;
  array.shape = header.shape;
  array.column_major = header.column_major && header.shape.size() > 1;
  const auto element = element_of(header);
  if (!element)
    fail(Exit::data, "{}: numbers of kind '{}' with {} bytes are not supported", where, header.kind,
         header.item);
  array.type = *element;
  std::uint64_t size = header.kind == 'U' ? 4 : 1;
  bool fits = !__builtin_mul_overflow(size, header.item, &size);
  for (auto n : header.shape) fits = fits && !__builtin_mul_overflow(size, n, &size);
  const std::size_t there = bytes.size() - header.size;
  if (!fits || size > there)
    fail(Exit::data, "{}: the header promises {} values of {} bytes, only {} bytes follow it", where,
         shape_text(header.shape), header.item, there);
  if (size == 0 && array.count() > (1u << 20))  // text of no width: nothing in the file backs the count
    fail(Exit::data, "{}: the header promises {} texts of length 0", where, shape_text(header.shape));
  if (size == 0 && std::ranges::any_of(header.shape, [](auto n) { return n > (1u << 20); }))
    fail(Exit::data, "{}: the header promises {}, which holds no value", where, shape_text(header.shape));
  array.bytes = bytes.subspan(header.size, size);
  array.owner = std::move(owner);
  if (header.swapped && header.item * (header.kind == 'U' ? 4 : 1) > 1 && header.kind != 'S')
    swap_bytes(array, header.kind == 'U' ? 4 : header.item);
  if (array.type == Element::text) decode_text(array, header);
  return array;
}

Array read_npy(const std::string& path) {
  const auto file = MappedFile::open(path);
  return parse_npy(file, file->bytes(), path);
}

std::string npy_header(const Array& array) {
  static constexpr const char* kTypes[] = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4",
                                           "<i8", "<u8", "<f2", "<f4", "<f8", ""};
  std::string type = kTypes[static_cast<std::size_t>(array.type)];
  if (array.type == Element::text) {
    std::size_t width = 1;
    for (const auto& text : array.text) width = std::max(width, to_code_points(text).size());
    type = fmt::format("<U{}", width);
  }
  std::string shape;
  for (auto size : array.shape) shape += fmt::format("{}, ", size);
  if (array.shape.size() > 1) shape.resize(shape.size() - 2);
  if (array.shape.size() == 1) shape.pop_back();
  std::string dictionary = fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': ({}), }}", type,
                                       array.column_major ? "True" : "False", shape);
  const std::size_t total = (10 + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(total - 10 - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(dictionary.size() & 255);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

std::string npy_text(const Array& array) {
  std::size_t width = 1;
  for (const auto& text : array.text) width = std::max(width, to_code_points(text).size());
  std::string out;
  for (const auto& text : array.text) {
    std::u32string points = to_code_points(text);
    points.resize(width);
    out.append(reinterpret_cast<const char*>(points.data()), width * sizeof(char32_t));
  }
  return out;
}

void write_npy(const std::string& path, const Array& array) {
  AtomicFile file(path);
  file.write(npy_header(array));
  array.type == Element::text ? file.write(npy_text(array)) : file.write(array.bytes);
  file.commit();
}

const Array* find_array(std::span<const Array> arrays, const std::string& name) {
  const auto at = std::ranges::find(arrays, name, &Array::name);
  return at == arrays.end() ? nullptr : &*at;
}

}  // namespace lacuna
