#include "data/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <numeric>

#include "data/dataset.h"
#include "data/jsonl.h"

namespace lacuna {
namespace {

// A field of a table, quoted where it must be.
void append_field(std::string& line, std::string_view text, char separator) {
  const bool plain = text.find_first_of("\"\r\n;,\t") == std::string_view::npos ||
                     (separator == '\t' && text.find_first_of("\"\r\n\t") == std::string_view::npos);
  if (plain && !text.starts_with(' ') && !text.ends_with(' ')) {
    line += text;
    return;
  }
  line += '"';
  for (const char c : text) {
    if (c == '"') line += '"';
    line += c;
  }
  line += '"';
}

// The shortest text that reads back as the same float.
void append_number(std::string& out, float value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  (void)error;
  out.append(text, end);
}

bool is_known(const PredictionText::Row& row, std::size_t j) {
  return !row.known.empty() && row.known[j] != kUnknown;
}

}  // namespace

PredictionText::PredictionText(const PredictionStyle& style, std::vector<std::string> label_names)
    : style_(style), names_(std::move(label_names)) {
  using Format = PredictionStyle::Format;
  separator_ = style.format == Format::tsv || style.format == Format::long_tsv ? '\t' : ',';
  for (const auto& name : names_) {
    append_field(fields_.emplace_back(), name, separator_);
    lacuna::append_json(keys_.emplace_back(), name);
    auto& part = parts_.emplace_back();
    for (const char c : name) {
      if (c == ';' || c == '\\') part += '\\';
      part += c;
    }
  }
}

std::string PredictionText::header() const {
  if (style_.format == PredictionStyle::Format::jsonl) return "";
  std::string line = "id";
  const auto add = [&](std::string_view name) { (line += separator_) += name; };
  if (style_.is_long()) {
    for (const char* name : {"rank", "label", style_.probabilities ? "probability" : "score", "decided"})
      add(name);
    if (style_.known) add("known");
  } else if (style_.tags) {
    for (const char* name : {"labels", "scores"}) add(name);
    if (style_.known) add("known");
  } else {
    for (const auto& field : fields_) add(field);
  }
  return line + '\n';
}

void PredictionText::choose(const Row& row, std::vector<std::uint32_t>& order) const {
  order.clear();
  for (std::uint32_t j = 0; j < row.scores.size(); ++j)
    if (!is_known(row, j) && (!style_.only_decided || row.decided[j] != 0)) order.push_back(j);
  const auto better = [&](std::uint32_t a, std::uint32_t b) {
    return row.scores[a] != row.scores[b] ? row.scores[a] > row.scores[b] : a < b;
  };
  const std::size_t most = style_.top == 0 ? order.size() : std::min(style_.top, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(), better);
  order.resize(most);
}

void PredictionText::append_known(std::string& out, const Row& row) const {
  out += ", \"known\": {";
  bool first = true;
  for (std::size_t j = 0; j < keys_.size(); ++j) {
    if (!is_known(row, j)) continue;
    if (!first) out += ", ";
    first = false;
    (out += keys_[j]) += row.known[j] == 1 ? ": 1" : ": 0";
  }
  out += '}';
}

void PredictionText::append_json(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const {
  out += "{\"id\": ";
  if (row.id_is_number)
    out += row.id;
  else
    lacuna::append_json(out, row.id);
  if (style_.known) append_known(out, row);
  if (row.scores.empty()) {
    out += style_.tags ? ", \"tags\": null, \"scores\": null}\n" : ", \"scores\": null}\n";
    return;
  }
  if (!style_.tags) {
    out += ", \"scores\": {";
    for (std::size_t j = 0; j < keys_.size(); ++j) {
      if (j > 0) out += ", ";
      (out += keys_[j]) += ": ";
      append_number(out, is_known(row, j) ? static_cast<float>(row.known[j]) : row.scores[j]);
    }
    out += "}}\n";
    return;
  }
  out += ", \"tags\": [";
  choose(row, order);
  for (std::size_t k = 0; k < order.size(); ++k) {
    out += k > 0 ? ", {\"label\": " : "{\"label\": ";
    out += keys_[order[k]];
    out += style_.probabilities ? ", \"probability\": " : ", \"score\": ";
    append_number(out, row.scores[order[k]]);
    out += row.decided[order[k]] != 0 ? ", \"decided\": true}" : ", \"decided\": false}";
  }
  out += "]}\n";
}

void PredictionText::append_table(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const {
  if (style_.is_long()) {
    choose(row, order);
    for (std::size_t k = 0; k < order.size(); ++k) {
      append_field(out, row.id, separator_);
      fmt::format_to(std::back_inserter(out), "{}{}{}{}{}", separator_, k + 1, separator_, fields_[order[k]],
                     separator_);
      append_number(out, row.scores[order[k]]);
      (out += separator_) += row.decided[order[k]] != 0 ? '1' : '0';
      if (style_.known) out += separator_;
      out += '\n';
    }
    bool said = !order.empty();
    for (std::size_t j = 0; j < fields_.size(); ++j) {
      if (!is_known(row, j)) continue;
      said = true;
      append_field(out, row.id, separator_);
      fmt::format_to(std::back_inserter(out), "{0}{0}{1}{0}{0}{0}{2}\n", separator_, fields_[j],
                     int{row.known[j]});
    }
    if (!said) {  // the item is there, though nothing is said of it
      append_field(out, row.id, separator_);
      out.append(style_.known ? 5 : 4, separator_) += '\n';
    }
    return;
  }
  append_field(out, row.id, separator_);
  if (!style_.tags) {
    for (std::size_t j = 0; j < fields_.size(); ++j) {
      out += separator_;
      if (is_known(row, j))
        out += row.known[j] == 1 ? '1' : '0';
      else if (!row.scores.empty())
        append_number(out, row.scores[j]);
    }
    out += '\n';
    return;
  }
  choose(row, order);
  std::string names, numbers;
  for (std::size_t k = 0; k < order.size(); ++k) {
    names += (k > 0 ? ";" : "") + parts_[order[k]];
    fmt::format_to(std::back_inserter(numbers), "{}{:.4g}", k > 0 ? ";" : "", row.scores[order[k]]);
  }
  append_field(out += separator_, names, separator_);
  (out += separator_) += numbers;
  if (style_.known) {
    std::string told;
    for (std::size_t j = 0; j < parts_.size(); ++j)
      if (is_known(row, j) && row.known[j] == 1) told += (told.empty() ? "" : ";") + parts_[j];
    append_field(out += separator_, told, separator_);
  }
  out += '\n';
}

void PredictionText::append(std::string& out, const Row& row, std::vector<std::uint32_t>& order) const {
  const bool json = style_.format == PredictionStyle::Format::jsonl;
  if (!row.error.empty()) {
    if (json) append_error(out, row.line, row.error);  // a table has no place for it
  } else if (json) {
    append_json(out, row, order);
  } else {
    append_table(out, row, order);
  }
}

void PredictionText::append(std::string& out, const Row& row) const {
  std::vector<std::uint32_t> order;
  append(out, row, order);
}

void PredictionText::append(std::string& out, std::size_t rows, FunctionRef<Row(std::size_t)> row) const {
  constexpr std::size_t kGrain = 64;
  std::vector<std::string> parts((rows + kGrain - 1) / kGrain);
  parallel_for(rows, kGrain, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> order;
    for (std::size_t i = begin; i < end; ++i) append(parts[begin / kGrain], row(i), order);
  });
  for (const auto& part : parts) out += part;
}

void PredictionText::append_error(std::string& out, std::size_t line, std::string_view message) {
  fmt::format_to(std::back_inserter(out), "{{\"line\": {}, \"error\": ", line);
  lacuna::append_json(out, message);
  out += "}\n";
}

}  // namespace lacuna
