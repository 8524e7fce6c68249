// One self-contained HTML page: no network, no external file, readable without JavaScript and on paper. A
// content policy in the page lets only its own script run, so that even a mistake in escaping could not
// execute anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/svg.h"
#include "experiments/tables.h"

namespace lacuna {

class Page {
 public:
  Page(std::string title, std::string subtitle) : title_(std::move(title)), subtitle_(std::move(subtitle)) {}

  void section(const std::string& heading);  // starts one; the navigation lists them
  void heading(std::string_view text);       // inside a section
  void paragraph(std::string_view text);
  void lead(std::string_view text);  // the overview, set larger
  void list(const std::vector<std::string>& items);
  void definitions(const std::vector<std::pair<std::string, std::string>>& items);
  void code(std::string_view text);  // a command; long ones wrap, and a button copies it
  // The same figure for wide pages and for telephones; the page shows one of them.
  void figure(const Svg& wide, const Svg& narrow, std::string_view caption);
  void begin_gallery();  // figures side by side, two where there is room
  void end_gallery();
  void table(const ResultTable& table);
  void begin_details(std::string_view summary);  // folded until opened; open on paper
  void end_details();

  std::string text() const;

 private:
  std::string title_, subtitle_, body_;
  std::vector<std::string> headings_;
};

}  // namespace lacuna
