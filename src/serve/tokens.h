// Bearer tokens, one per line of a file. Without a file no token is required.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna::serve {

class Tokens {
 public:
  Tokens() = default;
  // Blank lines and lines that begin with # are left out. Exit::data for a file without tokens, a token shorter than
  // 16 characters or with blanks, or a file that others may read.
  static Tokens read(const std::string& path);
  bool required() const { return !hashes_.empty(); }
  // Checks the value of an Authorization header. The time does not depend on where a wrong token differs.
  bool allow(std::string_view authorization) const;

 private:
  std::vector<std::string> hashes_;  // all of the same length
};

}  // namespace lacuna::serve
