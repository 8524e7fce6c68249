#include "data/checksums.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/mapping.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChecksumsSchema = "lacuna.checksums.1";

// Bytes before the values of a .npy file; all of it where it is shorter than its header says.
std::size_t header_bytes(Bytes file) {
  if (file.size() < 10) return file.size();
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(file[i]); };
  return std::min(file.size(), 10 + (byte(8) | byte(9) << 8));
}

std::map<std::string, std::vector<std::uint32_t>> read_checksums(const std::string& path) {
  try {
    const auto document = nlohmann::json::parse(read_text(path));
    if (document.at("schema") != kChecksumsSchema || document.at("block") != kChecksumBlock)
      fail(Exit::data, "{}: is not of the schema {}", path, kChecksumsSchema);
    return document.at("files").get<std::map<std::string, std::vector<std::uint32_t>>>();
  } catch (const nlohmann::json::exception& error) {
    fail(Exit::data, "{}: is damaged: {}", path, error.what());
  }
}

void check_file(const std::string& path, const std::vector<std::uint32_t>& expected, FolderCheck& check) {
  const auto file = MappedFile::open(path);
  Bytes values = file->bytes().subspan(header_bytes(file->bytes()));
  check.bytes += values.size();
  const std::size_t blocks = (values.size() + kChecksumBlock - 1) / kChecksumBlock;
  if (blocks != expected.size())
    check.damaged.push_back(fmt::format("{}: has {} blocks of {} bytes, {} were written", path, blocks,
                                        kChecksumBlock, expected.size()));
  for (std::size_t b = 0; b < std::min(blocks, expected.size()); ++b) {
    const Bytes block =
        values.subspan(b * kChecksumBlock, std::min(kChecksumBlock, values.size() - b * kChecksumBlock));
    BlockChecksums sums;
    sums.add(block);
    const std::uint32_t found = sums.finish()[0];
    if (found != expected[b]) {
      const auto at = static_cast<std::size_t>(block.data() - file->bytes().data());
      check.damaged.push_back(fmt::format("{}: bytes {} to {} have the CRC {:08x}, written with {:08x}", path,
                                          at, at + block.size(), found, expected[b]));
    }
    release_mapped(block);
  }
}

}  // namespace

void BlockChecksums::add(Bytes bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), kChecksumBlock - filled_);
    crc_ = static_cast<std::uint32_t>(
        crc32(crc_, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(count)));
    filled_ += count;
    bytes = bytes.subspan(count);
    if (filled_ < kChecksumBlock) continue;
    blocks_.push_back(crc_);
    crc_ = 0;
    filled_ = 0;
  }
}

std::vector<std::uint32_t> BlockChecksums::finish() {
  if (filled_ > 0) blocks_.push_back(crc_);
  crc_ = 0;
  filled_ = 0;
  return std::move(blocks_);
}

std::string Checksums::text() const {
  return nlohmann::json{{"schema", kChecksumsSchema}, {"block", kChecksumBlock}, {"files", files}}.dump() +
         "\n";
}

FolderCheck check_folder(const std::string& path) {
  const std::string sums = (fs::path(path) / kChecksumsFile).string();
  std::error_code error;
  if (!fs::is_directory(path, error) || !fs::exists(sums, error))
    fail(Exit::data, "{}: has no {}; only native folders have one, data convert writes it", path,
         kChecksumsFile);
  FolderCheck check;
  const auto expected = read_checksums(sums);
  for (const auto& [name, blocks] : expected) {
    if (fs::path(name).filename() != name)
      fail(Exit::data, "{}: names '{}', which is not a file of the folder", sums, name);
    const std::string file = (fs::path(path) / name).string();
    ++check.files;
    if (!fs::exists(file, error))
      check.damaged.push_back(fmt::format("{}: is missing", file));
    else
      check_file(file, blocks, check);
  }
  for (const auto& entry : fs::directory_iterator(path, error))
    if (entry.path().extension() == ".npy" && !expected.contains(entry.path().filename().string()))
      check.damaged.push_back(
          fmt::format("{}: has no checksums: it was not written with the others", entry.path().string()));
  return check;
}

}  // namespace lacuna
