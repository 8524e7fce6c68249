// SVG drawings. Colours are classes, never literals, so that one drawing serves the page (light, dark, print:
// the page's style sheet decides) and a file of its own (which carries the light colours, and the dark ones
// for viewers that ask). Every text and attribute is escaped here; callers pass names as they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lacuna {

// For element content and for attribute values in double quotes. Control characters that XML forbids become
// U+FFFD.
std::string escape_xml(std::string_view text);
// The style sheet of drawings with var(--name) colours; page_colours() declares them for light, dark and
// print.
std::string plot_style();
std::string page_colours();

constexpr int kSeriesStyles = 13;  // classes s0..s12 (colour), each with a mark and a dash of its own

class Svg {
 public:
  enum class Anchor { start, middle, end };

  // `title` is read by screen readers and shown by none.
  Svg(double width, double height, std::string title);

  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                bool closed = false);
  void rect(double x, double y, double width, double height, std::string_view style, double opacity = 1,
            std::string_view tip = {});
  void circle(double x, double y, double radius, std::string_view style, std::string_view tip = {});
  // The mark of a series style: a shape that tells it apart without colour.
  void mark(double x, double y, int series, std::string_view tip = {}, double size = 3.6);
  void text(double x, double y, std::string_view content, Anchor anchor = Anchor::start,
            std::string_view style = "tick", double rotate = 0);
  void begin_group(std::string_view style,
                   std::string_view series = {});  // `series` is what hovering brings forward
  void end_group();

  std::string inline_text() const;  // for the page
  std::string file_text() const;    // a file of its own
  double width() const { return width_; }
  double height() const { return height_; }
  std::size_t marks() const { return marks_; }  // rects, circles and marks that carry data

 private:
  std::string open(bool stand_alone) const;
  double width_, height_;
  std::string title_, body_;
  std::size_t marks_ = 0;
};

double text_width(std::string_view text, double size = 12);  // estimate in user units
// As much of a name as fits into `width`, never half a code point.
std::string fitting(std::string_view name, double width, double size = 12);

}  // namespace lacuna
