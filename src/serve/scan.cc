#include "serve/scan.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "data/jsonl.h"
#include "serve/message.h"

namespace lacuna::serve {
namespace {

void append_utf8(std::string& out, unsigned code) {
  const auto put = [&](unsigned byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

}  // namespace

void JsonScanner::fail(const std::string& what) const {
  refuse(400, "the body is not the JSON that was expected: {} at byte {}", what, at_);
}

void JsonScanner::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
    ++at_;
}

char JsonScanner::peek() {
  skip_blanks();
  return at_ < text_.size() ? text_[at_] : '\0';
}

char JsonScanner::first_of_list() {
  if (peek() != '[') return '\0';
  const std::size_t list = at_++;
  const char first = peek();
  at_ = list;
  return first;
}

bool JsonScanner::take(char sign) {
  if (peek() != sign || at_ == text_.size()) return false;
  ++at_;
  return true;
}

void JsonScanner::expect(char sign) {
  if (!take(sign))
    fail(fmt::format("expected '{}', found {}", sign,
                     at_ < text_.size() ? fmt::format("'{}'", text_[at_]) : "the end"));
}

bool JsonScanner::word(std::string_view literal) {
  skip_blanks();
  if (!text_.substr(at_).starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

bool JsonScanner::null() {
  return word("null");
}

bool JsonScanner::boolean() {
  if (word("true")) return true;
  if (!word("false")) fail("expected true or false");
  return false;
}

unsigned JsonScanner::hex4() {
  unsigned code = 0;
  if (at_ + 4 > text_.size()) fail("unfinished \\u escape");
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, code, 16);
  if (error != std::errc() || end != text_.data() + at_ + 4) fail("expected four hexadecimal digits");
  at_ += 4;
  return code;
}

std::string JsonScanner::string() {
  expect('"');
  std::string out;
  for (;;) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
           static_cast<unsigned char>(text_[at_]) >= ' ')
      ++at_;
    out.append(text_, begin, at_ - begin);
    if (at_ == text_.size()) fail("unfinished text");
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') fail("a control character inside text");
    if (at_ == text_.size()) fail("unfinished text");
    switch (const char escaped = text_[at_++]) {
      case '"':
      case '\\':
      case '/':
        out.push_back(escaped);
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case 'n':
        out.push_back('\n');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 't':
        out.push_back('\t');
        break;
      case 'u': {
        unsigned code = hex4();
        if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
          at_ += 2;
          const unsigned low = hex4();
          if (low < 0xdc00 || low > 0xdfff) fail("half of a surrogate pair");
          code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        } else if (code >= 0xd800 && code < 0xe000) {
          fail("half of a surrogate pair");
        }
        append_utf8(out, code);
        break;
      }
      default:
        fail("unknown escape");
    }
  }
}

float JsonScanner::number() {
  skip_blanks();
  float value = 0;
  const char* const end = text_.data() + text_.size();
  if (const char* next = parse_json_number(text_.data() + at_, end, value); next != nullptr) {
    at_ = static_cast<std::size_t>(next - text_.data());
    return value;
  }
  if (!std::isfinite(value)) fail("a number beyond the range of float32");
  if (word("null") || word("NaN")) return std::numeric_limits<float>::quiet_NaN();
  fail(word("Infinity") || word("-Infinity") ? "an infinite number" : "expected a number");
}

void JsonScanner::numbers(std::vector<float>& out, std::size_t most) {
  expect('[');
  if (take(']')) return;
  do {
    if (out.size() == most) refuse(413, "more than {} numbers; send fewer rows in a request", most);
    out.push_back(number());
  } while (take(','));
  expect(']');
}

std::uint64_t JsonScanner::whole() {
  if (!is_digit(peek())) fail("expected a non-negative whole number");
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (error != std::errc()) fail("a whole number beyond 64 bits");
  at_ = static_cast<std::size_t>(stop - text_.data());
  if (at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E'))
    fail("expected a whole number");
  return value;
}

void JsonScanner::skip() {
  switch (peek()) {
    case '{':
      return object([&](const std::string&) { skip(); });
    case '[':
      return array([&] { skip(); });
    case '"':
      string();
      return;
    case 't':
    case 'f':
      boolean();
      return;
    default:
      number();
  }
}

void JsonScanner::end() {
  if (peek() != '\0' || at_ < text_.size()) fail("more after the end of the document");
}

void JsonScanner::object(FunctionRef<void(const std::string&)> member) {
  expect('{');
  if (++depth_ > kDeepest) fail(fmt::format("nested more than {} deep", kDeepest));
  if (!take('}')) do {
      const std::string key = string();
      expect(':');
      member(key);
    } while (take(',') || (expect('}'), false));
  --depth_;
}

void JsonScanner::array(FunctionRef<void()> element) {
  expect('[');
  if (++depth_ > kDeepest) fail(fmt::format("nested more than {} deep", kDeepest));
  if (!take(']')) do
      element();
    while (take(',') || (expect(']'), false));
  --depth_;
}

std::string json_quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace lacuna::serve
