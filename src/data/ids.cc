#include "data/ids.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace lacuna {
namespace {

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

// As Excel leaves numbers: 7 of 007; and P7 of P007.
std::string without_leading_zeros(std::string_view text) {
  std::string out;
  bool inside = false;  // a number has begun
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '0' && !inside && i + 1 < text.size() && is_digit(text[i + 1])) continue;
    inside = is_digit(text[i]);
    out += text[i];
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

// Whether `id` is `part` and more behind a separator: TCGA-AA-0061-01A and TCGA-AA-0061.
bool opens(std::string_view part, std::string_view id) {
  return !part.empty() && id.size() > part.size() && id.starts_with(part) &&
         static_cast<unsigned char>(id[part.size()]) < 0x80 &&
         std::isalnum(static_cast<unsigned char>(id[part.size()])) == 0;
}

using WordList = std::vector<std::string>;

bool contains(const WordList& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// Words that make a header one of ids; those that do so behind a person or a sample (Proben-Nr); those that say nothing.
const WordList kIdWords = {"id",         "ids",       "uid",  "uuid",  "guid", "barcode", "barcodes",
                           "identifier", "accession", "name", "names", "iid",  "ptid",    "mrn",
                           "sku",        "ean",       "gtin", "isbn",  "asin"};
const WordList kNumberWords = {"nr", "no", "num", "number", "nummer"};
const WordList kPrefixes = {"bcr", "tcga", "gdc", "geo", "ref", "tumor", "tumour", "unique", "original"};
// What rows are. The last ones are of rows that should be columns; whoever joins tables finds that out by their ids.
const WordList kPeople = {"sample",  "patient", "subject",    "donor",   "specimen", "participant",
                          "person",  "proband", "individual", "aliquot", "proben",   "patienten",
                          "product", "article", "customer",   "produkt", "artikel",  "kunden"};
const WordList kThings = {"case",   "item",       "entity",     "cell",  "submitter", "image",
                          "file",   "record",     "gene",       "probe", "feature",   "protein",
                          "symbol", "genesymbol", "hugosymbol", "cpg"};

// "Sample_ID", "sampleID" and "sample id" are the words sample and id.
WordList words_of(std::string_view header) {
  WordList words(1);
  bool small = false;  // the letter before
  for (const char c : header) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = byte >= 0x80 || std::isalnum(byte) != 0,
               large = byte < 0x80 && std::isupper(byte) != 0;
    if (!letter || (large && small)) words.emplace_back();
    if (letter) words.back() += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    small = letter && !large;
  }
  std::erase(words, "");
  return words;
}

// The thing that a word names: sample of samples, sampleid and samplename.
std::string thing_of(const std::string& word) {
  for (const std::string_view ending : {"", "identifier", "barcode", "ids", "id", "names", "name", "s"}) {
    if (word.size() <= ending.size() || !word.ends_with(ending)) continue;
    const std::string thing = word.substr(0, word.size() - ending.size());
    if (contains(kPeople, thing) || contains(kThings, thing)) return thing;
  }
  return "";
}

// Headers of ids that do not say of what.
bool says_nothing(const std::string& header) {
  static const WordList kNothing = {"id",    "ids",   "unnamed0", "rowname",    "rownames",
                                    "row",   "index", "key",      "identifier", "name",
                                    "names", "uid",   "uuid",     "barcode",    "idref"};
  return trim(header).empty() || contains(kNothing, plain(header));
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
  if (says_nothing(header)) return "";
  const WordList words = words_of(header);
  if (words.empty()) return header;  // "#" or "%" is a name, an empty header is none
  std::string rest;
  for (const auto& word : words) {
    if (const std::string thing = thing_of(word); !thing.empty()) return thing;
    if (!contains(kIdWords, word) && !contains(kNumberWords, word) && !contains(kPrefixes, word))
      rest += word;
  }
  return rest;
}

bool is_id_name(const std::string& header) {
  if (says_nothing(header) || is_sure_id_name(header)) return true;
  const WordList words = words_of(header);
  return !words.empty() && std::ranges::all_of(words, [](const std::string& word) {
    return contains(kIdWords, word) || contains(kPrefixes, word) || !thing_of(word).empty();
  });
}

bool is_sure_id_name(const std::string& header) {
  const WordList words = words_of(header);
  if (words.empty()) return false;
  const auto bare = [](const std::string& word) {
    return contains(kIdWords, word) && word != "name" && word != "names";
  };
  if (words.size() == 1) {
    const std::string& word = words[0];  // without more, a plural is likely to be a count
    return bare(word) || contains(kPeople, word) ||
           (word != thing_of(word) && thing_of(word) + "s" != word && !thing_of(word).empty() &&
            word.find("name") == std::string::npos);
  }
  if (bare(words.back()) || (words.front() == "id" && words.back() == "ref")) return true;
  const auto names_person = [](const std::string& word) { return contains(kPeople, thing_of(word)); };
  return contains(kNumberWords, words.back()) && words.size() == 2 && names_person(words[0]);
}

bool is_row_number_name(const std::string& header) {
  static const WordList kNames = {"",         "index",     "row",   "rows",    "rowname",
                                  "rownames", "rownumber", "rowid", "rowindex"};
  const std::string name = plain(header);
  if (name.empty() && !trim(header).empty()) return false;
  return contains(kNames, name) || name.starts_with("unnamed") || trim(header) == "X" ||
         trim(header).starts_with("...");
}

bool are_row_numbers(const std::vector<std::string>& ids) {
  const auto first = ids.empty() ? std::nullopt : parse_int(trim(ids[0]));
  if (!first || (*first != 0 && *first != 1)) return false;
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (trim(ids[i]) != std::to_string(static_cast<std::size_t>(*first) + i)) return false;
  return true;
}

std::string likely_partner(const std::string& id, const std::vector<std::string>& others) {
  constexpr std::size_t kMost = 5000;
  if (const auto number = parse_double(trim(id)))
    for (const auto& other : others)
      if (parse_double(trim(other)) == number)
        return fmt::format(
            " ('{}' and '{}' are the same number, but ids are compared as text: write them alike)", id,
            other);
  const std::string form = plain(id);
  for (const auto& other : others)
    if (!form.empty() && plain(other) == form) return fmt::format(" (is '{}' the same as '{}'?)", id, other);
  const std::string* within = nullptr;  // the longest that opens the id, or that the id opens
  for (const auto& other : others)
    if ((opens(other, id) || opens(id, other)) && (within == nullptr || other.size() > within->size()))
      within = &other;
  if (within != nullptr) return fmt::format(" (is '{}' the same as '{}'?)", id, *within);
  const auto few = others.begin() + static_cast<std::ptrdiff_t>(std::min(others.size(), kMost));
  const std::string near = nearest(id, {others.begin(), few});
  return near.empty() ? "" : fmt::format(" (is '{}' the same as '{}'?)", id, near);
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
    const std::string form = plain(without_leading_zeros(data.ids[i]));
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
        const std::string other = plain(without_leading_zeros(data.ids[j]));
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
