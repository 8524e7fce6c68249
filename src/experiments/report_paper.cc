// Table 1 as the paper sets it: data sets stacked, six metrics and Ave.R below each other, methods side by side.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/report.h"
#include "experiments/statistics.h"

namespace lacuna {

std::string stacked_latex(const ExperimentResults& results, DeviationStyle style) {
  const std::size_t n = results.methods.size();
  std::string out =
      "% needs "
      "\\usepackage{booktabs,multirow,graphicx}\n\\begin{table}\n\\centering\n\\scriptsize\n\\caption{" +
      escape_latex(fmt::format("Results, {}: mean", results.gaps())) +
      std::string(style == DeviationStyle::subscript ? " and, as a subscript," : " $\\pm$") +
      " population standard deviation over repetitions; bold: best, underlined: second best of the ranked "
      "methods. "
      "Ave.R: average rank over the six metrics, ties with the best rank.";
  out += " " + escape_latex(results.origin_words());
  if (std::any_of(results.methods.begin(), results.methods.end(), [](const auto& m) { return !m.ranked; }))
    out += " $\\dagger$: outside the ranks.";
  if (const std::string caution = results.header.value("caution", ""); !caution.empty())
    out += " " + escape_latex(caution);
  out += "}\n\\label{tab:" + latex_label(results.name) +
         (style == DeviationStyle::subscript ? "-stacked" : "-stacked-pm") + "}\n\\begin{tabular}{ll" +
         std::string(n, 'c') + "}\n\\toprule\nData & Metric";
  for (const auto& method : results.methods)
    out += " & " + escape_latex(method.title) + (method.ranked ? "" : "$^\\dagger$");
  out += " \\\\\n & ";
  for (const auto& method : results.methods) out += " & {\\tiny " + escape_latex(method.source) + "}";
  out += " \\\\\n\\midrule\n";
  for (std::size_t d = 0; d < results.data.size(); ++d) {
    const std::string& data = results.data[d].name;
    if (d > 0) out += "\\midrule\n";
    out += fmt::format("\\multirow{{{}}}{{*}}{{\\rotatebox{{90}}{{{}}}}}", paper_metrics().size() + 1,
                       escape_latex(data));
    for (const auto& metric : paper_metrics()) {
      std::set<double, std::greater<>> shown;
      const auto rounded = [&](const std::vector<double>& values) { return std::round(mean(values) * 1000); };
      for (const auto& method : results.methods)
        if (const auto values = results.values(data, method.key, metric); method.ranked && !values.empty())
          shown.insert(rounded(values));
      out += " & " + metric;
      for (const auto& method : results.methods) {
        const auto values = results.values(data, method.key, metric);
        if (values.empty()) {
          out += " & --";
          continue;
        }
        std::string text = fmt::format("{:.3f}", mean(values));
        const auto place = std::distance(shown.begin(), shown.find(rounded(values)));
        if (method.ranked && place == 0) text = "\\textbf{" + text + "}";
        if (method.ranked && place == 1) text = "\\underline{" + text + "}";
        if (values.size() > 1)
          text += style == DeviationStyle::subscript ? fmt::format("$_{{{:.3f}}}$", deviation(values))
                                                     : fmt::format(" $\\pm$ {:.3f}", deviation(values));
        out += " & " + text;
      }
      out += " \\\\\n";
    }
    out += " & Ave.R";
    const auto average = average_ranks(results, data);
    for (std::size_t i = 0; i < average.size(); ++i) {
      const std::size_t place = rank_place(average, i);
      out += !std::isfinite(average[i]) ? " & --"
             : place == 0               ? fmt::format(" & \\textbf{{{:.2f}}}", average[i])
             : place == 1               ? fmt::format(" & \\underline{{{:.2f}}}", average[i])
                                        : fmt::format(" & {:.2f}", average[i]);
    }
    out += " \\\\\n";
  }
  return out + "\\bottomrule\n\\end{tabular}\n\\end{table}\n";
}

}  // namespace lacuna
