// ARFF, dense and sparse, as WEKA, Mulan and MEKA write it. Labels come from a Mulan XML file (FILE.xml
// beside FILE.arff or FILE-train.arff is found by itself) or by MEKA's -C in the name of the relation. A
// nominal attribute with two values is one column of 0 and 1, one with more is one column per value.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/names.h"
#include "data/text_file.h"

namespace lacuna {
namespace {

namespace fs = std::filesystem;

struct Attribute {
  std::string name;
  enum class Kind { number, nominal, text } kind = Kind::number;
  std::vector<std::string> values;                       // of a nominal attribute
  std::unordered_map<std::string, std::size_t> place{};  // of each value
  std::size_t one = 1;                                   // the place of the one that is 1, of at most two
  std::size_t first = 0, width = 1;                      // columns of the table; text has width 0
};

// Takes words, quoted or not, off the front of a line.
class LineWords {
 public:
  LineWords(std::string_view line, std::size_t number, const std::string& where)
      : rest_(line), number_(number), where_(where) {}

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.size(), rest_.find_first_not_of(" \t"))); }
  bool done() {
    skip_blanks();
    return rest_.empty() || rest_[0] == '%';
  }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // The next word, up to a blank or one of `stops` unless it is quoted.
  std::string word(std::string_view stops, bool* quoted = nullptr) {
    skip_blanks();
    std::string out;
    if (quoted != nullptr) *quoted = false;
    if (!rest_.empty() && (rest_[0] == '\'' || rest_[0] == '"')) {
      if (quoted != nullptr) *quoted = true;
      const char quote = rest_[0];
      std::size_t at = 1;
      for (; at < rest_.size() && rest_[at] != quote; ++at) {
        if (rest_[at] == '\\' && at + 1 < rest_.size()) ++at;
        out += rest_[at];
      }
      if (at == rest_.size()) fail(Exit::data, "{}: line {}: a quoted name has no end", where_, number_);
      rest_.remove_prefix(at + 1);
      return out;
    }
    const auto end = std::min(rest_.size(), rest_.find_first_of(std::string(stops) + " \t"));
    out = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
  std::size_t number_;
  const std::string& where_;
};

// Which of at most two values is 1: yes of yes and no, the larger of two numbers, otherwise the second.
std::size_t place_of_one(const std::vector<std::string>& values) {
  const auto reads = [](const std::string& text, float& value) {
    return parse_cell(text, value) || parse_yes_no(text, value);
  };
  float first = 0, second = 0;
  const bool larger = !values.empty() && reads(values[0], first) &&
                      (values.size() == 1 || reads(values[1], second)) && first > second;
  return larger ? 0 : 1;
}

Attribute parse_attribute(LineWords& words, std::size_t line, const std::string& where) {
  Attribute a;
  a.name = utf8_or_latin1(words.word(""));
  if (words.take('{')) {
    a.kind = Attribute::Kind::nominal;
    while (!words.take('}')) {
      if (words.done()) fail(Exit::data, "{}: line {}: the values of '{}' have no end", where, line, a.name);
      std::string value = words.word(",}");
      if (!a.place.emplace(value, a.values.size()).second)
        fail(Exit::data, "{}: line {}: the value '{}' of '{}' is given twice", where, line,
             utf8_or_latin1(value), a.name);
      a.values.push_back(std::move(value));
      words.take(',');
    }
    a.width = a.values.size() <= 2 ? 1 : a.values.size();
    if (a.width == 1) a.one = place_of_one(a.values);
    return a;
  }
  const std::string type = lower(words.word(""));
  if (type == "string" || type == "date") {
    a.kind = Attribute::Kind::text;
    a.width = 0;
  } else if (type != "numeric" && type != "real" && type != "integer") {
    fail(Exit::data,
         "{}: line {}: attribute '{}' has type '{}', expected numeric, real, integer, string, date or "
         "{{values}}",
         where, line, a.name, utf8_or_latin1(type));
  }
  return a;
}

// MEKA: "-C 6" in the relation's name means that the first 6 attributes are labels, "-C -6" the last.
std::int64_t meka_labels(const std::string& relation) {
  const auto at = relation.find("-C ");
  if (at == std::string::npos) return 0;
  const auto word = trim(std::string_view(relation).substr(at + 3));
  return parse_int(word.substr(0, word.find_first_not_of("-0123456789"))).value_or(0);
}

std::string decode_entities(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kNamed[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string out;
  while (!text.empty()) {
    bool found = false;
    for (const auto& [entity, c] : kNamed)
      if (!found && text.starts_with(entity)) {
        out += c;
        text.remove_prefix(entity.size());
        found = true;
      }
    if (found) continue;
    const auto end = text.find(';');
    if (text.starts_with("&#") && end != std::string_view::npos && end < 10) {
      const bool hex = text[2] == 'x';
      const std::string digits(text.substr(hex ? 3 : 2, end - (hex ? 3 : 2)));
      const auto point = static_cast<char32_t>(std::strtoul(digits.c_str(), nullptr, hex ? 16 : 10));
      out += from_code_points(std::u32string_view(&point, 1));
      text.remove_prefix(end + 1);
      continue;
    }
    out += text[0];
    text.remove_prefix(1);
  }
  return out;
}

// The names in <label name="..."> elements.
std::vector<std::string> mulan_labels(const std::string& path) {
  const std::string text = read_text(path, std::size_t{1} << 26);
  std::vector<std::string> names;
  for (std::size_t at = 0; (at = text.find("<label", at)) != std::string::npos;) {
    at += 6;
    if (at < text.size() && text[at] == 's') continue;  // <labels>
    const auto end = text.find('>', at);
    const auto name = text.find("name", at);
    if (end == std::string::npos || name == std::string::npos || name > end)
      fail(Exit::data, "{}: the <label> at byte {} has no name", path, at - 6);
    const auto open = text.find_first_of("\"'", name);
    const auto close = open == std::string::npos ? open : text.find(text[open], open + 1);
    if (close == std::string::npos)
      fail(Exit::data, "{}: the name of the <label> at byte {} has no end", path, at - 6);
    names.push_back(
        utf8_or_latin1(decode_entities(std::string_view(text).substr(open + 1, close - open - 1))));
    at = close;
  }
  if (names.empty()) fail(Exit::data, "{}: has no <label name=...> elements", path);
  return names;
}

std::string find_xml(const std::string& path) {
  const fs::path file(path);
  std::string stem = file.stem().string();
  for (;;) {
    const fs::path xml = file.parent_path() / (stem + ".xml");
    std::error_code error;
    if (fs::is_regular_file(xml, error)) return xml.string();
    const auto cut = stem.rfind('-');
    if (cut == std::string::npos || cut == 0) return "";
    stem.resize(cut);
  }
}

class ArffReader {
 public:
  ArffReader(const std::string& path, const ReadOptions& options) : path_(path), options_(options) {}

  FlatTable read() {
    const TextFile file = open_text(path_);
    Lines lines(file.text);
    header(lines);
    place_columns();
    std::string_view line;
    std::size_t rows = 0;
    while (lines.next(line)) {
      LineWords words(line, lines.number(), path_);
      if (words.done()) continue;
      const bool sparse_row = words.rest().starts_with('{');
      if (rows++ == 0) sparse_ = sparse_row;
      if (sparse_row != sparse_)
        fail(Exit::data, "{}: line {} is a {} row among {} ones", path_, lines.number(),
             sparse_row ? "sparse" : "dense", sparse_row ? "dense" : "sparse");
      sparse_row ? read_sparse(words, lines.number()) : read_dense(words, lines.number());
    }
    if (rows == 0) fail(Exit::data, "{}: has no rows after @data", path_);
    if (sparse_) {
      table_.values = builder_.finish(width_);
    } else {
      auto owner = std::make_shared<std::vector<float>>(std::move(values_));
      table_.values = Table<float>(owner, MatrixView<const float>(owner->data(), rows, width_));
    }
    table_.source_type = "text";
    find_labels();
    return std::move(table_);
  }

 private:
  void header(Lines& lines) {
    std::string_view line;
    while (lines.next(line)) {
      LineWords words(line, lines.number(), path_);
      if (words.done()) continue;
      const std::string keyword = lower(words.word(""));
      if (keyword == "@relation") {
        relation_ = words.rest();
      } else if (keyword == "@attribute") {
        attributes_.push_back(parse_attribute(words, lines.number(), path_));
      } else if (keyword == "@data") {
        if (attributes_.empty())
          fail(Exit::data, "{}: line {}: @data before any @attribute", path_, lines.number());
        return;
      } else {
        fail(Exit::data, "{}: line {}: '{}' is not @relation, @attribute or @data", path_, lines.number(),
             utf8_or_latin1(keyword.substr(0, 40)));
      }
    }
    fail(Exit::data, "{}: has no @data", path_);
  }

  void place_columns() {
    id_ = attributes_.size();
    for (std::size_t k = 0; k < attributes_.size(); ++k) {
      Attribute& a = attributes_[k];
      if (!options_.id_column.empty() && a.name == options_.id_column) {
        id_ = k;
        a.width = 0;
        table_.has_ids = true;
        table_.id_name = a.name;
      } else if (a.kind == Attribute::Kind::text) {
        table_.notes.push_back(fmt::format("attribute '{}' contains text and is ignored", a.name));
      } else if (a.width > 1) {
        table_.notes.push_back(
            fmt::format("attribute '{}' with {} values became {} columns", a.name, a.width, a.width));
      }
      a.first = width_;
      width_ += a.width;
      table_.columns.push_back({a.name, a.first, a.width});
      if (a.width == 1) table_.value_names.push_back(a.name);
      if (a.width > 1)
        for (const auto& value : a.values)
          table_.value_names.push_back(fmt::format("{}={}", a.name, utf8_or_latin1(value)));
      // In a sparse row an attribute that is not named has its first value, which need not be 0.
      if (a.kind == Attribute::Kind::nominal && k != id_ &&
          (a.width > 1 || a.one == 0))
        defaults_.push_back(k);
    }
    if (!options_.id_column.empty() && id_ == attributes_.size())
      fail(Exit::usage, "{}: there is no attribute '{}'", path_, options_.id_column);
    if (width_ > UINT32_MAX) fail(Exit::data, "{}: {} columns are too many", path_, width_);
  }

  // put(column, value) for each column that the value fills.
  template <class F>
  void value(const Attribute& a, const std::string& text, bool quoted, std::size_t line, F&& put) {
    if (a.width == 0) return;
    const bool empty = text == "?" && !quoted;
    if (a.kind == Attribute::Kind::number) {
      float number = 0;
      if (!parse_cell(text, number)) refuse_cell(path_, line, fmt::format("'{}'", a.name), text);
      return put(a.first, number);
    }
    if (empty) {
      for (std::size_t k = 0; k < a.width; ++k) put(a.first + k, std::numeric_limits<float>::quiet_NaN());
      return;
    }
    const auto at = a.place.find(text);
    if (at == a.place.end())
      fail(Exit::data, "{}: line {}: '{}' is not one of the {} values of attribute '{}'", path_, line,
           utf8_or_latin1(text.substr(0, 40)), a.values.size(), a.name);
    if (a.width > 1) return put(a.first + at->second, 1.f);
    put(a.first, at->second == a.one ? 1.f : 0.f);
  }

  void read_dense(LineWords& words, std::size_t line) {
    const std::size_t begin = values_.size();
    values_.resize(begin + width_);
    for (std::size_t k = 0; k < attributes_.size(); ++k) {
      bool quoted = false;
      const std::string text = words.word(",", &quoted);
      if (k == id_) table_.ids.push_back(utf8_or_latin1(text));
      value(attributes_[k], text, quoted, line, [&](std::size_t j, float x) { values_[begin + j] = x; });
      if (k + 1 < attributes_.size() && !words.take(',') && words.done())
        fail(Exit::data, "{}: line {} has {} values, expected {}", path_, line, k + 1, attributes_.size());
    }
    words.take(',');
    if (!words.done())
      fail(Exit::data, "{}: line {} continues after its {} values: '{}'", path_, line, attributes_.size(),
           utf8_or_latin1(words.rest().substr(0, 40)));
  }

  void read_sparse(LineWords& words, std::size_t line) {
    words.take('{');
    std::set<std::size_t> named;
    std::string id;
    while (!words.take('}')) {
      if (words.done()) fail(Exit::data, "{}: line {}: a sparse row has no end", path_, line);
      const std::string number = words.word(",}");
      const auto k = parse_int(number);
      if (!k || *k < 0 || static_cast<std::uint64_t>(*k) >= attributes_.size())
        fail(Exit::data, "{}: line {}: '{}' is not a number of an attribute (0 to {})", path_, line,
             utf8_or_latin1(number.substr(0, 40)), attributes_.size() - 1);
      const auto at = static_cast<std::size_t>(*k);
      if (!named.insert(at).second)
        fail(Exit::data, "{}: line {}: attribute {} occurs twice", path_, line, at);
      bool quoted = false;
      const std::string text = words.word(",}", &quoted);
      if (at == id_) id = utf8_or_latin1(text);
      value(attributes_[at], text, quoted, line,
            [&](std::size_t j, float x) { builder_.add(static_cast<std::uint32_t>(j), x); });
      words.take(',');
    }
    for (auto k : defaults_)
      if (!named.contains(k)) builder_.add(static_cast<std::uint32_t>(attributes_[k].first), 1.f);
    if (id_ < attributes_.size()) table_.ids.push_back(id);
    builder_.end_row();
  }

  void find_labels() {
    std::string xml = options_.label_file.ends_with(".xml") ? options_.label_file : "";
    const bool asked = !xml.empty();
    if (xml.empty() && options_.label_columns.empty() && options_.lists) xml = find_xml(path_);
    if (!xml.empty()) {
      std::unordered_map<std::string, std::size_t> place;
      std::vector<std::string> names;
      for (std::size_t k = 0; k < attributes_.size(); ++k) {
        place.emplace(attributes_[k].name, k);
        names.push_back(attributes_[k].name);
      }
      std::set<std::size_t> labels;
      for (const auto& name : mulan_labels(xml)) {
        const auto at = place.find(name);
        if (at == place.end())
          fail(Exit::data, "{}: the label '{}' of {} is not an attribute{}", path_, name, xml,
               did_you_mean(name, names));
        if (!labels.insert(at->second).second) fail(Exit::data, "{}: the label '{}' occurs twice", xml, name);
      }
      table_.label_columns.assign(labels.begin(), labels.end());
      if (!asked) table_.notes.push_back(fmt::format("labels are those of {}", xml));
    } else if (const auto count = meka_labels(relation_); count != 0 && options_.label_columns.empty()) {
      const auto size = static_cast<std::int64_t>(attributes_.size());
      if (std::abs(count) > size)
        fail(Exit::data, "{}: the relation says -C {}, there are {} attributes", path_, count, size);
      for (std::int64_t k = 0; k < std::abs(count); ++k)
        table_.label_columns.push_back(static_cast<std::size_t>(count > 0 ? k : size + count + k));
    }
  }

  const std::string& path_;
  const ReadOptions& options_;
  std::string relation_;
  std::vector<Attribute> attributes_;
  std::vector<std::size_t> defaults_;
  std::size_t id_ = 0, width_ = 0;
  bool sparse_ = false;
  std::vector<float> values_;
  CsrBuilder builder_;
  FlatTable table_;
};

}  // namespace

FlatTable read_arff(const std::string& path, const ReadOptions& options) {
  return ArffReader(path, options).read();
}

}  // namespace lacuna
