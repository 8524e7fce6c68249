#include "experiments/svg.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <utility>

namespace lacuna {
namespace {

// The thirteen of the series were searched for: any two differ by at least 8 (100 times their distance in OKLab) as seen
// with normal vision, without red cones and without green cones, and each has a contrast of 3 to the paper. Colour is
// never alone: every series has a mark and a dash of its own, and its name stands beside it.
struct Colour {
  const char *name, *light, *dark;
};
constexpr Colour kColours[] = {
    {"paper", "#ffffff", "#14171c"}, {"ink", "#1b1f24", "#e6e9ee"},   {"soft", "#59626e", "#a3acb9"},
    {"rule", "#d9dee5", "#333a44"},  {"faint", "#eef1f5", "#20252d"}, {"s0", "#0b5cad", "#63b0f4"},
    {"s1", "#f95801", "#e98a7a"},    {"s2", "#3a4600", "#a88822"},    {"s3", "#d06db2", "#f85ab0"},
    {"s4", "#7e58eb", "#1368e9"},    {"s5", "#9a5505", "#ecae30"},    {"s6", "#6e9a65", "#9dfe87"},
    {"s7", "#b80f79", "#cd3e62"},    {"s8", "#2f1790", "#875ca5"},    {"s9", "#661f53", "#fcb6d6"},
    {"s10", "#5c94f0", "#967dfa"},   {"s11", "#1b1f24", "#e6e9ee"},   {"s12", "#0000dc", "#3c7008"},
    {"warm", "#c8500a", "#ff965c"},  {"cold", "#0b5cad", "#63b0f4"},  {"onheat", "#ffffff", "#0c0e11"},
};
constexpr const char* kDash[kSeriesStyles] = {"none",      "7 3",      "2 2.5",      "9 3 2 3", "5 2",
                                              "1.5 2 6 2", "12 4",     "4 4",        "1 4",     "8 2 1 2 1 2",
                                              "3 1.5",     "10 2 3 2", "6 2 2 2 2 2"};

constexpr std::string_view kFont =
    "ui-sans-serif,system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans','DejaVu "
    "Sans',sans-serif";

std::string resolved(std::string style, bool dark) {
  for (const auto& colour : kColours) {
    const std::string use = fmt::format("var(--{})", colour.name);
    for (auto at = style.find(use); at != std::string::npos; at = style.find(use, at))
      style.replace(at, use.size(), dark ? colour.dark : colour.light);
  }
  return style;
}

// A coordinate: two digits are finer than any printer.
std::string number(double value) {
  if (!std::isfinite(value)) value = 0;
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string tip_element(std::string_view tip) {
  return tip.empty() ? "/>" : fmt::format("><title>{}</title>", escape_xml(tip));
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
          out += "\xEF\xBF\xBD";
        else
          out += c;
    }
  }
  return out;
}

std::string plot_style() {
  std::string style = fmt::format(
      "svg.plot{{font-family:{};font-variant-numeric:tabular-nums}}"
      ".plot text{{fill:var(--ink)}}.plot .tick{{font-size:11.5px;fill:var(--soft)}}"
      ".plot .label{{font-size:12px;fill:var(--soft)}}.plot .name{{font-size:12px;fill:var(--ink)}}"
      ".plot .strong{{font-size:12px;font-weight:650;fill:var(--ink)}}"
      ".plot .cell{{font-size:11px;fill:var(--ink)}}.plot .oncell{{font-size:11px;fill:var(--onheat)}}"
      ".plot .hair{{stroke:var(--faint);stroke-width:1;fill:none}}"
      ".plot .axis{{stroke:var(--soft);stroke-width:1;fill:none}}.plot "
      ".grid{{stroke:var(--rule);stroke-width:1;fill:none}}"
      ".plot .guide{{stroke:var(--soft);stroke-width:1;stroke-dasharray:3 3;fill:none}}"
      ".plot .dot{{fill:var(--ink)}}.plot "
      ".bar{{stroke:var(--ink);stroke-width:4;stroke-linecap:round;fill:none}}"
      ".plot .paper{{fill:var(--paper)}}.plot .faint{{fill:var(--faint)}}.plot .warm{{fill:var(--warm)}}"
      ".plot .cold{{fill:var(--cold)}}.plot .frame{{fill:none;stroke:var(--ink);stroke-width:1.5}}"
      ".plot .curve{{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}}"
      ".plot .lead .curve{{stroke-width:3}}.plot .area{{fill-opacity:.12;stroke:none}}",
      kFont);
  for (int i = 0; i < kSeriesStyles; ++i)
    style += fmt::format(
        ".plot .s{0} .curve{{stroke:var(--s{0});stroke-dasharray:{1}}}"
        ".plot .s{0} .mark,.plot .s{0} .area,.plot .s{0}.fill{{fill:var(--s{0})}}"
        ".plot .s{0} .open{{fill:var(--paper);stroke:var(--s{0});stroke-width:1.6}}"
        ".plot .s{0} .whisker{{fill:none;stroke:var(--s{0});stroke-width:1.6;stroke-opacity:.75}}",
        i, kDash[i]);
  return style;
}

std::string page_colours() {
  std::string light, dark;
  for (const auto& colour : kColours) {
    light += fmt::format("--{}:{};", colour.name, colour.light);
    dark += fmt::format("--{}:{};", colour.name, colour.dark);
  }
  // Dark by the system's wish or by the page's own switch; print is light whatever the screen is.
  return fmt::format(
      ":root{{color-scheme:light;{0}}}"
      "@media screen and "
      "(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{1}}}}}"
      "@media screen{{:root[data-theme=dark]{{color-scheme:dark;{1}}}}}",
      light, dark);
}

Svg::Svg(double width, double height, std::string title)
    : width_(width), height_(height), title_(std::move(title)) {}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>", number(x1), number(y1),
                       number(x2), number(y2), style);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view style,
                   bool closed) {
  if (points.empty()) return;
  body_ += closed ? "<polygon points=\"" : "<polyline points=\"";
  for (std::size_t i = 0; i < points.size(); ++i)
    body_ += fmt::format("{}{},{}", i ? " " : "", number(points[i].first), number(points[i].second));
  body_ += fmt::format("\" class=\"{}\"/>", style);
}

void Svg::rect(double x, double y, double width, double height, std::string_view style, double opacity,
               std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"", number(x),
                       number(y), number(width), number(height), style);
  if (opacity < 1) body_ += fmt::format(" fill-opacity=\"{}\"", number(opacity));
  body_ += tip_element(tip);
  if (!tip.empty()) body_ += "</rect>", ++marks_;
}

void Svg::circle(double x, double y, double radius, std::string_view style, std::string_view tip) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\" class=\"{}\"", number(x), number(y),
                       number(radius), style);
  body_ += tip_element(tip);
  if (!tip.empty()) body_ += "</circle>", ++marks_;
}

void Svg::mark(double x, double y, int series, std::string_view tip, double size) {
  const auto at = [&](double dx, double dy) { return number(x + dx * size) + " " + number(y + dy * size); };
  const auto shape = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string path;
    for (const auto& [dx, dy] : corners) path += (path.empty() ? "M" : "L") + at(dx, dy);
    return path + "Z";
  };
  std::string path;
  const char* style = "mark";
  switch (series % kSeriesStyles) {
    case 0:
      path = fmt::format("M{0}a{1} {1} 0 1 0 {2} 0a{1} {1} 0 1 0 -{2} 0Z", at(-1, 0), number(size),
                         number(2 * size));
      break;
    case 1:
      path = shape({{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}});
      break;
    case 2:
      path = shape({{0, -1.2}, {1.1, .8}, {-1.1, .8}});
      break;
    case 3:
      path = shape({{0, -1.3}, {1.1, 0}, {0, 1.3}, {-1.1, 0}});
      break;
    case 4:
      path = shape({{0, 1.2}, {1.1, -.8}, {-1.1, -.8}});
      break;
    case 5:
      path = fmt::format("M{0}a{1} {1} 0 1 0 {2} 0a{1} {1} 0 1 0 -{2} 0Z", at(-1, 0), number(size),
                         number(2 * size)),
      style = "open";
      break;
    case 6:
      path = shape({{-.9, -.9}, {.9, -.9}, {.9, .9}, {-.9, .9}}), style = "open";
      break;
    case 7:
      path = shape({{0, -1.2}, {1.1, .8}, {-1.1, .8}}), style = "open";
      break;
    case 8:
      path = shape({{-.4, -1.25}, {.4, -1.25}, {.4, 1.25}, {-.4, 1.25}});
      break;
    case 10:
      path = shape({{0, -1.3}, {1.1, 0}, {0, 1.3}, {-1.1, 0}}), style = "open";
      break;
    case 11:
      path = shape({{0, 1.2}, {1.1, -.8}, {-1.1, -.8}}), style = "open";
      break;
    case 12:  // an hourglass
      path = shape({{-1, -1.1}, {1, -1.1}, {-1, 1.1}, {1, 1.1}});
      break;
    default:
      path = shape({{-1, -.3},
                    {-.3, -.3},
                    {-.3, -1},
                    {.3, -1},
                    {.3, -.3},
                    {1, -.3},
                    {1, .3},
                    {.3, .3},
                    {.3, 1},
                    {-.3, 1},
                    {-.3, .3},
                    {-1, .3}});
  }
  body_ += fmt::format("<path d=\"{}\" class=\"{}\"", path, style);
  body_ += tip_element(tip);
  if (!tip.empty()) body_ += "</path>", ++marks_;
}

void Svg::text(double x, double y, std::string_view content, Anchor anchor, std::string_view style,
               double rotate) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\"", number(x), number(y), style);
  if (anchor != Anchor::start)
    body_ += anchor == Anchor::middle ? " text-anchor=\"middle\"" : " text-anchor=\"end\"";
  if (rotate != 0)
    body_ += fmt::format(" transform=\"rotate({} {} {})\"", number(rotate), number(x), number(y));
  // Each name in its own direction, so that a right-to-left one does not turn its surroundings round.
  body_ += fmt::format(" unicode-bidi=\"isolate\">{}</text>", escape_xml(content));
}

void Svg::begin_group(std::string_view style, std::string_view series) {
  body_ += fmt::format("<g class=\"{}\"", style);
  if (!series.empty()) body_ += fmt::format(" data-series=\"{}\"", escape_xml(series));
  body_ += ">";
}
void Svg::end_group() {
  body_ += "</g>";
}

std::string Svg::open(bool stand_alone) const {
  const std::string size =
      stand_alone ? fmt::format(" width=\"{}\" height=\"{}\" xmlns=\"http://www.w3.org/2000/svg\"",
                                number(width_), number(height_))
                  : fmt::format(" style=\"max-width:{}px\"", number(width_));
  return fmt::format("<svg class=\"plot\" viewBox=\"0 0 {} {}\"{} role=\"img\" aria-label=\"{}\">",
                     number(width_), number(height_), size, escape_xml(title_));
}

std::string Svg::inline_text() const {
  return open(false) + body_ + "</svg>\n";
}

std::string Svg::file_text() const {
  const std::string style = plot_style();
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + open(true) + "<title>" + escape_xml(title_) +
         "</title><style>" + resolved(style, false) + "@media (prefers-color-scheme:dark){" +
         resolved(style, true) + "}</style>" +
         fmt::format("<rect class=\"paper\" width=\"{}\" height=\"{}\"/>", number(width_), number(height_)) +
         body_ + "</svg>\n";
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) continue;  // inside a code point
    const bool narrow = std::string_view("iljtfrI.,:;'|()[] -").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW@%").find(c) != std::string_view::npos;
    width += narrow ? .38 : wide ? .95 : .65;
  }
  return width * size;
}

std::string fitting(std::string_view name, double width, double size) {
  if (text_width(name, size) <= width) return std::string(name);
  std::string part;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool whole = (static_cast<unsigned char>(name[i]) & 0xC0) != 0x80;
    if (whole && text_width(part + name[i] + "…", size) > width) break;
    part += name[i];
  }
  return part + "…";
}

}  // namespace lacuna
