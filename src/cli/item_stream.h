// Items that arrive line by line, as JSON, CSV or TSV, from a pipe, a terminal or a file. Lines that are available are
// read together before more are awaited. Shared by all verbs that take such lines as DATA.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/options.h"
#include "data/csv_items.h"
#include "data/line_stream.h"
#include "data/readers.h"
#include "methods/model.h"

namespace lacuna::cli {

// Whether DATA is a stream of lines, not a data set.
bool is_item_stream(const std::string& path, const std::string& from);
// Exit::usage if the extension of a file contradicts --from; `flag` is the verb's name of that option.
void check_named_format(const std::string& path, const std::string& from, const char* flag);
// The options about reading that were given, by name.
std::vector<std::string> given_to_read(const Options& options);

class ItemStream {
 public:
  struct Settings {
    std::string path;                // - is standard input
    ReadOptions read;                // format (auto, jsonl, csv, tsv), header, id_column, empty
    std::vector<std::string> given;  // those that the user gave: one without effect here is Exit::usage
    bool strict = false;             // the first bad line ends the stream
    bool quiet = false;              // do not say on stderr how columns were matched
    bool labels = false;             // items may state labels; JSON lines only (Exit::usage)
  };
  ItemStream(Settings settings, const Model& model);
  ~ItemStream();
  ItemStream(const ItemStream&) = delete;
  ItemStream& operator=(const ItemStream&) = delete;

  const std::string& name() const { return name_; }  // for messages
  const std::string& format() const { return format_; }  // jsonl, csv or tsv

  // Waits for lines and takes those available; false at the end. Items without an id are named by their position.
  bool next();
  std::size_t size() const { return lines_.size(); }  // of this block; bad lines are in it, as rows without views
  const ItemBlock& block() const { return block_; }
  Dataset dataset() const { return block_.dataset(size(), name_); }
  Matrix<std::int8_t> known() const;  // (size, labels) known labels; empty if not requested
  const std::string& error(std::size_t i) const { return errors_[i]; }  // empty where the line is an item
  std::size_t line(std::size_t i) const { return lines_[i].number; }

  // So far.
  std::size_t items() const { return items_; }
  std::size_t without_view() const { return without_view_; }
  std::size_t bad_lines() const { return bad_lines_; }
  // Why a strict stream ended: "line 7: the error"; empty if it did not.
  const std::string& broken() const { return broken_; }
  // Exit::data if there were lines and none of them was an item.
  void check_any() const;

 private:
  void open_table();
  void parse(std::size_t i);
  void settle(std::size_t i);  // in the order of lines

  Settings settings_;
  std::vector<ViewShape> views_;
  std::string name_, format_;
  int fd_;
  LineStream stream_;
  std::optional<CsvItems> table_;
  ItemBlock block_;
  std::vector<LineStream::Line> lines_;
  std::vector<std::string> errors_;
  std::vector<unsigned> decimals_;  // a line
  unsigned decimal_ = 0;            // of the stream: the sign that came first, and where
  std::size_t decimal_line_ = 0;
  bool waiting_ = false;  // lines_ holds lines that were not parsed yet
  std::size_t items_ = 0, without_view_ = 0, bad_lines_ = 0;
  std::string first_error_, broken_;
};

}  // namespace lacuna::cli
