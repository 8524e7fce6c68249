// One table in four formats: Markdown, CSV, LaTeX (booktabs) and HTML. Each escapes its text itself.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lacuna {

struct TableCell {
  std::string text;                                             // as shown
  double value = std::numeric_limits<double>::quiet_NaN();      // used for sorting and CSV; NaN: the text is used
  double deviation = std::numeric_limits<double>::quiet_NaN();  // shown small behind it
  bool best = false;                                            // set bold
  bool second = false;                                          // underlined
  bool theirs = false;  // a published figure, set in italics

  TableCell() = default;
  TableCell(std::string t) : text(std::move(t)) {}    // NOLINT: a text is a cell
  TableCell(const char* t) : text(t) {}               // NOLINT
  static TableCell number(double value, int digits);  // "-" if it is not a number
  static TableCell signed_number(double value, int digits);
  static TableCell significant(double value);  // three significant digits: "1260", "12.6", "0.000126"
};

struct ResultTable {
  std::string name;     // of its files: "table-emotions"
  std::string caption;  // one sentence
  std::vector<std::string> header;
  std::vector<std::vector<TableCell>> rows;
  std::vector<std::size_t> rules;                           // a thin line above these rows
  std::vector<std::string> notes;                           // below the table
  bool filter = false;                                      // the page offers a filter box
  std::vector<std::pair<std::string, std::string>> origin;  // last columns of the CSV, the same in every row

  std::string markdown() const;
  std::string csv() const;  // deviations in columns of their own, full precision
  std::string latex() const;
  std::string html() const;
};

std::string escape_markdown(std::string_view text);
std::string escape_latex(std::string_view text);
std::string latex_label(std::string_view name);  // its letters, digits, - . and _; the rest becomes -

}  // namespace lacuna
