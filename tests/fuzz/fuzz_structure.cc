#include "fuzz_structure.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace lacuna {
namespace {

using Buffer = std::vector<std::uint8_t>;

constexpr std::size_t kMostInside = std::size_t{1} << 20;
constexpr int kGzip = 15 + 16, kZlib = 15;

std::optional<Buffer> inflated(const std::uint8_t* data, std::size_t size, int window) {
  z_stream stream{};
  if (inflateInit2(&stream, window) != Z_OK) return {};
  Buffer out(kMostInside);
  stream.next_in = const_cast<std::uint8_t*>(data);
  stream.avail_in = static_cast<uInt>(size);
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = inflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  if (status != Z_STREAM_END) return {};
  return out;
}

Buffer deflated(const Buffer& inside, int window) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  Buffer out(deflateBound(&stream, static_cast<uLong>(inside.size())) + 64);
  stream.next_in = const_cast<std::uint8_t*>(inside.data());
  stream.avail_in = static_cast<uInt>(inside.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

template <class T>
T number(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
template <class T>
void append(Buffer& to, T value) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(T));
}

void change(Buffer& inside, Mutate mutate) {
  const std::size_t size = inside.size(), most = std::max<std::size_t>(2 * size, 256);
  inside.resize(most);
  inside.resize(mutate(inside.data(), size, most));
}

std::optional<Buffer> change_gzip(const std::uint8_t* data, std::size_t size, Mutate mutate) {
  auto inside = inflated(data, size, kGzip);
  if (!inside) return {};
  change(*inside, mutate);
  return deflated(*inside, kGzip);
}

std::optional<Buffer> change_safetensors(const std::uint8_t* data, std::size_t size, Mutate mutate) {
  if (size < 8 || number<std::uint64_t>(data) > size - 8) return {};
  const auto* end = data + 8 + number<std::uint64_t>(data);
  Buffer header(data + 8, end), out;
  change(header, mutate);
  append(out, std::uint64_t{header.size()});
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), end, data + size);
  return out;
}

struct Member {
  std::string name;
  Buffer bytes;
};

// Members of a zip file by its local headers; only what is stored or deflated with its sizes before it.
std::vector<Member> members(const std::uint8_t* data, std::size_t size) {
  std::vector<Member> all;
  for (std::size_t at = 0; at + 30 <= size && number<std::uint32_t>(data + at) == 0x04034b50;) {
    const std::size_t packed = number<std::uint32_t>(data + at + 18), name = number<std::uint16_t>(data + at + 26),
                      extra = number<std::uint16_t>(data + at + 28), from = at + 30 + name + extra;
    if (from > size || packed > size - from) break;
    Member member{{reinterpret_cast<const char*>(data + at + 30), name}, {data + from, data + from + packed}};
    if (number<std::uint16_t>(data + at + 8) == 8) {
      auto inside = inflated(data + from, packed, -kZlib);
      if (!inside) break;
      member.bytes = std::move(*inside);
    }
    all.push_back(std::move(member));
    at = from + packed;
  }
  return all;
}

std::optional<Buffer> change_zip(const std::uint8_t* data, std::size_t size, unsigned choice, Mutate mutate) {
  auto all = members(data, size);
  if (all.empty()) return {};
  change(all[choice % all.size()].bytes, mutate);
  Buffer out, directory;
  for (const auto& member : all) {
    const auto offset = static_cast<std::uint32_t>(out.size());
    const auto bytes = static_cast<std::uint32_t>(member.bytes.size());
    const auto sum = static_cast<std::uint32_t>(crc32(0, member.bytes.data(), bytes));
    Buffer common;
    append(common, std::uint16_t{20});
    append(common, std::uint64_t{0});  // flags, stored, time and date
    append(common, sum);
    append(common, bytes);
    append(common, bytes);
    append(common, static_cast<std::uint16_t>(member.name.size()));
    append(common, std::uint16_t{0});
    append(out, std::uint32_t{0x04034b50});
    out.insert(out.end(), common.begin(), common.end());
    out.insert(out.end(), member.name.begin(), member.name.end());
    out.insert(out.end(), member.bytes.begin(), member.bytes.end());
    append(directory, std::uint32_t{0x02014b50});
    append(directory, std::uint16_t{20});
    directory.insert(directory.end(), common.begin(), common.end());
    append(directory, std::uint16_t{0});
    append(directory, std::uint32_t{0});
    append(directory, std::uint32_t{0});
    append(directory, offset);
    directory.insert(directory.end(), member.name.begin(), member.name.end());
  }
  const auto start = static_cast<std::uint32_t>(out.size());
  out.insert(out.end(), directory.begin(), directory.end());
  append(out, std::uint32_t{0x06054b50});
  append(out, std::uint32_t{0});
  append(out, static_cast<std::uint16_t>(all.size()));
  append(out, static_cast<std::uint16_t>(all.size()));
  append(out, static_cast<std::uint32_t>(directory.size()));
  append(out, start);
  append(out, std::uint16_t{0});
  return out;
}

// MATLAB 5: 128 bytes, then elements of a type and a size; type 15 is compressed.
std::optional<Buffer> change_mat5(const std::uint8_t* data, std::size_t size, unsigned choice, Mutate mutate) {
  if (size < 128) return {};
  std::vector<std::pair<std::size_t, std::size_t>> packed;  // where, bytes
  for (std::size_t at = 128; at + 8 <= size;) {
    const std::size_t bytes = number<std::uint32_t>(data + at + 4);
    if (bytes > size - at - 8) break;
    if (number<std::uint32_t>(data + at) == 15) packed.emplace_back(at, bytes);
    at += 8 + bytes;
  }
  if (packed.empty()) return {};
  const auto [at, bytes] = packed[choice % packed.size()];
  auto inside = inflated(data + at + 8, bytes, kZlib);
  if (!inside) return {};
  change(*inside, mutate);
  const Buffer again = deflated(*inside, kZlib);
  Buffer out(data, data + at + 4);
  append(out, static_cast<std::uint32_t>(again.size()));
  out.insert(out.end(), again.begin(), again.end());
  out.insert(out.end(), data + at + 8 + bytes, data + size);
  return out;
}

std::optional<Buffer> change_one_file(const std::uint8_t* data, std::size_t size, unsigned choice, Mutate mutate) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::size_t> begins = {0};
  for (auto at = text.find("\n==="); at != text.npos; at = text.find("\n===", at + 1))
    begins.push_back(std::min(text.find('\n', at + 1), size));  // behind its name
  const std::size_t k = choice % begins.size(), from = begins[k],
                    to = k == 0 ? std::min(text.find('\n'), size) : std::min(text.find("\n===", from), size);
  Buffer inside(data + from, data + std::max(from, to)), out(data, data + from);
  if (inside.empty()) return {};
  change(inside, mutate);
  out.insert(out.end(), inside.begin(), inside.end());
  out.insert(out.end(), data + std::max(from, to), data + size);
  return out;
}

}  // namespace

std::size_t mutate_inside(const std::string& form, std::uint8_t* data, std::size_t size, std::size_t most,
                          unsigned choice, Mutate mutate) {
  std::optional<Buffer> changed;
  if (form.ends_with(".gz"))
    changed = change_gzip(data, size, mutate);
  else if (form == "safetensors")
    changed = change_safetensors(data, size, mutate);
  else if (form.ends_with("npz"))
    changed = change_zip(data, size, choice, mutate);
  else if (form == "mat" || form == "folds-mat")
    changed = change_mat5(data, size, choice, mutate);
  else if (form == "files")
    changed = change_one_file(data, size, choice, mutate);
  if (!changed || changed->size() > most) return mutate(data, size, most);
  std::ranges::copy(*changed, data);
  return changed->size();
}

}  // namespace lacuna
