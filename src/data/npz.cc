// The zip container of .npz files: central directory, stored and deflated entries, sizes beyond 4 GB (zip64).
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "data/inflate.h"
#include "data/names.h"
#include "data/npy.h"

namespace lacuna {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kLocator64 = 0x07064b50, kDescriptor = 0x08074b50;

struct ZipEntry {
  std::string name;
  std::uint16_t method = 0, flags = 0;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, size = 0, offset = 0;  // offset: of the local header
};

// Little-endian numbers at checked places.
class Fields {
 public:
  Fields(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}
  template <class T>
  T at(std::uint64_t offset) const {
    need(offset, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  Bytes span(std::uint64_t offset, std::uint64_t size) const {
    need(offset, size);
    return bytes_.subspan(offset, size);
  }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  void need(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      fail(Exit::data, "{}: ends at byte {}, the zip directory points to bytes {} to {}", where_,
           bytes_.size(), offset, offset + size);
  }
  Bytes bytes_;
  const std::string& where_;
};

std::vector<ZipEntry> read_directory(const Fields& f, const std::string& where) {
  // The end record is the last 22 bytes, before a comment of at most 65535.
  std::optional<std::uint64_t> end;
  for (std::uint64_t back = 22; back <= 22 + 65535 && back <= f.size() && !end; ++back)
    if (f.at<std::uint32_t>(f.size() - back) == kEnd) end = f.size() - back;
  if (!end) fail(Exit::data, "{}: is not a zip archive or is cut off: it has no end record", where);
  std::uint64_t count = f.at<std::uint16_t>(*end + 10), at = f.at<std::uint32_t>(*end + 16);
  if ((at == UINT32_MAX || count == UINT16_MAX) && *end >= 20 &&
      f.at<std::uint32_t>(*end - 20) == kLocator64) {
    const auto end64 = f.at<std::uint64_t>(*end - 12);
    if (f.at<std::uint32_t>(end64) != kEnd64) fail(Exit::data, "{}: the zip64 end record is damaged", where);
    count = f.at<std::uint64_t>(end64 + 32);
    at = f.at<std::uint64_t>(end64 + 48);
  }
  if (count > f.size() / 46) fail(Exit::data, "{}: the zip directory promises {} entries", where, count);
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (f.at<std::uint32_t>(at) != kCentral)
      fail(Exit::data, "{}: entry {} of the zip directory at byte {} is damaged", where, i, at);
    ZipEntry e;
    e.flags = f.at<std::uint16_t>(at + 8);
    e.method = f.at<std::uint16_t>(at + 10);
    e.crc = f.at<std::uint32_t>(at + 16);
    e.packed = f.at<std::uint32_t>(at + 20);
    e.size = f.at<std::uint32_t>(at + 24);
    const std::uint64_t name = f.at<std::uint16_t>(at + 28), extra = f.at<std::uint16_t>(at + 30),
                        comment = f.at<std::uint16_t>(at + 32);
    e.offset = f.at<std::uint32_t>(at + 42);
    const Bytes text = f.span(at + 46, name);
    e.name = utf8_or_latin1({reinterpret_cast<const char*>(text.data()), text.size()});
    const std::uint64_t extra_end = at + 46 + name + extra;
    for (std::uint64_t x = at + 46 + name; x + 4 <= extra_end;) {
      const auto id = f.at<std::uint16_t>(x), length = f.at<std::uint16_t>(x + 2);
      std::uint64_t field = x + 4;
      x = field + length;
      if (id != 1 || x > extra_end) continue;
      for (auto* value : {&e.size, &e.packed, &e.offset})
        if (*value == UINT32_MAX && field + 8 <= x) {
          *value = f.at<std::uint64_t>(field);
          field += 8;
        }
    }
    at = extra_end + comment;
    entries.push_back(std::move(e));
  }
  return entries;
}

Array read_entry(const std::shared_ptr<const MappedFile>& file, const Fields& f, const ZipEntry& e,
                 const std::string& where) {
  if (f.at<std::uint32_t>(e.offset) != kLocal)
    fail(Exit::data, "{}: no zip entry starts at byte {}", where, e.offset);
  const std::uint64_t begin =
      e.offset + 30 + f.at<std::uint16_t>(e.offset + 26) + f.at<std::uint16_t>(e.offset + 28);
  const Bytes packed = f.span(begin, e.packed);
  if ((e.flags & 1) != 0) fail(Exit::data, "{}: is encrypted", where);
  Bytes bytes = packed;
  std::shared_ptr<const void> owner = file;
  if (e.method == 8) {
    verify_expansion(packed, Inflate::Wrapping::none, e.size, where, begin);
    auto memory = std::make_shared<Matrix<std::byte>>(1, e.size);
    Inflate stream(packed, Inflate::Wrapping::none, where, begin);
    if (stream.read(memory->values()) != e.size)
      fail(Exit::data, "{}: {} bytes come out of the compressed entry, the directory promises {}", where,
           stream.produced(), e.size);
    bytes = memory->values();
    owner = std::move(memory);
  } else if (e.method != 0) {
    fail(Exit::data, "{}: compression method {} is not supported (stored and deflate are)", where, e.method);
  } else if (e.packed != e.size) {
    fail(Exit::data, "{}: a stored entry of {} bytes claims {}", where, e.packed, e.size);
  }
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (crc != e.crc)
    fail(Exit::data, "{}: the checksum is {:08x}, the directory says {:08x}: the entry is damaged", where,
         crc, e.crc);
  Array array = parse_npy(std::move(owner), bytes, where);
  array.name = e.name.substr(0, e.name.size() - 4);
  return array;
}

// Writes numbers little-endian.
template <class... T>
std::string packed(T... values) {
  std::string out;
  (out.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
  return out;
}

class Deflate {
 public:
  explicit Deflate(AtomicFile& file) : file_(file), buffer_(std::size_t{1} << 18) {
    if (deflateInit2(&stream_, 1, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
      fail(Exit::failed, "zlib cannot start");
  }
  ~Deflate() { deflateEnd(&stream_); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  void add(Bytes bytes, bool last) {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    do {
      const std::size_t n = std::min(bytes.size(), kPiece);
      if (n > 0)  // for an empty span zlib would start the sum anew
        crc_ = static_cast<std::uint32_t>(crc32_z(crc_, reinterpret_cast<const Bytef*>(bytes.data()), n));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(n);
      bytes = bytes.subspan(n);
      const bool finish = last && bytes.empty();
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_out = static_cast<uInt>(buffer_.size());
        deflate(&stream_, finish ? Z_FINISH : Z_NO_FLUSH);
        file_.write(Bytes(buffer_).first(buffer_.size() - stream_.avail_out));
      } while (stream_.avail_out == 0);
    } while (!bytes.empty());
  }
  std::uint32_t crc() const { return crc_; }

 private:
  AtomicFile& file_;
  std::vector<std::byte> buffer_;
  z_stream stream_{};
  std::uint32_t crc_ = 0;
};

}  // namespace

std::vector<Array> read_npz(const std::string& path) {
  const auto file = MappedFile::open(path);
  const Fields fields(file->bytes(), path);
  std::vector<Array> arrays;
  for (const auto& entry : read_directory(fields, path)) {
    if (!entry.name.ends_with(".npy")) continue;  // folders and foreign entries
    arrays.push_back(read_entry(file, fields, entry, fmt::format("{}[{}]", path, entry.name)));
  }
  return arrays;
}

void write_npz(const std::string& path, std::span<const Array> arrays) {
  // Sizes come behind the data (flag 8), so that an entry is written in one go.
  constexpr std::uint16_t kFlags = 8 | 0x800, kDeflate = 8, kVersion = 45, kTime = 0, kDate = 0x21;
  AtomicFile file(path);
  std::string directory;
  for (const auto& array : arrays) {
    const std::string name = array.name + ".npy", header = npy_header(array);
    if (name.size() > UINT16_MAX)
      fail(Exit::failed, "{}: a name of {} bytes does not fit a zip entry", path, name.size());
    const std::string text = array.type == Element::text ? npy_text(array) : std::string();
    const Bytes values = array.type == Element::text ? as_bytes(text) : array.bytes;
    const std::uint64_t offset = file.position(), size = header.size() + values.size();
    const std::string extra64 =
        packed(std::uint16_t{1}, std::uint16_t{16}, std::uint64_t{0}, std::uint64_t{0});
    file.write(packed(kLocal, kVersion, kFlags, kDeflate, kTime, kDate, std::uint32_t{0}, UINT32_MAX,
                      UINT32_MAX, static_cast<std::uint16_t>(name.size()),
                      static_cast<std::uint16_t>(extra64.size())) +
               name + extra64);
    const std::uint64_t begin = file.position();
    Deflate deflate(file);
    deflate.add(as_bytes(header), false);
    deflate.add(values, true);
    const std::uint64_t length = file.position() - begin;
    file.write(packed(kDescriptor, deflate.crc(), length, size));
    const std::string extra = packed(std::uint16_t{1}, std::uint16_t{24}, size, length, offset);
    directory +=
        packed(kCentral, kVersion, kVersion, kFlags, kDeflate, kTime, kDate, deflate.crc(), UINT32_MAX,
               UINT32_MAX, static_cast<std::uint16_t>(name.size()), static_cast<std::uint16_t>(extra.size()),
               std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, std::uint32_t{0}, UINT32_MAX) +
        name + extra;
  }
  const std::uint64_t begin = file.position(), count = arrays.size();
  file.write(directory);
  const std::uint64_t end = file.position();
  file.write(packed(kEnd64, std::uint64_t{44}, kVersion, kVersion, std::uint32_t{0}, std::uint32_t{0}, count,
                    count, std::uint64_t{directory.size()}, begin));
  file.write(packed(kLocator64, std::uint32_t{0}, end, std::uint32_t{1}));
  file.write(packed(kEnd, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{UINT16_MAX},
                    std::uint16_t{UINT16_MAX}, UINT32_MAX, UINT32_MAX, std::uint16_t{0}));
  file.commit();
}

}  // namespace lacuna
