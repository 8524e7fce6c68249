#include "data/jsonl.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "data/names.h"

namespace lacuna {
namespace {

constexpr int kDepth = 64;                   // of values that are skipped
constexpr std::size_t kMostName = 1u << 16;  // bytes of an id or a key

std::vector<std::string> names_of(const std::vector<ViewShape>& views) {
  std::vector<std::string> names;
  for (const auto& view : views) names.push_back(view.name);
  return names;
}

class ItemParser {
 public:
  ItemParser(std::string_view line, ItemBlock& block, std::size_t row)
      : begin_(line.data()), at_(line.data()), end_(line.data() + line.size()), block_(block), row_(row) {}

  void parse() {
    bool has_id = false, has_views = false, has_labels = false;
    expect('{', "an item is a JSON object like {\"id\": \"a\", \"views\": {...}}");
    std::string key;
    std::vector<std::string> others;
    if (!next_is('}')) do {
        read_key(key);
        if (key == "id") {
          if (has_id) twice("id");
          has_id = true;
          read_id();
        } else if (key == "views") {
          if (has_views) twice("views");
          has_views = true;
          read_views();
        } else if (key == "labels" && !block_.labels().empty()) {
          if (has_labels) twice("labels");
          has_labels = true;
          read_labels();
        } else {
          if (others.size() < 64) {
            for (const auto& other : others)
              if (other == key) twice(key);
            others.push_back(key);
          }
          skip_value(0);
        }
      } while (more('}'));
    blank();
    if (at_ != end_) fail_here("something follows the item");
    if (!has_views)
      fail(Exit::data, "the item has no \"views\"{}",
           others.empty() ? std::string()
           : did_you_mean("views", others).empty()
               ? fmt::format(" (its keys are {})", join(others, ", "))
               : fmt::format("; is \"{}\" meant?", nearest("views", others)));
  }

 private:
  template <class... Args>
  [[noreturn]] void fail_here(fmt::format_string<Args...> format, Args&&... args) const {
    fail(Exit::data, "byte {}: {}", at_ - begin_ + 1, fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void twice(const std::string& key) const {
    fail(Exit::data, "the key \"{}\" occurs twice", key);
  }
  std::string shown() const {  // what stands here, for messages
    if (at_ == end_) return "the end of the line";
    const char* last = at_;
    while (last != end_ && last - at_ < 12 && std::strchr(" ,:]}\t", *last) == nullptr) ++last;
    return fmt::format("'{}'", utf8_or_latin1({at_, std::max(last, at_ + 1)}));
  }

  void blank() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }
  bool next_is(char c) {  // takes it
    blank();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* what) {
    if (!next_is(c)) fail_here("expected '{}', found {}: {}", c, shown(), what);
  }
  // After an element: true at a comma, false at the closing bracket.
  bool more(char close) {
    if (next_is(',')) return true;
    if (!next_is(close)) fail_here("expected ',' or '{}', found {}", close, shown());
    return false;
  }
  bool word(const char* text) {
    const std::size_t size = std::strlen(text);
    if (static_cast<std::size_t>(end_ - at_) < size || std::memcmp(at_, text, size) != 0) return false;
    at_ += size;
    return true;
  }
  void read_key(std::string& key) {
    blank();
    if (at_ == end_ || *at_ != '"') fail_here("expected a key in quotes, found {}", shown());
    read_text(&key);
    expect(':', "a key is followed by its value");
  }

  unsigned hex4() {
    if (end_ - at_ < 4) fail_here("\\u is followed by four hexadecimal digits");
    unsigned value = 0;
    const auto [end, error] = std::from_chars(at_, at_ + 4, value, 16);
    if (error != std::errc() || end != at_ + 4) fail_here("\\u is followed by four hexadecimal digits");
    at_ = end;
    return value;
  }
  // At a quote. Null: the text is skipped.
  void read_text(std::string* out) {
    const char* opened = at_++;
    if (out != nullptr) out->clear();
    for (;;) {
      const char* plain = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
      if (out != nullptr) {
        out->append(plain, at_);
        if (out->size() > kMostName) fail_here("a name of more than {} bytes", kMostName);
      }
      if (at_ == end_) {
        at_ = opened;
        fail_here("this text has no closing quote");
      }
      const char c = *at_;
      if (c == '"') break;
      if (c != '\\') fail_here("a control character inside a text");
      ++at_;
      if (at_ != end_ && *at_ == 'u') {
        ++at_;
        char32_t point = hex4();
        if (point >= 0xD800 && point < 0xDC00) {
          if (!word("\\u")) fail_here("half of a surrogate pair");
          const char32_t low = hex4();
          if (low < 0xDC00 || low > 0xDFFF) fail_here("half of a surrogate pair");
          point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        } else if (point >= 0xDC00 && point < 0xE000) {
          fail_here("half of a surrogate pair");
        }
        if (point == 0) fail_here("a name cannot hold the character 0");
        if (out != nullptr) *out += from_code_points({&point, 1});
      } else {
        constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
        const std::size_t letter = at_ == end_ ? std::string_view::npos : kLetters.find(*at_);
        if (letter == std::string_view::npos) fail_here("an unknown escape in a text");
        if (out != nullptr) *out += kMeanings[letter];
        ++at_;
      }
    }
    ++at_;
    if (out != nullptr && !valid_utf8(*out)) fail_here("a name that is not UTF-8 text");
  }
  void read_id() {
    blank();
    if (at_ != end_ && *at_ == '"') {
      std::string id;
      read_text(&id);
      if (id.empty()) fail_here("an id cannot be empty; leave the key out where an item has none");
      block_.set_id(row_, std::move(id));
      return;
    }
    const char* first = at_;
    if (at_ != end_ && *at_ == '-') ++at_;
    const char* digits = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    const bool ends = at_ == end_ || std::strchr(".eE", *at_) == nullptr;
    const bool padded = at_ - digits > 1 && *digits == '0';  // 007 is no JSON; as a text it is an id
    if (at_ == digits || at_ - digits > 20 || !ends || padded) {
      at_ = first;
      fail_here("an id is a text or a whole number, found {}", shown());
    }
    block_.set_id(row_, std::string(first, at_), true);
  }

  void read_views() {
    expect('{', "\"views\" is an object: {\"name\": [values], ...}");
    std::string name;
    seen_.assign(block_.views().size(), 0);
    if (!next_is('}')) do {
        read_key(name);
        const std::size_t v = block_.view_index(name);
        if (v == block_.views().size()) {
          const auto known = names_of(block_.views());
          fail(Exit::data, "the model has no view '{}'{} (it has {})", name, did_you_mean(name, known),
               join(known, ", "));
        }
        if (seen_[v]++ != 0) twice(name);
        read_view(v);
      } while (more('}'));
  }

  // {"beach": 1, "city": 0, "sun": null}, or ["beach"].
  void read_labels() {
    blank();
    if (word("null")) return;
    seen_.assign(block_.labels().size(), 0);
    std::string name;
    if (next_is('[')) {
      if (!next_is(']')) do {
          blank();
          if (at_ == end_ || *at_ != '"')
            fail_here("expected the name of a label in quotes, found {}", shown());
          read_text(&name);
          block_.set_label(row_, label(name), 1);
        } while (more(']'));
      return;
    }
    expect('{', "\"labels\" is an object, {\"name\": 1, \"other\": 0}, or a list of names");
    if (!next_is('}')) do {
        read_key(name);
        const std::size_t j = label(name);
        block_.set_label(row_, j, label_value(name));
      } while (more('}'));
  }
  // Its place, where it is met for the first time.
  std::size_t label(const std::string& name) {
    const std::size_t j = block_.label_index(name);
    if (j == block_.labels().size())
      fail(Exit::data, "the model has no label '{}'{}", name, did_you_mean(name, block_.labels()));
    if (seen_[j]++ != 0) fail(Exit::data, "label '{}' occurs twice in \"labels\"", name);
    return j;
  }
  std::int8_t label_value(const std::string& name) {
    blank();
    if (word("null")) return kUnknown;
    if (word("true")) return 1;
    if (word("false")) return 0;
    float value = -1;
    const char* next = parse_json_number(at_, end_, value);
    if (next == nullptr || (value != 0 && value != 1))
      fail_here("label '{}' is 1, 0, true, false or null (unknown), found {}", name, shown());
    at_ = next;
    return static_cast<std::int8_t>(value);
  }

  void read_view(std::size_t v) {
    blank();
    if (word("null")) return;
    if (at_ != end_ && *at_ == '[') return read_dense(v);
    if (at_ != end_ && *at_ == '{') return read_sparse(v);
    fail_here("view '{}' is a list of numbers, {{\"indices\": [...], \"values\": [...]}} or null, found {}",
              block_.views()[v].name, shown());
  }

  float number(const std::string& view) {
    float value = 0;
    const char* next = parse_json_number(at_, end_, value);
    if (next != nullptr) {
      at_ = next;
      return value;
    }
    if (at_ != end_ && (is_digit(*at_) || *at_ == '-') && !std::isfinite(value))
      fail_here("view '{}': {} is beyond the range of float32", view, shown());
    if (word("NaN") || word("nan") || word("Infinity") || word("-Infinity"))
      fail_here(
          "view '{}': NaN and Infinity are not valid in JSON; leave out a view that is missing; for a single "
          "value write null, and say what stands for it with --empty mean or --empty zero",
          view);
    fail_here("view '{}': expected a number, found {}", view, shown());
  }

  void read_dense(std::size_t v) {
    const ViewShape& view = block_.views()[v];
    ++at_;
    const std::span<float> values = block_.put_view(row_, v);
    std::size_t count = 0;
    if (!next_is(']')) do {
        blank();
        float value = 0;
        if (at_ != end_ && *at_ == 'n' && word("null")) {
          if (view.fill.empty())
            fail_here(
                "view '{}': value {} is null; say what stands for it with --empty mean or --empty zero, or "
                "leave the whole view out",
                view.name, column(view, count));
          value = count < view.fill.size() ? view.fill[count] : 0;
        } else {
          value = number(view.name);
        }
        if (count < values.size()) values[count] = value;
        ++count;
      } while (more(']'));
    if (count != values.size()) throw WrongSize(view.name, count, values.size());
  }
  static std::string column(const ViewShape& view, std::size_t j) {
    return j < view.column_names.size() ? fmt::format("{} ('{}')", j, view.column_names[j])
                                        : std::to_string(j);
  }

  // Indices and values may come in either order; whichever is first is remembered by its place in the line.
  void read_sparse(std::size_t v) {
    const ViewShape& view = block_.views()[v];
    const char *indices = nullptr, *values = nullptr;
    ++at_;
    std::string key;
    if (!next_is('}')) do {
        read_key(key);
        const char*& place = key == "indices" ? indices : values;
        if (key != "indices" && key != "values")
          fail_here("view '{}': a sparse view has \"indices\" and \"values\", found \"{}\"", view.name, key);
        if (place != nullptr) twice(key);
        if (!next_is('[')) fail_here("view '{}': \"{}\" is a list, found {}", view.name, key, shown());
        place = at_;
        --at_;
        skip_value(0);
      } while (more('}'));
    if (indices == nullptr || values == nullptr)
      fail(Exit::data, "view '{}': a sparse view has \"indices\" and \"values\"; {} is not there", view.name,
           indices == nullptr ? "\"indices\"" : "\"values\"");
    const char* behind = at_;
    const std::span<float> row = block_.put_view(row_, v);
    std::ranges::fill(row, 0.f);
    std::size_t count = 0;
    std::int64_t before = -1;
    for (bool first = true;; first = false) {
      at_ = indices;
      const bool more_indices = list_goes_on(first);
      std::int64_t index = 0;
      if (more_indices) index = read_index(view, before);
      indices = at_;
      at_ = values;
      const bool more_values = list_goes_on(first);
      if (more_indices != more_values)
        fail(Exit::data, "view '{}': the numbers of indices and values differ; one of the lists ends after {}",
             view.name, count);
      if (!more_indices) break;
      row[static_cast<std::size_t>(index)] = number(view.name);
      values = at_;
      before = index;
      ++count;
    }
    at_ = behind;
  }
  // Inside a list that is known to be sound: at its next element.
  bool list_goes_on(bool first) {
    blank();
    if (*at_ == ']') return false;
    if (!first) ++at_;  // the comma
    blank();
    return true;
  }
  std::int64_t read_index(const ViewShape& view, std::int64_t before) {
    std::int64_t index = -1;
    const auto [next, error] = std::from_chars(at_, end_, index);
    if (error != std::errc() || next == end_ || std::strchr(" ,]\t", *next) == nullptr || index < 0)
      fail_here("view '{}': an index is a non-negative whole number, found {}", view.name, shown());
    if (static_cast<std::size_t>(index) >= view.columns)
      fail_here("view '{}': index {} is out of range, the model's view has {} columns (0 to {})", view.name,
                index, view.columns, view.columns - 1);
    if (index <= before)
      fail_here("view '{}': index {} follows {}; indices rise, each comes once", view.name, index, before);
    at_ = next;
    return index;
  }

  // Any value, checked and forgotten.
  void skip_value(int depth) {
    if (depth > kDepth) fail_here("values nested more than {} deep", kDepth);
    blank();
    if (at_ == end_) fail_here("expected a value, found {}", shown());
    if (*at_ == '"') return read_text(nullptr);
    if (*at_ == '[') {
      ++at_;
      if (next_is(']')) return;
      do skip_value(depth + 1);
      while (more(']'));
      return;
    }
    if (*at_ == '{') {
      ++at_;
      if (next_is('}')) return;
      std::string key;
      do {
        read_key(key);
        skip_value(depth + 1);
      } while (more('}'));
      return;
    }
    if (word("null") || word("true") || word("false")) return;
    float ignored = 0;
    if (const char* next = parse_json_number(at_, end_, ignored); next != nullptr) {
      at_ = next;
      return;
    }
    if (!std::isfinite(ignored)) {  // a number, only too large for us
      while (at_ != end_ && std::strchr("+-.eE0123456789", *at_) != nullptr) ++at_;
      return;
    }
    fail_here("expected a value, found {}", shown());
  }

  const char *begin_, *at_, *end_;
  ItemBlock& block_;
  std::size_t row_;
  std::vector<std::uint8_t> seen_;
};

}  // namespace

// Digits are gathered while the grammar is checked. With up to 19 of them and a small power of ten the value
// is one exact product or quotient of doubles (Clinger); it becomes the right float unless it fell exactly
// between two, where the digits that were lost could decide. That, and longer numbers, go the long way.
const char* parse_json_number(const char* at, const char* end, float& value) {
  static constexpr std::array<double, 23> kPowers = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char* first = at;
  const bool minus = at != end && *at == '-';
  if (minus) ++at;
  if (at == end || !is_digit(*at)) return nullptr;
  std::uint64_t digits = 0;
  const char* start = at;
  while (at != end && is_digit(*at)) digits = digits * 10 + static_cast<unsigned>(*at++ - '0');
  std::ptrdiff_t count = at - start, power = 0;
  if (count > 1 && *start == '0') return nullptr;
  if (at != end && *at == '.') {
    start = ++at;
    while (at != end && is_digit(*at)) digits = digits * 10 + static_cast<unsigned>(*at++ - '0');
    if (at == start) return nullptr;
    power = start - at;
    count += at - start;
  }
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    const bool down = at != end && *at == '-';
    if (at != end && (*at == '-' || *at == '+')) ++at;
    if (at == end || !is_digit(*at)) return nullptr;
    std::ptrdiff_t exponent = 0;
    while (at != end && is_digit(*at)) {
      if (exponent < 100000) exponent = exponent * 10 + (*at - '0');
      ++at;
    }
    power += down ? -exponent : exponent;
  }
  if (count <= 19 && digits <= (std::uint64_t{1} << 53) && power >= -22 && power <= 22) {
    double exact = static_cast<double>(digits);
    exact = power < 0 ? exact / kPowers[static_cast<std::size_t>(-power)]
                      : exact * kPowers[static_cast<std::size_t>(power)];
    constexpr std::uint64_t kBelowFloat = (std::uint64_t{1} << 29) - 1, kHalf = std::uint64_t{1} << 28;
    const bool between = (std::bit_cast<std::uint64_t>(exact) & kBelowFloat) == kHalf;
    if (!between && (exact == 0 || (exact > 1e-37 && exact < 3.4e38))) {
      value = static_cast<float>(minus ? -exact : exact);
      return at;
    }
  }
  const auto [next, error] = std::from_chars(first, at, value);
  if (error == std::errc() && next == at) return at;
  // Out of range: larger than the largest float, or so small that it is zero.
  for (const char* c = first; c != at && (*c == '-' || *c == '.' || *c == '0'); ++c) count -= *c == '0';
  const bool small = power + count <= 0;
  value = small ? 0.f : std::numeric_limits<float>::infinity();
  return small ? at : nullptr;
}

WrongSize::WrongSize(const std::string& name, std::size_t given, std::size_t wanted)
    : Error(Exit::data, fmt::format("view '{}' has {} values, the model expects {}", name, given, wanted)),
      view(name),
      columns(given),
      expected(wanted) {}

void parse_item(std::string_view line, ItemBlock& block, std::size_t i) {
  block.clear_row(i);
  try {
    ItemParser(line, block, i).parse();
  } catch (...) {
    block.clear_row(i);
    throw;
  }
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t plain = 0, at = 0;; ++at) {
    const bool ends = at == text.size();
    const unsigned char c = ends ? 0 : static_cast<unsigned char>(text[at]);
    if (!ends && c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.substr(plain, at - plain));
    if (ends) break;
    plain = at + 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", c);
    }
  }
  out += '"';
}

}  // namespace lacuna
