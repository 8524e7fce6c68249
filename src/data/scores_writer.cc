#include "data/scores_writer.h"

#include <fmt/format.h>

#include <iterator>

#include "base/error.h"
#include "base/files.h"

namespace lacuna {
namespace {

// A CSV field, quoted where it must be.
void append_field(std::string& line, const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos && !text.starts_with(' ') && !text.ends_with(' ')) {
    line += text;
    return;
  }
  line += '"';
  for (char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

class CsvWriter final : public ScoresWriter {
 public:
  CsvWriter(const std::string& path, ScoresLayout layout) : file_(path), layout_(std::move(layout)) {
    line_ = "id";
    for (const auto& name : layout_.label_names) append_field(line_ += ',', name);
    file_.write(line_ += '\n');
  }
  void write(MatrixView<const float> block) override {
    for (std::size_t i = 0; i < block.rows; ++i) {
      line_.clear();
      append_field(line_, layout_.id(row_++));
      for (float value : block.row(i)) fmt::format_to(std::back_inserter(line_), ",{}", value);
      file_.write(line_ += '\n');
    }
  }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
  ScoresLayout layout_;
  std::string line_;
  std::size_t row_ = 0;
};

class NpyWriter final : public ScoresWriter {
 public:
  NpyWriter(const std::string& path, const ScoresLayout& layout) : file_(path) {
    std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                                     layout.rows, layout.label_names.size());
    constexpr std::size_t kPrefix = 10;  // magic, version, length of the header
    header.resize((kPrefix + header.size() + 1 + 63) / 64 * 64 - kPrefix - 1, ' ');
    header += '\n';
    file_.write(std::string_view("\x93NUMPY\x01\x00", 8));
    const auto length = static_cast<std::uint16_t>(header.size());
    file_.write(std::as_bytes(std::span(&length, 1)));
    file_.write(header);
  }
  void write(MatrixView<const float> block) override {
    for (std::size_t i = 0; i < block.rows; ++i) file_.write(std::as_bytes(block.row(i)));
  }
  void commit() override { file_.commit(); }

 private:
  AtomicFile file_;
};

}  // namespace

std::unique_ptr<ScoresWriter> write_scores(const std::string& path, ScoresLayout layout) {
  if (path.ends_with(".csv")) return std::make_unique<CsvWriter>(path, std::move(layout));
  if (path.ends_with(".npy")) return std::make_unique<NpyWriter>(path, layout);
  fail(Exit::usage, "{}: scores are written as .csv, .npy or .npz", path);
}

struct TagsWriter::State {
  AtomicFile file;
  ScoresLayout layout;
  std::size_t row = 0;
  std::string line, names, numbers;
};

TagsWriter::TagsWriter(const std::string& path, ScoresLayout layout)
    : state_(new State{AtomicFile(path), std::move(layout), 0, {}, {}, {}}) {
  if (!path.ends_with(".csv")) fail(Exit::usage, "{}: labels by name are written as .csv", path);
  state_->file.write("id,labels,scores\n");
}
TagsWriter::~TagsWriter() = default;

void TagsWriter::write(std::span<const std::uint32_t> labels, std::span<const float> scores) {
  State& s = *state_;
  s.line.clear(), s.names.clear(), s.numbers.clear();
  for (std::size_t k = 0; k < labels.size(); ++k) {
    s.names += (k ? ";" : "") + s.layout.label_names[labels[k]];
    fmt::format_to(std::back_inserter(s.numbers), "{}{:.4g}", k ? ";" : "", scores[k]);
  }
  append_field(s.line, s.layout.id(s.row++));
  append_field(s.line += ',', s.names);
  s.file.write(s.line += ',' + s.numbers + '\n');
}

void TagsWriter::commit() {
  state_->file.commit();
}

}  // namespace lacuna
