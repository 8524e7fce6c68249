#include "experiments/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "experiments/svg.h"

namespace lacuna {
namespace {

std::string deviation_text(const TableCell& cell) {
  const auto dot = cell.text.find('.');
  const auto digits = dot == std::string::npos ? 0 : static_cast<int>(cell.text.size() - dot - 1);
  return fmt::format("{:.{}f}", cell.deviation, digits);
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_number(const TableCell& cell) {
  return std::isfinite(cell.value) ? fmt::format("{}", cell.value)
                                   : csv_field(cell.text == "-" ? "" : cell.text);
}

bool numeric_column(const ResultTable& table, std::size_t j) {
  bool any = false;
  for (const auto& row : table.rows) {
    if (j >= row.size() || row[j].text.empty() || row[j].text == "-") continue;
    if (!std::isfinite(row[j].value)) return false;
    any = true;
  }
  return any;
}

}  // namespace

TableCell TableCell::number(double value, int digits) {
  TableCell cell;
  cell.value = value;
  cell.text = std::isfinite(value) ? fmt::format("{:.{}f}", value, digits) : "-";
  return cell;
}

TableCell TableCell::signed_number(double value, int digits) {
  TableCell cell = number(value, digits);
  if (std::isfinite(value)) cell.text = fmt::format("{:+.{}f}", value, digits);
  return cell;
}

TableCell TableCell::significant(double value) {
  if (!std::isfinite(value) || value == 0) return number(value, 0);
  return number(value, std::max(0, 2 - static_cast<int>(std::floor(std::log10(std::abs(value))))));
}

std::string latex_label(std::string_view name) {
  std::string label;
  for (const char c : name)
    label += std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ? c : '-';
  return label;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '\n' || c == '\r' || c == '\t')
      out += ' ';
    else if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (std::string_view("\\`*_[]|#").find(c) != std::string_view::npos)
      out += '\\', out += c;
    else
      out += c;
  }
  return out;
}

std::string escape_latex(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '\n':
      case '\r':
      case '\t':
        out += ' ';
        break;
      case '#':
      case '$':
      case '%':
      case '&':
      case '_':
      case '{':
      case '}':
        out += '\\', out += c;
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string ResultTable::markdown() const {
  std::string out = "**" + escape_markdown(caption) + "**\n\n|";
  for (const auto& title : header) out += " " + escape_markdown(title) + " |";
  out += "\n|";
  for (std::size_t j = 0; j < header.size(); ++j) out += numeric_column(*this, j) ? " ---: |" : " --- |";
  for (const auto& row : rows) {
    out += "\n|";
    for (const auto& cell : row) {
      std::string text = escape_markdown(cell.text);
      if (std::isfinite(cell.deviation)) text += " ± " + deviation_text(cell);
      if (cell.best) text = "**" + text + "**";
      if (cell.second) text = "<u>" + text + "</u>";
      if (cell.theirs) text = "*" + text + "*";
      out += " " + text + " |";
    }
  }
  out += "\n";
  for (const auto& note : notes) out += "\n" + escape_markdown(note) + "\n";
  return out;
}

std::string ResultTable::csv() const {
  std::vector<bool> spread(header.size(), false);
  for (const auto& row : rows)
    for (std::size_t j = 0; j < row.size(); ++j) spread[j] = spread[j] || std::isfinite(row[j].deviation);
  std::string out;
  for (std::size_t j = 0; j < header.size(); ++j) {
    out += (j ? "," : "") + csv_field(header[j]);
    if (spread[j]) out += "," + csv_field(header[j] + " sd");
  }
  for (const auto& [key, value] : origin) out += "," + csv_field(key);
  out += "\n";
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) {
      out += (j ? "," : "") + csv_number(row[j]);
      if (spread[j]) out += std::isfinite(row[j].deviation) ? fmt::format(",{}", row[j].deviation) : ",";
    }
    for (const auto& [key, value] : origin) out += "," + csv_field(value);
    out += "\n";
  }
  return out;
}

std::string ResultTable::latex() const {
  std::string out = "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\caption{" +
                    escape_latex(caption) + "}\n\\label{tab:" + latex_label(name) + "}\n\\begin{tabular}{";
  for (std::size_t j = 0; j < header.size(); ++j) out += numeric_column(*this, j) ? 'r' : 'l';
  out += "}\n\\toprule\n";
  for (std::size_t j = 0; j < header.size(); ++j) out += (j ? " & " : "") + escape_latex(header[j]);
  out += " \\\\\n\\midrule\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && std::find(rules.begin(), rules.end(), i) != rules.end()) out += "\\midrule\n";
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const TableCell& cell = rows[i][j];
      std::string text = escape_latex(cell.text);
      if (cell.best) text = "\\textbf{" + text + "}";
      if (cell.second) text = "\\underline{" + text + "}";
      if (cell.theirs) text = "\\textit{" + text + "}";
      if (std::isfinite(cell.deviation)) text += "$_{" + deviation_text(cell) + "}$";
      out += (j ? " & " : "") + text;
    }
    out += " \\\\\n";
  }
  out += "\\bottomrule\n\\end{tabular}\n";
  for (const auto& note : notes) out += "\n{\\footnotesize " + escape_latex(note) + "}\n";
  return out + "\\end{table}\n";
}

std::string ResultTable::html() const {
  std::vector<bool> numeric;
  for (std::size_t j = 0; j < header.size(); ++j) numeric.push_back(numeric_column(*this, j));
  std::string out = "<figure class=\"table\"><figcaption>" + escape_xml(caption) + "</figcaption>";
  if (filter)
    out +=
        "<label class=\"filter\" hidden>filter <input type=\"search\" autocomplete=\"off\" "
        "spellcheck=\"false\"></label>";
  const bool prose = std::any_of(rows.begin(), rows.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const TableCell& cell) { return cell.text.size() > 48; });
  });
  out +=
      fmt::format("<div class=\"scroll{}\" tabindex=\"0\"><table class=\"data{}{}\"><thead><tr>",
                  rows.size() > 40 ? " long" : "", header.size() > 8 ? " many" : "", prose ? " prose" : "");
  for (std::size_t j = 0; j < header.size(); ++j)
    out += fmt::format("<th scope=\"col\"{}><bdi>{}</bdi></th>", numeric[j] ? " class=\"n\"" : "",
                       escape_xml(header[j]));
  out += "</tr></thead><tbody>";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool rule = i > 0 && std::find(rules.begin(), rules.end(), i) != rules.end();
    out += rule ? "<tr class=\"rule\">" : "<tr>";
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const TableCell& cell = rows[i][j];
      std::string style = numeric[j] ? "n" : "";
      if (cell.best) style += style.empty() ? "best" : " best";
      if (cell.second) style += style.empty() ? "second" : " second";
      if (cell.theirs) style += style.empty() ? "theirs" : " theirs";
      const bool head = j == 0;
      out += head ? "<th scope=\"row\"" : "<td";
      if (!style.empty()) out += " class=\"" + style + "\"";
      if (std::isfinite(cell.value)) out += fmt::format(" data-v=\"{}\"", static_cast<float>(cell.value));
      out += cell.text.empty() ? ">"
             : numeric[j]      ? ">" + escape_xml(cell.text)
                               : "><bdi>" + escape_xml(cell.text) + "</bdi>";
      if (std::isfinite(cell.deviation)) out += "<small>±" + deviation_text(cell) + "</small>";
      out += head ? "</th>" : "</td>";
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>";
  for (const auto& note : notes) out += "<p class=\"note\">" + escape_xml(note) + "</p>";
  return out + "</figure>\n";
}

}  // namespace lacuna
