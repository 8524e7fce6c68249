#include "data/scores_writer.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/npy.h"

namespace lacuna {
namespace {

Array scores_array(const ScoresLayout& layout) {
  Array array;
  array.name = "scores";
  array.type = Element::f32;
  array.shape = {layout.rows, layout.label_names.size()};
  return array;
}

class NpyWriter final : public ScoresWriter {
 public:
  NpyWriter(const std::string& path, const ScoresLayout& layout) : file_(path) {
    file_.write(npy_header(scores_array(layout)));
  }
  void write(MatrixView<const float> block) override {
    for (std::size_t i = 0; i < block.rows; ++i) file_.write(std::as_bytes(block.row(i)));
  }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
};

// A zip archive of stored entries, each followed by its check sum and size, so that it can be written in one
// pass.
class NpzWriter final : public ScoresWriter {
 public:
  NpzWriter(const std::string& path, ScoresLayout layout) : file_(path), layout_(std::move(layout)) {
    std::size_t width = 1;  // of the ids, all of which take as much as the longest
    for (std::size_t i = 0; i < layout_.rows; ++i) width = std::max(width, layout_.id(i).size());
    const double bytes =
        static_cast<double>(layout_.rows) * static_cast<double>(layout_.label_names.size() + width) * 4;
    if (bytes > 4e9)
      fail(Exit::usage, "{}: {} of scores and ids are more than a .npz can hold; use .npy", path,
           bytes_text(bytes));
    open_entry("scores.npy");
    add(as_bytes(npy_header(scores_array(layout_))));
  }
  void write(MatrixView<const float> block) override {
    for (std::size_t i = 0; i < block.rows; ++i) add(std::as_bytes(block.row(i)));
  }
  void commit() override {
    close_entry();
    std::vector<std::string> ids(layout_.rows);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = layout_.id(i);
    add_text("ids", std::move(ids));
    add_text("label_names", layout_.label_names);
    const std::uint64_t directory = file_.position();
    for (const auto& entry : entries_) {
      begin_header(0x02014b50);
      put(20, 2), put(20, 2), put(kDescriptor, 2), put(0, 2),
          put(0, 4);  // made by, needs, flags, stored, time and date
      put(entry.sum, 4), put(entry.size, 4), put(entry.size, 4), put(entry.name.size(), 2);
      put(0, 2), put(0, 2), put(0, 2), put(0, 2), put(0, 4), put(entry.offset, 4);
      file_.write(header_ + entry.name);
    }
    const std::uint64_t size = file_.position() - directory;
    begin_header(0x06054b50);
    put(0, 2), put(0, 2), put(entries_.size(), 2), put(entries_.size(), 2), put(size, 4), put(directory, 4),
        put(0, 2);
    file_.write(header_);
    file_.commit();
  }

 private:
  static constexpr std::uint64_t kDescriptor = 8;  // flag: sum and sizes follow the data
  struct Entry {
    std::string name;
    std::uint64_t offset = 0, size = 0, sum = 0;
  };
  void begin_header(std::uint64_t signature) {
    header_.clear();
    put(signature, 4);
  }
  void put(std::uint64_t value, int bytes) {
    for (int k = 0; k < bytes; ++k) header_ += static_cast<char>(value >> (8 * k) & 0xff);
  }
  void open_entry(const std::string& name) {
    entries_.push_back({name, file_.position(), 0, crc32(0, nullptr, 0)});
    begin_header(0x04034b50);
    put(20, 2), put(kDescriptor, 2), put(0, 2), put(0, 4), put(0, 4), put(0, 4), put(0, 4),
        put(name.size(), 2), put(0, 2);
    file_.write(header_ + name);
  }
  void add(Bytes bytes) {
    Entry& entry = entries_.back();
    entry.size += bytes.size();
    entry.sum = crc32_z(entry.sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    file_.write(bytes);
  }
  void close_entry() {
    begin_header(0x08074b50);
    put(entries_.back().sum, 4), put(entries_.back().size, 4), put(entries_.back().size, 4);
    file_.write(header_);
  }
  void add_text(const std::string& name, std::vector<std::string> values) {
    const Array array = text_array(name, std::move(values));
    open_entry(name + ".npy");
    add(as_bytes(npy_header(array)));
    add(as_bytes(npy_text(array)));
    close_entry();
  }

  AtomicFile file_;
  ScoresLayout layout_;
  std::vector<Entry> entries_;
  std::string header_;
};

}  // namespace

std::unique_ptr<ScoresWriter> write_scores(const std::string& path, ScoresLayout layout) {
  if (path.ends_with(".npy")) return std::make_unique<NpyWriter>(path, layout);
  if (path.ends_with(".npz")) return std::make_unique<NpzWriter>(path, std::move(layout));
  fail(Exit::usage, "{}: an array is written as .npy or .npz", path);
}

}  // namespace lacuna
