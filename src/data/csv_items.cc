#include "data/csv_items.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "data/flat_table.h"
#include "data/ids.h"
#include "data/jsonl.h"
#include "data/names.h"

namespace lacuna {
namespace {

char find_separator(std::string_view line) {
  constexpr std::array kSeparators = {',', ';', '\t'};
  std::array<std::size_t, kSeparators.size()> counts{};
  bool quoted = false;
  for (const char c : line) {
    quoted = quoted != (c == '"');
    for (std::size_t k = 0; !quoted && k < kSeparators.size(); ++k) counts[k] += c == kSeparators[k];
  }
  return kSeparators[static_cast<std::size_t>(std::ranges::max_element(counts) - counts.begin())];
}

bool is_column(const std::string& name, const std::vector<ViewShape>& views) {
  return std::ranges::any_of(views, [&](const ViewShape& view) {
    return std::ranges::find(view.column_names, name) != view.column_names.end();
  });
}

}  // namespace

CsvItems::CsvItems(std::string_view first_line, const std::vector<ViewShape>& views,
                   const CsvItemsOptions& options)
    : separator_(options.separator != 0 ? options.separator : find_separator(first_line)),
      there_(views.size()) {
  std::vector<std::string> cells = split(first_line);
  for (auto& cell : cells) cell = utf8_or_latin1(cell);
  std::size_t total = 0, named = 0;
  for (const auto& view : views) total += view.columns, named += view.column_names.empty() ? 0 : 1;
  // A line with more than one cell that is no number holds names; the id of an item may be the one.
  const auto is_number = [&](const std::string& cell) {
    float value = 0;
    unsigned met = 0;
    return read_number(cell, value, met);
  };
  const auto texts =
      static_cast<std::size_t>(std::ranges::count_if(cells, [&](const auto& c) { return !is_number(c); }));
  const bool id_and_numbers = texts == 1 && cells.size() > 1 && !is_number(cells[0]) && !is_id_name(cells[0]);
  has_header_ = options.header == "yes" || (options.header == "auto" && texts > 0 && !id_and_numbers);
  if (has_header_) cell_names_ = cells;
  by_name_ = has_header_ && named == views.size();
  const auto at = parse_int(options.id_column);
  if (!options.id_column.empty()) {
    const auto found = has_header_ ? std::ranges::find(cells, options.id_column) : cells.end();
    id_ = found != cells.end() ? static_cast<std::size_t>(found - cells.begin())
          : at && *at >= 0 && static_cast<std::size_t>(*at) < cells.size() ? static_cast<std::size_t>(*at)
                                                                           : kNone;
    if (id_ == kNone)
      fail(Exit::usage, "the first line has no column '{}'{}", options.id_column,
           did_you_mean(options.id_column, cells));
  } else {
    // As in files: a name that says it wherever it stands, else a usual one in front.
    const auto sure = std::ranges::find_if(cells, [&](const auto& cell) {
      return by_name_ && is_sure_id_name(cell) && !is_column(cell, views);
    });
    if (sure != cells.end())
      id_ = static_cast<std::size_t>(sure - cells.begin());
    else if (by_name_ ? is_id_name(cells[0]) && !is_column(cells[0], views) : cells.size() == total + 1)
      id_ = 0;
  }
  if (id_ != kNone && has_header_) id_name_ = cells[id_];
  if (by_name_)
    match_names(cells, views);
  else
    match_order(cells.size(), views);
}

void CsvItems::match_names(const std::vector<std::string>& cells, const std::vector<ViewShape>& views) {
  std::map<std::string, std::vector<Place>> known;
  std::vector<std::string> names;
  for (std::size_t v = 0; v < views.size(); ++v)
    for (std::size_t j = 0; j < views[v].columns; ++j) {
      known[views[v].column_names[j]].push_back({v, j});
      known[views[v].name + ":" + views[v].column_names[j]].push_back({v, j});
      names.push_back(views[v].column_names[j]);
    }
  std::vector<std::vector<std::uint8_t>> seen(views.size());
  for (std::size_t v = 0; v < views.size(); ++v) seen[v].resize(views[v].columns);
  std::vector<std::string> unknown;
  for (std::size_t k = 0; k < cells.size(); ++k) {
    places_.emplace_back();
    if (k == id_) continue;
    const auto found = known.find(cells[k]);
    if (found == known.end() && k == 0 && id_ != kNone && is_row_number_name(cells[0]))
      continue;  // pandas' index
    if (found == known.end()) {
      unknown.push_back(cells[k]);
      continue;
    }
    if (found->second.size() > 1)
      fail(Exit::mismatch, "column '{}' is in several views of the model; write it as '{}:{}'", cells[k],
           views[found->second[0].view].name, cells[k]);
    places_[k] = found->second[0];
    auto& before = seen[places_[k].view][places_[k].column];
    if (before != 0) fail(Exit::data, "column '{}' occurs twice in the first line", cells[k]);
    before = 1;
  }
  if (!unknown.empty())
    fail(Exit::mismatch, "the model does not know {} of the {} columns: {}{}", unknown.size(), cells.size(),
         some(quoted(unknown), 5), did_you_mean(unknown[0], names));
  for (std::size_t v = 0; v < views.size(); ++v) {
    std::vector<std::string> missing;
    for (std::size_t j = 0; j < seen[v].size(); ++j)
      if (seen[v][j] == 0) missing.push_back(views[v].column_names[j]);
    there_[v] = missing.size() < views[v].columns;
    if (there_[v] != 0 && !missing.empty())
      fail(Exit::mismatch, "view '{}' has {} columns in the model, {} of them are not in the first line: {}",
           views[v].name, views[v].columns, missing.size(), some(quoted(missing), 5));
  }
}

void CsvItems::match_order(std::size_t width, const std::vector<ViewShape>& views) {
  std::size_t total = 0;
  std::vector<std::string> sizes;
  for (const auto& view : views) {
    total += view.columns;
    sizes.push_back(fmt::format("{} {}", view.name, view.columns));
  }
  const std::size_t values = width - (id_ != kNone ? 1 : 0);
  if (values != total)
    fail(Exit::mismatch, "the first line has {} columns of values{}, the model expects {} ({})", values,
         id_ == kNone       ? ""
         : id_name_.empty() ? " beside the id"
                            : fmt::format(" beside the id '{}'", id_name_),
         total, join(sizes, ", "));
  order_ = join(sizes, ", ");
  std::size_t v = 0, j = 0;
  for (std::size_t k = 0; k < width; ++k) {
    places_.emplace_back();
    if (k == id_) continue;
    while (j == views[v].columns) ++v, j = 0;
    places_[k] = {v, j++};
  }
  std::ranges::fill(there_, std::uint8_t{1});
}

void CsvItems::see_first_item(std::string_view line) {
  if (!has_header_ || id_ != kNone) return;
  std::size_t count = 0;
  try {
    const auto cells = split(line);
    count = trim(cells.back()).empty()
                ? 0
                : cells.size();  // a separator at the end of each line is something else
  } catch (const Error&) {       // parse() tells
  }
  if (count != places_.size() + 1) return;
  id_ = 0;
  places_.insert(places_.begin(), Place{});
  cell_names_.insert(cell_names_.begin(), "");
}

// As files are read (csv.cc).
bool CsvItems::read_number(std::string_view cell, float& value, unsigned& met) const {
  const bool point = separator_ != ',' && cell.find('.') != std::string_view::npos;
  if (parse_cell(cell, value)) {
    if (point) met |= kPoint;
    return true;
  }
  const auto comma = cell.find(',');
  if (separator_ == ',' || point || comma == std::string_view::npos) return false;
  std::string changed(cell);
  changed[comma] = '.';
  if (!parse_cell(changed, value)) return false;
  met |= kComma;
  return true;
}

std::string CsvItems::told() const {
  const std::string id = id_ == kNone       ? "no column of ids"
                         : id_name_.empty() ? "ids in the first column"
                                            : fmt::format("ids in column '{}'", id_name_);
  return fmt::format("{}, columns matched {}", id,
                     by_name_ ? "by name" : fmt::format("by position, in the model's order ({})", order_));
}

bool CsvItems::next_cell(std::string_view& rest, std::string_view& cell, std::string& scratch) const {
  if (!rest.starts_with('"')) {
    const auto end = rest.find(separator_);
    cell = rest.substr(0, end);
    if (end == std::string_view::npos) return rest = {}, false;
    rest.remove_prefix(end + 1);
    return true;
  }
  scratch.clear();
  rest.remove_prefix(1);
  for (;;) {
    const auto quote = rest.find('"');
    if (quote == std::string_view::npos)
      fail(Exit::data, "a quoted cell has no end (in a stream an item is one line)");
    scratch += rest.substr(0, quote);
    rest.remove_prefix(quote + 1);
    if (!rest.starts_with('"')) break;
    scratch += '"';
    rest.remove_prefix(1);
  }
  cell = scratch;
  if (rest.empty()) return false;
  if (rest[0] != separator_)
    fail(Exit::data, "'{}' follows a quoted cell, expected '{}' or the end of the line",
         utf8_or_latin1(rest.substr(0, 1)), separator_ == '\t' ? "a tab" : std::string(1, separator_));
  rest.remove_prefix(1);
  return true;
}

std::vector<std::string> CsvItems::split(std::string_view line) const {
  std::vector<std::string> cells;
  std::string scratch;
  std::string_view cell;
  for (bool more = true; more;) {
    more = next_cell(line, cell, scratch);
    cells.emplace_back(cell);
  }
  return cells;
}

unsigned CsvItems::parse(std::string_view line, ItemBlock& block, std::size_t i) const {
  block.clear_row(i);
  unsigned met = 0;
  try {
    const auto& views = block.views();
    std::vector<std::size_t> filled(views.size());
    std::vector<std::span<float>> rows(views.size());
    for (std::size_t v = 0; v < views.size(); ++v)
      if (there_[v] != 0) rows[v] = block.put_view(i, v);
    std::string scratch;
    std::string_view cell;
    std::size_t k = 0;
    for (bool more = true; more; ++k) {
      more = next_cell(line, cell, scratch);
      if (k >= places_.size()) continue;
      if (k == id_) {
        block.set_id(i, utf8_or_latin1(trim(cell)));
        continue;
      }
      const auto [v, j] = places_[k];
      if (v == kNone) continue;
      float& value = rows[v][j];
      const char* end = cell.data() + cell.size();
      // The fast way for what is plainly a number; whole numbers of many digits go the way that checks them.
      const bool point = (cell.size() >= 8 || separator_ != ',') && cell.find('.') != std::string_view::npos;
      if (cell.size() < 8 || point)
        if (parse_json_number(cell.data(), end, value) == end && !cell.empty()) {
          if (point) met |= kPoint;
          ++filled[v];
          continue;
        }
      const auto name = [&] { return cell_names_.empty() ? std::to_string(k) : "'" + cell_names_[k] + "'"; };
      if ((!read_number(cell, value, met) && !parse_yes_no(cell, value)) || std::isinf(value)) {
        const std::string shown = utf8_or_latin1(trim(cell).substr(0, 40));
        if (const auto number = parse_double(shown))
          fail(Exit::data, "column {}: {}", name(), why_no_float(*number, shown));
        fail(Exit::data, "column {}: '{}' {}", name(), shown, why_no_number(shown));
      }
      filled[v] += !std::isnan(value);
    }
    if (k != places_.size())
      fail(Exit::data, "the line has {} cells, the first line has {}", k, places_.size());
    for (std::size_t v = 0; v < views.size(); ++v) {
      if (there_[v] == 0 || filled[v] == views[v].columns) continue;
      if (filled[v] == 0) {
        block.drop_view(i, v);
        continue;
      }
      if (views[v].fill.empty())
        fail(
            Exit::data,
            "view '{}': {} of {} cells are empty; say what stands for them with --empty mean or --empty zero",
            views[v].name, views[v].columns - filled[v], views[v].columns);
      for (std::size_t j = 0; j < views[v].columns; ++j)
        if (std::isnan(rows[v][j])) rows[v][j] = views[v].fill[j];
    }
  } catch (...) {
    block.clear_row(i);
    throw;
  }
  return separator_ == ',' ? 0 : met;
}

}  // namespace lacuna
