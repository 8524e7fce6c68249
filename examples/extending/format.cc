// A file format of one's own (docs/extending.md): vectors as text, one item per line, `id value value ...`.
#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/text_file.h"

namespace lacuna {

FlatTable read_text_vectors(const std::string& path, const ReadOptions&) {
  const TextFile file = open_text(path);  // gzip and UTF-16 are decoded
  FlatTable table;
  std::vector<std::vector<float>> rows;
  for (const auto line : split(file.text, '\n')) {
    if (trim(line).empty()) continue;
    const auto words = split(trim(line), ' ');
    table.ids.emplace_back(words[0]);
    rows.emplace_back(words.size() - 1);
    for (std::size_t j = 0; j + 1 < words.size(); ++j)
      if (!parse_cell(words[j + 1], rows.back()[j])) refuse_cell(path, rows.size(), std::to_string(j), words[j + 1]);
    if (rows.back().size() != rows[0].size())
      fail(Exit::data, "{}: line {} has {} values, the first line has {}", path, rows.size(), rows.back().size(),
           rows[0].size());
  }
  if (rows.empty()) fail(Exit::data, "{}: the file has no vectors", path);
  Matrix<float> values(rows.size(), rows[0].size());
  for (std::size_t i = 0; i < rows.size(); ++i) std::ranges::copy(rows[i], values.row(i).begin());
  table.values = std::move(values);
  table.has_ids = true;
  return table;
}

}  // namespace lacuna
