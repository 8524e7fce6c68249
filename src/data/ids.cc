#include "data/ids.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>

#include "base/text.h"

namespace lacuna {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Small letters and digits alone; bytes of UTF-8 are kept.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0)
      out += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
  }
  return out;
}

// One letter more, less or other, or two neighbours exchanged, outside of digits: numbers count on, so that
// P12 and P13 are two people.
bool differ_by_a_slip(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1) return false;
  std::size_t i = 0;
  while (i < a.size() && a[i] == b[i]) ++i;
  const std::string_view rest_a = a.substr(i), rest_b = b.substr(i);
  if (rest_a.size() < rest_b.size()) return !is_digit(rest_b[0]) && rest_a == rest_b.substr(1);
  if (rest_a.empty()) return true;
  if (is_digit(rest_a[0]) || is_digit(rest_b[0])) return false;
  if (rest_a.substr(1) == rest_b.substr(1)) return true;
  return rest_a.size() > 1 && rest_a[0] == rest_b[1] && rest_a[1] == rest_b[0] &&
         rest_a.substr(2) == rest_b.substr(2);
}

// How much a row has: its views, and 1 for known labels.
std::size_t parts(const Dataset& data, std::size_t i, std::vector<bool>& has) {
  has.assign(data.views.size() + 1, false);
  for (std::size_t v = 0; v < data.views.size(); ++v) has[v] = data.has(i, v);
  if (!data.labels.empty())
    has.back() = std::ranges::any_of(data.labels.row(i), [](std::int8_t y) { return y != kUnknown; });
  return static_cast<std::size_t>(std::ranges::count(has, true));
}

}  // namespace

std::string meaning_of_id(const std::string& header) {
  static const std::vector<std::string> kNothing = {"",         "id",    "ids",   "unnamed0", "rowname",
                                                    "rownames", "row",   "index", "key",      "identifier",
                                                    "name",     "names", "uid",   "uuid"};
  std::string name = plain(header);
  if (name.empty() && !trim(header).empty()) return header;  // "#" or "%" is a name, an empty header is none
  if (std::ranges::find(kNothing, name) != kNothing.end()) return "";
  for (const char* ending : {"identifier", "barcode", "ids", "id", "names", "name", "s"})
    if (const std::string_view e = ending; name.size() > e.size() && name.ends_with(e)) {
      name.resize(name.size() - e.size());
      break;
    }
  return name;
}

bool is_id_name(const std::string& header) {
  // The last ones are of rows that should be columns; whoever joins tables finds that out by their ids.
  static const std::vector<std::string> kRows = {
      "sample",   "patient", "subject",     "case",       "barcode", "donor",     "person",
      "specimen", "item",    "participant", "entity",     "cell",    "submitter", "accession",
      "image",    "file",    "record",      "individual", "gene",    "probe",     "feature",
      "protein",  "symbol",  "genesymbol",  "hugosymbol", "cpg"};
  const std::string meaning = meaning_of_id(header);
  return meaning.empty() || std::ranges::find(kRows, meaning) != kRows.end();
}

std::vector<Misspelt> misspelt_ids(const Dataset& data, std::size_t most) {
  std::vector<Misspelt> found;
  if (data.ids.empty()) return found;
  // Ids that become equal when a letter is left out, or in the plain form, meet under one key.
  std::unordered_multimap<std::string, std::uint32_t> keys;
  std::vector<bool> a, b;
  for (std::size_t i = 0; i < data.rows; ++i) {
    const std::size_t own = parts(data, i, a);
    if (own > data.views.size()) continue;  // it has everything: nothing of it lies elsewhere
    const std::string form = plain(data.ids[i]);
    std::vector<std::string> mine = {form};
    for (std::size_t k = 0; k < form.size(); ++k)
      if (!is_digit(form[k])) {
        mine.push_back(form);
        mine.back().erase(k, 1);
      }
    std::ranges::sort(mine);
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    for (const auto& key : mine) {
      const auto [begin, end] = keys.equal_range(key);
      for (auto at = begin; at != end; ++at) {
        const std::size_t j = at->second;
        if (std::ranges::any_of(
                found, [&](const Misspelt& m) { return (m.a == i && m.b == j) || (m.a == j && m.b == i); }))
          continue;
        const std::string other = plain(data.ids[j]);
        if (form != other && !differ_by_a_slip(form, other)) continue;
        const std::size_t theirs = parts(data, j, b);
        bool common = false;
        for (std::size_t k = 0; k < a.size(); ++k) common = common || (a[k] && b[k]);
        if (common) continue;
        found.push_back(own > theirs ? Misspelt{i, j} : Misspelt{j, i});
        if (found.size() == most) return found;
      }
    }
    for (auto& key : mine) keys.emplace(std::move(key), static_cast<std::uint32_t>(i));
  }
  return found;
}

}  // namespace lacuna
