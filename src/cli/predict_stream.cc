// Predicting line by line: what is there is read, scored together and written before more is waited for.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "cli/prediction.h"
#include "cli/progress.h"
#include "cli/text_out.h"
#include "data/csv_items.h"
#include "data/jsonl.h"
#include "data/line_stream.h"

namespace lacuna::cli {
namespace {

constexpr std::size_t kMostRows = 2048, kBlockBytes = std::size_t{64} << 20;

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail(Exit::data, "{}: cannot be read: {}", path, std::strerror(errno));
  }
  ~Descriptor() {
    if (fd_ != STDIN_FILENO) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// An honest line needs no more: text of every number, or of an index and a value, and the names.
std::size_t longest_line(const std::vector<ViewShape>& views) {
  std::size_t bytes = std::size_t{1} << 20;
  for (const auto& view : views) bytes += 64 * view.columns;
  return bytes;
}

std::string form_of(const PredictFlags& flags, char first, const std::string& name) {
  const std::string& from = flags.source.read.format;
  if (from != "auto") return from;
  if (flags.source.path.ends_with(".tsv")) return "tsv";
  if (first == '[')
    fail(Exit::data,
         "{}: begins with '[': a JSON document, where one object a line is read (jq -c '.[]' makes lines of "
         "a list)",
         name);
  return first == '{' ? "jsonl" : "csv";
}

}  // namespace

PredictTally predict_stream(const PredictFlags& flags, const Model& model) {
  const std::string name = flags.source.path == "-" ? "standard input" : flags.source.path;
  const std::vector<ViewShape> views = model.view_shapes(flags.source.read.empty);
  const Descriptor input(flags.source.path);
  LineStream stream(input.get(), name, longest_line(views));
  const std::string form = form_of(flags, stream.peek(), name);
  if (form != "jsonl" && (!flags.source.read.views.empty() || !flags.source.read.label_columns.empty()))
    fail(Exit::usage,
         "--views and --label-columns are for files; in a stream columns are matched by name, or in order");

  std::vector<LineStream::Line> lines;
  std::optional<CsvItems> table;
  bool more = false;
  if (form != "jsonl" && (more = stream.next(1, lines))) {
    if (lines[0].too_long)
      fail(Exit::data, "{}: the first line is longer than {} bytes", name, stream.longest());
    try {
      table.emplace(lines[0].text, views,
                    CsvItemsOptions{form == "tsv" ? '\t' : '\0', flags.source.read.header,
                                    flags.source.read.id_column});
    } catch (const Error& error) {
      fail(error.code(), "{}: {}", name, error.what());
    }
    if (!flags.quiet) fmt::print(stderr, "{}: {}\n", name, table->told());
    more = !table->has_header();  // then it is the first item
  }
  const PredictionStyle style =
      prediction_style(flags, model, form == "csv" && table && table->separator() == '\t' ? "tsv" : form);
  const PredictionText text(style, model.label_names());
  const bool errors_inside = style.form == PredictionStyle::Form::jsonl;
  TextOut out(flags.out);
  if (const std::string header = text.header(); !header.empty()) out.write(header);

  ItemBlock block(views, std::min(kMostRows, ItemBlock::rows_for(views, kBlockBytes)));
  Shown shown(flags, model, style.shows_decisions());
  PredictTally tally;
  const double begun = clock_seconds();
  std::vector<std::string> errors;
  std::string written;
  for (; more || stream.next(block.capacity(), lines); more = false) {
    const std::size_t n = lines.size();
    errors.assign(n, "");
    parallel_for(n, 16, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) try {
          if (lines[i].too_long) {
            block.clear_row(i);
            fail(Exit::data, "the line is longer than {} bytes", stream.longest());
          }
          if (table)
            table->parse(lines[i].text, block, i);
          else
            parse_item(lines[i].text, block, i);
        } catch (const Error& error) {
          errors[i] = error.what();
        }
    });
    std::size_t used = n;  // up to the first bad line, if that ends the stream
    for (std::size_t i = 0; i < used; ++i) {
      if (!errors[i].empty()) {
        if (flags.strict)
          used = i;
        else
          ++tally.bad_lines;
        continue;
      }
      if (block.id(i).empty()) block.set_id(i, std::to_string(tally.items + tally.bad_lines), true);
      ++tally.items;
      tally.without_view += !block.has_any(i);
    }
    if (used > 0) {
      const Dataset data = block.dataset(used, name);
      shown.set(model.predict(data));
      written.clear();
      text.append(written, used, [&](std::size_t i) {
        PredictionText::Row row;
        row.id = block.id(i);
        row.id_is_number = block.id_is_number(i);
        row.line = lines[i].number;
        row.error = errors[i];
        if (!block.has_any(i)) return row;
        row.scores = shown.values().row(i);
        if (!shown.decided().empty()) row.decided = shown.decided().row(i);
        return row;
      });
      out.write(written);
      for (std::size_t i = 0; i < used && !errors_inside; ++i) {
        if (errors[i].empty()) continue;
        std::string line;
        PredictionText::append_error(line, lines[i].number, errors[i]);
        std::fputs(line.c_str(), stderr);
      }
    }
    if (used < n) {
      out.commit();
      fail(Exit::data, "{}: line {}: {} (--strict ends here; {} items were written)", name,
           lines[used].number, errors[used], tally.items);
    }
  }
  out.commit();
  tally.seconds = clock_seconds() - begun;
  return tally;
}

}  // namespace lacuna::cli
