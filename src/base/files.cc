#include "base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/mapping.h"

namespace lacuna {
namespace {

std::string reason() {
  return std::strerror(errno);
}

// Where files are mapped: only there may memory be given back without losing what it holds.
std::mutex mapped_mutex;
std::map<const std::byte*, std::size_t, std::less<>> mapped;

// Files by device and number, which links and hard links share: those read, and those of them to be kept.
using Identity = std::pair<dev_t, ino_t>;
std::set<Identity> read_files, kept_files;

// A dash is the standard stream.
std::optional<struct stat> look_at(const std::string& path, int stream = -1) {
  struct stat info {};
  if (path == "-" && stream >= 0) {
    if (fstat(stream, &info) != 0) return std::nullopt;
    return info;
  }
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

// /dev/stdout and its kin may lead to a file that a shell has opened: it is written to, not replaced.
bool is_stream(const std::string& path) {
  if (path == "/dev/stdout" || path == "/dev/stderr" || path.starts_with("/dev/fd/") ||
      path.starts_with("/proc/"))
    return true;
  const auto info = look_at(path);
  return info && !S_ISREG(info->st_mode) && !S_ISDIR(info->st_mode);
}

void check_target(const std::string& path) {
  const auto info = look_at(path);
  if (info && S_ISDIR(info->st_mode)) fail(Exit::usage, "{}: is a folder; name a file to write", path);
  if (is_protected(path))
    fail(Exit::usage, "{}: is an input of this command and is not replaced; write elsewhere", path);
}

std::string directory_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(Exit::data, "{}: cannot be opened: {}", path, reason());
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(Exit::data, "{}: is not a file{}", path,
         S_ISDIR(info.st_mode) ? " but a folder; are the arguments swapped?" : "");
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = path;
  file->size_ = static_cast<std::size_t>(info.st_size);
  if (file->size_ > 0) {
    void* data = mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      const std::string why = reason();
      ::close(fd);
      file->size_ = 0;
      fail(Exit::data, "{}: cannot be mapped: {}", path, why);
    }
    file->data_ = static_cast<const std::byte*>(data);
    const std::lock_guard lock(mapped_mutex);
    mapped[file->data_] = file->size_;
    read_files.emplace(info.st_dev, info.st_ino);
  }
  ::close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  const std::lock_guard lock(mapped_mutex);
  mapped.erase(data_);
  munmap(const_cast<std::byte*>(data_), size_);
}

void release_mapped(Bytes bytes) {
  const std::lock_guard lock(mapped_mutex);
  auto at = mapped.upper_bound(bytes.data());
  if (at == mapped.begin()) return;
  --at;
  if (bytes.data() + bytes.size() > at->first + at->second) return;
  // Mappings begin at a page. The system brings in pages around those that are touched: they go too, and come again when
  // they are needed.
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto first = static_cast<std::size_t>(bytes.data() - at->first);
  const std::size_t begin = (first > kAroundBytes ? first - kAroundBytes : 0) / page * page;
  auto end = std::min(first + bytes.size() + kAroundBytes, at->second);
  if (end < at->second) end = end / page * page;
  if (end > begin) madvise(const_cast<std::byte*>(at->first) + begin, end - begin, MADV_DONTNEED);
}

bool is_mapped(Bytes bytes) {
  const std::lock_guard lock(mapped_mutex);
  auto at = mapped.upper_bound(bytes.data());
  if (at == mapped.begin()) return false;
  --at;
  return bytes.data() + bytes.size() <= at->first + at->second;
}

void fetch_mapped(Bytes bytes) {
  if (bytes.empty()) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto skip = reinterpret_cast<std::uintptr_t>(bytes.data()) % page;
  // The whole piece is asked for at once, then waited for page by page.
  madvise(const_cast<std::byte*>(bytes.data()) - skip, bytes.size() + skip, MADV_WILLNEED);
  const volatile std::byte* const data = bytes.data();
  for (std::size_t at = 0; at < bytes.size(); at += page) (void)data[at];
  (void)data[bytes.size() - 1];
}

std::shared_ptr<const void> unreadable(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* const data = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    fail(Exit::failed, "the system has no {} bytes of addresses left: {}", bytes, std::strerror(errno));
  return {data, [bytes](const void* begin) { munmap(const_cast<void*>(begin), bytes); }};
}

std::string read_text(const std::string& path, std::size_t limit) {
  const auto file = MappedFile::open(path);
  if (file->size() > limit) fail(Exit::data, "{}: {} bytes, at most {} are read", path, file->size(), limit);
  return std::string(file->text());
}

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)) {
  static std::atomic<unsigned> counter{0};
  check_target(path_);
  if (is_stream(path_)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    std::error_code error;
    if (std::filesystem::is_symlink(path_, error))
      path_ = std::filesystem::weakly_canonical(path_, error).string();
    temporary_ = fmt::format("{}.tmp-{}-{}", path_, getpid(), counter++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  }
  if (fd_ < 0) fail(Exit::failed, "{}: cannot be written: {}", path_, reason());
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!direct()) ::unlink(temporary_.c_str());
}

void AtomicFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      fail(Exit::failed, "{}: writing failed after {} bytes: {}{}", path_, position_, reason(),
           !direct() && ::access(path_.c_str(), F_OK) == 0 ? "; the old file is kept" : "");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  buffer_.clear();
}

void AtomicFile::write(Bytes bytes) {
  constexpr std::size_t kBuffer = std::size_t{1} << 20;
  position_ += bytes.size();
  buffer_.reserve(kBuffer);
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kBuffer - buffer_.size());
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), n);
    bytes = bytes.subspan(n);
    if (buffer_.size() == kBuffer) flush();
  }
}

const std::string& AtomicFile::temporary() const {
  if (direct())
    fail(Exit::usage, "{}: this format cannot be written to a pipe or a device; name a file", path_);
  return temporary_;
}

void AtomicFile::reopen() {
  ::close(fd_);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd_ < 0) fail(Exit::failed, "{}: cannot be written: {}", path_, reason());
}

void AtomicFile::commit() {
  flush();
  if (direct()) {
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail(Exit::failed, "{}: writing failed: {}", path_, reason());
    return;
  }
  if (fsync(fd_) != 0 || ::close(fd_) != 0) fail(Exit::failed, "{}: writing failed: {}", path_, reason());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const std::string why = reason();
    ::unlink(temporary_.c_str());
    fd_ = -1;
    fail(Exit::failed, "{}: cannot be replaced: {}", path_, why);
  }
  fd_ = -1;
  const int directory = ::open(directory_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {  // so that the new name survives a power cut
    fsync(directory);
    ::close(directory);
  }
}

void write_text(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) fail(Exit::failed, "{}: cannot be made: {}", path, error.message());
}

void check_writable(const std::string& path) {
  if (!is_stream(path)) {
    AtomicFile probe(path);
  } else if (::access(path.c_str(), W_OK) != 0) {  // not opened: a reader at the other end would see it end
    fail(Exit::failed, "{}: cannot be written: {}", path, reason());
  }
}

void protect_inputs() {
  const std::lock_guard lock(mapped_mutex);
  kept_files.insert(read_files.begin(), read_files.end());
}

bool is_protected(const std::string& path) {
  const auto info = look_at(path);
  const std::lock_guard lock(mapped_mutex);
  return info && kept_files.contains({info->st_dev, info->st_ino});
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::string canonical_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error).string();
}

void check_apart(const std::string& out, const std::string& input) {
  namespace fs = std::filesystem;
  const auto from = look_at(input, STDIN_FILENO), to = look_at(out, STDOUT_FILENO);
  if (!from || (!S_ISREG(from->st_mode) && !S_ISDIR(from->st_mode))) return;
  if (to && to->st_dev == from->st_dev && to->st_ino == from->st_ino)
    fail(Exit::usage, "{}: is the {} itself and is not replaced; write elsewhere",
         out == "-" ? "standard output" : out,
         input == "-" ? "file on standard input" : fmt::format("input {}", input));
  if (!S_ISDIR(from->st_mode) || out == "-") return;
  std::error_code error;
  const fs::path folder = fs::canonical(input, error), target = canonical_path(out);
  if (std::mismatch(folder.begin(), folder.end(), target.begin(), target.end()).first == folder.end())
    fail(Exit::usage, "{}: lies inside the input {}; write elsewhere", out, input);
  if (!to || !S_ISREG(to->st_mode) || to->st_nlink < 2) return;  // another name of one of its files
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (const auto info = look_at(entry.path().string());
        info && info->st_dev == to->st_dev && info->st_ino == to->st_ino)
      fail(Exit::usage, "{}: is the input {} itself and is not replaced; write elsewhere", out,
           entry.path().string());
}

void Sha256::block(const std::uint8_t* data) {
  static constexpr std::array<std::uint32_t, 64> kRound = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = std::uint32_t{data[4 * i]} << 24 | std::uint32_t{data[4 * i + 1]} << 16 |
           std::uint32_t{data[4 * i + 2]} << 8 | std::uint32_t{data[4 * i + 3]};
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  auto s = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                             ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRound[i] + w[i];
    const std::uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                             ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {t1 + t2, s[0], s[1], s[2], s[3] + t1, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::add(Bytes bytes) {
  for (const auto* p = reinterpret_cast<const std::uint8_t*>(bytes.data()); !bytes.empty();) {
    const std::size_t used = length_ % 64, n = std::min<std::size_t>(64 - used, bytes.size());
    if (n == 64) {
      block(p);
    } else {
      std::memcpy(tail_.data() + used, p, n);
      if (used + n == 64) block(tail_.data());
    }
    length_ += n;
    p += n;
    bytes = bytes.subspan(n);
  }
}

std::string Sha256::hex() {
  const std::uint64_t bits = length_ * 8;
  const std::byte one{0x80}, zero{0};
  add({&one, 1});
  while (length_ % 64 != 56) add({&zero, 1});
  std::array<std::byte, 8> size{};
  for (std::size_t i = 0; i < 8; ++i) size[i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  add(size);
  std::string text;
  for (std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

}  // namespace lacuna
