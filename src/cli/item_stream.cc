#include "cli/item_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "base/threads.h"
#include "cli/text_out.h"
#include "data/formats.h"
#include "data/jsonl.h"
#include "data/text_file.h"

namespace lacuna::cli {
namespace {

constexpr std::size_t kMostRows = 2048, kBlockBytes = std::size_t{64} << 20;

int opened(const std::string& path) {
  const int fd = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(Exit::data, "{}: cannot be read: {}", path, std::strerror(errno));
  return fd;
}

// An honest line needs no more: text of every number, or of an index and a value, and the names.
std::size_t longest_line(const std::vector<ViewShape>& views, const std::vector<std::string>& labels) {
  std::size_t bytes = std::size_t{1} << 20;
  for (const auto& view : views) bytes += 64 * view.columns;
  for (const auto& label : labels) bytes += 6 * label.size() + 64;
  return bytes;
}

std::vector<std::string> told_labels(const ItemStream::Settings& settings, const Model& model) {
  return settings.labels ? model.label_names() : std::vector<std::string>();
}

bool is_json_name(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending == ".jsonl" || ending == ".ndjson";
}

// A stream without any line is of JSON lines, which have no header, unless `table` says otherwise.
std::string format_of(const std::string& path, const std::string& from, char first, bool table,
                      const std::string& name) {
  if (from != "auto") return from;
  if (ending_of(path) == ".tsv") return "tsv";
  if (first == 0) return table ? "csv" : "jsonl";
  if (first == '[')
    fail(Exit::data,
         "{}: begins with '[': a JSON document, but one object per line is expected (jq -c '.[]' converts a "
         "list)",
         name);
  return first == '{' ? "jsonl" : "csv";
}

}  // namespace

bool is_item_stream(const std::string& path, const std::string& from) {
  return is_stream_path(path) || is_json_name(path) || from == "jsonl" ||
         (from == "tsv" && ending_of(path) != ".tsv");
}

void check_named_format(const std::string& path, const std::string& from, const char* flag) {
  if (from == "auto" || is_stream_path(path)) return;
  const std::string ending = ending_of(path);
  std::string named = is_json_name(path) ? "jsonl" : ending == ".tsv" ? "tsv" : "";
  for (const FileFormat& file_format : file_formats())
    if (named.empty() && std::ranges::find(file_format.endings, ending) != file_format.endings.end())
      named = file_format.name;
  if (!named.empty() && named != from)
    fail(Exit::usage, "{}: its name says {}, --{} says {}; omit --{}, or rename the file", path, named, flag,
         from, flag);
}

std::vector<std::string> given_to_read(const Options& options) {
  std::vector<std::string> names;
  for (const Option& option : options.all())
    if (option.given && option.group == "reading the data") names.push_back(option.name);
  return names;
}

ItemStream::ItemStream(Settings settings, const Model& model)
    : settings_(std::move(settings)),
      views_(model.view_shapes(settings_.read.empty)),
      name_(settings_.path == "-" ? "standard input" : settings_.path),
      fd_(opened(settings_.path)),
      stream_(fd_, name_, longest_line(views_, told_labels(settings_, model))),
      block_(views_, std::min(kMostRows, ItemBlock::rows_for(views_, kBlockBytes)),
             told_labels(settings_, model)) {
  const auto of_tables = [](const std::string& option) { return option == "header" || option == "id-column"; };
  format_ = format_of(settings_.path, settings_.read.format, stream_.peek(),
                      std::ranges::any_of(settings_.given, of_tables), name_);
  if (format_ != "jsonl" && format_ != "csv" && format_ != "tsv")
    fail(Exit::usage, "{}: a stream contains jsonl, csv or tsv, not {}", name_, format_);
  if (settings_.labels && format_ != "jsonl")
    fail(Exit::usage,
         "{}: columns of a stream are the model's views; --known-labels needs JSON lines ({{\"views\": ..., "
         "\"labels\": {{\"name\": 1}}}}) or a data set",
         name_);
  for (const auto& option : settings_.given) {
    if (option == "from" || option == "format" || option == "empty") continue;
    if (of_tables(option) && format_ != "jsonl") continue;
    fail(Exit::usage, "{}: --{} has no effect on {}", name_, option,
         of_tables(option) ? "JSON lines, whose items name their id and their views"
                   : "lines from a stream; it is for data sets. In a stream columns are matched by name, or "
                     "in order");
  }
  if (format_ != "jsonl") open_table();
}

ItemStream::~ItemStream() {
  if (fd_ != STDIN_FILENO) ::close(fd_);
}

// Looks at the names and at the first item: R leaves the name of the ids out, so that items have a cell more.
void ItemStream::open_table() {
  if (!stream_.next(1, lines_)) return;
  if (lines_[0].too_long)
    fail(Exit::data, "{}: the first line is longer than {} bytes", name_, stream_.longest());
  try {
    table_.emplace(
        lines_[0].text, views_,
        CsvItemsOptions{format_ == "tsv" ? '\t' : '\0', settings_.read.header, settings_.read.id_column});
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", name_, error.what());
  }
  waiting_ = true;
  if (table_->has_header()) {
    waiting_ = stream_.next(block_.capacity(), lines_);
    if (waiting_ && !lines_[0].too_long) table_->see_first_item(lines_[0].text);
  }
  if (table_->separator() == '\t') format_ = "tsv";
  if (!settings_.quiet) fmt::print(stderr, "{}: {}\n", name_, table_->told());
}

void ItemStream::parse(std::size_t i) {
  errors_[i].clear();
  decimals_[i] = 0;
  try {
    if (lines_[i].too_long) {
      block_.clear_row(i);
      fail(Exit::data, "the line is longer than {} bytes", stream_.longest());
    }
    if (table_)
      decimals_[i] = table_->parse(lines_[i].text, block_, i);
    else
      parse_item(lines_[i].text, block_, i);
  } catch (const Error& error) {
    errors_[i] = error.what();
  }
}

void ItemStream::settle(std::size_t i) {
  if (errors_[i].empty() && decimals_[i] != 0) {
    if (decimal_ == 0) decimal_ = decimals_[i], decimal_line_ = lines_[i].number;
    if (decimals_[i] != decimal_ || decimal_ == (CsvItems::kPoint | CsvItems::kComma)) {
      if (decimal_line_ == lines_[i].number) decimal_ = 0;  // it has both
      errors_[i] =
          decimal_ == 0
              ? std::string("has numbers with decimal commas and others with points, so neither is certain")
              : fmt::format("has a decimal {}, and line {} a decimal {}, so neither is certain",
                            decimal_ == CsvItems::kPoint ? "comma" : "point", decimal_line_,
                            decimal_ == CsvItems::kPoint ? "point" : "comma");
      block_.clear_row(i);
    }
  }
  if (!errors_[i].empty()) {
    if (first_error_.empty()) first_error_ = fmt::format("line {}: {}", lines_[i].number, errors_[i]);
    ++bad_lines_;
    return;
  }
  if (block_.id(i).empty()) block_.set_id(i, std::to_string(items_ + bad_lines_), true);
  ++items_;
  without_view_ += !block_.has_any(i);
}

bool ItemStream::next() {
  if (!broken_.empty()) return false;
  if (!waiting_ && !stream_.next(block_.capacity(), lines_)) return false;
  waiting_ = false;
  errors_.resize(lines_.size());
  decimals_.resize(lines_.size());
  parallel_for(lines_.size(), 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) parse(i);
  });
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    settle(i);
    if (!settings_.strict || errors_[i].empty()) continue;
    broken_ = first_error_;
    lines_.resize(i);
  }
  return true;
}

Matrix<std::int8_t> ItemStream::known() const {
  Matrix<std::int8_t> known(size(), block_.labels().size());
  for (std::size_t i = 0; i < known.rows() && !known.empty(); ++i)
    std::ranges::copy(block_.known(i), known.row(i).begin());
  return known;
}

void ItemStream::check_any() const {
  if (items_ == 0 && bad_lines_ > 0)
    fail(Exit::data, "{}: none of its {} lines could be read; the first: {}", name_, bad_lines_,
         first_error_);
}

}  // namespace lacuna::cli
