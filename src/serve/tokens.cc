#include "serve/tokens.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace lacuna::serve {
namespace {

constexpr std::size_t kShortest = 16;

std::string hash(std::string_view token) {
  Sha256 sha;
  sha.add(token);
  return sha.hex();
}

bool equal(const std::string& a, const std::string& b) {  // both are hashes
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace

Tokens Tokens::read(const std::string& path) {
  const std::string text = read_text(path, 1 << 20);
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    fail(Exit::data, "{}: other users may read the tokens (mode {:03o}); chmod 600 it", path,
         status.st_mode & 0777);
  Tokens tokens;
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view token = trim(line);
    if (token.empty() || token.front() == '#') continue;
    if (token.size() < kShortest)
      fail(Exit::data,
           "{}: line {}: a token has at least {} characters, this one has {}; try: openssl rand -hex 32",
           path, number, kShortest, token.size());
    for (const char c : token)
      if (c <= ' ' || c > '~')
        fail(Exit::data, "{}: line {}: a token consists of ASCII characters without blanks", path, number);
    tokens.hashes_.push_back(hash(token));
  }
  if (tokens.hashes_.empty()) fail(Exit::data, "{}: has no token; write one per line", path);
  return tokens;
}

bool Tokens::allow(std::string_view authorization) const {
  if (!required()) return true;
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() < kScheme.size()) return false;
  for (std::size_t i = 0; i < kScheme.size(); ++i)
    if ((authorization[i] | 0x20) != kScheme[i]) return false;
  const std::string given = hash(trim(authorization.substr(kScheme.size())));
  bool found = false;
  for (const std::string& one : hashes_) found |= equal(one, given);
  return found;
}

}  // namespace lacuna::serve
