#include "data/text_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/inflate.h"
#include "data/names.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

// Tables shrink to a tenth, tables of zeros to a hundredth; what shrank much more is a trap.
constexpr std::uint64_t kMostGrowth = 128, kAlways = std::uint64_t{1} << 26;

std::string unpacked(const MappedFile& file) {
  const std::uint64_t most = std::max(kAlways, kMostGrowth * file.size());
  Inflate stream(file.bytes(), Inflate::Wrapping::gzip, file.path(), 0);
  std::string out, piece(std::size_t{1} << 20, 0);
  for (;;) {
    const std::size_t got = stream.read(std::as_writable_bytes(std::span(piece.data(), piece.size())));
    if (out.size() + got > most)
      fail(Exit::data, "{}: {} bytes unpack to more than {}; unpack it yourself if that is meant",
           file.path(), file.size(), bytes_text(static_cast<double>(most)));
    out.append(piece, 0, got);
    if (got < piece.size()) return out;
  }
}

std::string from_utf16(std::string_view bytes, bool big, const std::string& where) {
  if (bytes.size() % 2 != 0)
    fail(Exit::data, "{}: UTF-16 text of {} bytes ends within a character", where, bytes.size());
  std::string out;
  out.reserve(bytes.size() / 2);
  const auto unit = [&](std::size_t i) {
    const auto a = static_cast<unsigned char>(bytes[i]), b = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<char32_t>(big ? a << 8 | b : b << 8 | a);
  };
  for (std::size_t i = 0; i < bytes.size(); i += 2) {
    char32_t point = unit(i);
    if (point >= 0xD800 && point < 0xDC00 && i + 3 < bytes.size()) {
      const char32_t low = unit(i + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        i += 2;
      }
    }
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else {
      out += from_code_points(std::u32string_view(&point, 1));
    }
  }
  return out;
}

TextFile own(std::string&& text) {
  const auto owner = std::make_shared<const std::string>(std::move(text));
  return {owner, *owner};
}

}  // namespace

TextFile open_text(const std::string& path) {
  const auto file = MappedFile::open(path);
  TextFile out{file, file->text()};
  if (out.text.starts_with("\x1f\x8b")) out = own(unpacked(*file));
  if (out.text.starts_with("\xFF\xFE") || out.text.starts_with("\xFE\xFF"))
    return own(from_utf16(out.text.substr(2), out.text[0] == '\xFE', path));
  if (out.text.starts_with("\xEF\xBB\xBF")) out.text.remove_prefix(3);
  return out;
}

namespace {

fs::path name_of(const std::string& path) {
  const fs::path name(path);
  return name.has_filename() ? name.filename() : name.parent_path().filename();
}

}  // namespace

std::string ending_of(const std::string& path) {
  fs::path name = name_of(path);
  if (lower(name.extension().string()) == ".gz") name = name.stem();
  return lower(name.extension().string());
}

std::string stem_of(const std::string& path) {
  fs::path name = name_of(path);
  if (lower(name.extension().string()) == ".gz") name = name.stem();
  return name.stem().string();
}

}  // namespace lacuna
