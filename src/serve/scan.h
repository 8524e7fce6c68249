// Reads JSON text once from beginning to end, without building a tree, because requests contain thousands of numbers.
// NaN is accepted as a number, because Python's json writes it; infinities are refused. Everything else is RFC 8259.
// Errors are refused (400) with the position of the byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/threads.h"

namespace lacuna::serve {

class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  char peek();           // the first character of the next value or sign; 0 at the end
  char first_of_list();  // the first character within the list that is next
  bool take(char sign);  // steps over it if it is next
  void expect(char sign);
  bool null();  // steps over a null if it is next
  bool boolean();
  std::string string();
  float number();  // null and NaN are NaN
  void numbers(std::vector<float>& out,
               std::size_t most);  // a list of them, appended; 413 beyond `most` in all
  std::uint64_t whole();           // a whole number from 0 on
  void skip();                     // any value
  void end();                      // nothing but blanks may follow

  // Calls member(key) for each member of an object; it must read the value.
  void object(FunctionRef<void(const std::string&)> member);
  // Calls element() for each element of an array.
  void array(FunctionRef<void()> element);

  [[noreturn]] void fail(const std::string& what) const;
  std::size_t left() const { return text_.size() - at_; }  // bytes

 private:
  void skip_blanks();
  bool word(std::string_view literal);
  unsigned hex4();

  static constexpr int kDeepest = 32;
  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// For writing: the text in quotes, with escapes. Bytes that are no UTF-8 are replaced.
std::string json_quoted(std::string_view text);

}  // namespace lacuna::serve
