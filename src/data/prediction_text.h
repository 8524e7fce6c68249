// Predictions as text, row by row:
//   csv, tsv   wide: id and one column per label; with `tags` id, labels, scores, where several names share a field,
//              separated by ';' (a ';' or '\' inside a name is written '\;' and '\\')
//   long       id, rank, label, probability, decided: one line per label, best first
//   jsonl      {"id": "a", "scores": {"label": p, ...}}, or with `tags` {"id": "a", "tags": [{"label", "probability",
//              "decided"}, ...]}
// An item without any view has no scores: empty fields, null.
//
// With `known` some labels of an item are known beforehand. They are written as known and not suggested: 1 or 0 in wide
// formats, left out of tags and ranks. Tables with tags get a column `known` with the names of known positives, the
// long format gets lines without a rank, JSON "known": {"label": 1, ...}.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/matrix.h"
#include "base/threads.h"

namespace lacuna {

struct PredictionStyle {
  enum class Format { csv, tsv, long_csv, long_tsv, jsonl } format = Format::csv;
  bool tags = false;          // labels by name, best first, instead of all scores (long is always so)
  std::size_t top = 0;        // the largest number of labels; 0 = all
  bool only_decided = false;  // those that are decided
  bool probabilities = true;  // the name of the number: probability or score
  bool known = false;         // rows have known labels
  bool shows_decisions() const { return only_decided || is_long() || (tags && format == Format::jsonl); }
  bool is_long() const { return format == Format::long_csv || format == Format::long_tsv; }
};

class PredictionText {
 public:
  PredictionText(const PredictionStyle& style, std::vector<std::string> label_names);

  struct Row {
    std::string_view id;
    bool id_is_number = false;
    std::span<const float> scores;          // (c); empty = the item has no view
    std::span<const std::uint8_t> decided;  // (c); empty if the style does not show decisions
    std::span<const std::int8_t> known;     // (c) 1, 0, kUnknown; empty if the style has none
    std::size_t line = 0;                   // of the input, for errors
    std::string_view error;                 // not empty: the line could not be read
  };

  std::string header() const;  // "" for jsonl
  void append(std::string& out, const Row& row) const;
  // Many rows, by all threads, with the text of append() row by row.
  void append(std::string& out, std::size_t rows, FunctionRef<Row(std::size_t)> row) const;
  // {"line": 7, "error": "..."} and the end of the line.
  static void append_error(std::string& out, std::size_t line, std::string_view message);

 private:
  void append_json(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const;
  void append_known(std::string& out, const Row& row) const;
  void append_table(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const;
  void append(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const;
  void choose(const Row& row,
              std::vector<std::uint32_t>& order) const;  // the labels that are shown, best first

  PredictionStyle style_;
  char separator_ = ',';
  std::vector<std::string> fields_, keys_,
      parts_;  // names as CSV fields, JSON texts, parts of a joined field
  std::vector<std::string> names_;
};

}  // namespace lacuna
