#include "serve/suggest.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "data/jsonl.h"
#include "methods/explain.h"
#include "serve/infer_answer.h"

namespace lacuna::serve {
namespace {

constexpr std::size_t kMostExplained = 64;  // items of a request; an explanation costs many predictions

bool flag(std::string_view key, std::string_view value) {
  if (value == "1" || value == "true" || value.empty()) return true;
  if (value == "0" || value == "false") return false;
  refuse(400, "{} is true or false, not '{}'", key, value);
}

// The lines of a body, without blank ones at its end. Counted first: a list of them can need far more memory than they.
std::vector<std::string_view> lines_of(std::string_view body, bool many, const Limits& limits) {
  if (!many) return {body};
  body = body.substr(0, body.find_last_not_of(" \t\r\n") + 1);
  if (body.empty()) return {};
  const auto count = static_cast<std::size_t>(std::ranges::count(body, '\n')) + 1;
  if (count > static_cast<std::size_t>(limits.rows))
    refuse(413, "the request has {} lines, it may have {}; send it in parts", count, limits.rows);
  std::vector<std::string_view> lines = split(body, '\n');
  for (auto& line : lines)
    if (line.ends_with('\r')) line.remove_suffix(1);
  return lines;
}

void append_tag(std::string& out, const ServedModel& model, std::size_t label, float probability,
                bool decided) {
  out += "{\"label\":";
  append_json(out, model.model.label_names()[label]);
  fmt::format_to(std::back_inserter(out), ",\"probability\":{},\"decided\":{}", probability, decided);
}

bool tells_any(std::span<const std::int8_t> known) {
  return std::ranges::any_of(known, [](std::int8_t y) { return y != kUnknown; });
}

// Scores of the items, changed by the labels that they tell of themselves.
Matrix<float> refined(const Suggestions& items, const ServedModel& model, const Outcome& outcome) {
  Matrix<float> scores(outcome.rows().rows, outcome.rows().cols);
  scores.copy_from(outcome.rows());
  Matrix<std::int8_t> known(scores.rows(), scores.cols());
  for (std::size_t i = 0; i < known.rows(); ++i)
    std::ranges::copy(items.block->known(i), known.row(i).begin());
  model.model.refine(known, scores);
  return scores;
}

void append_known(std::string& out, const ServedModel& model, std::span<const std::int8_t> known) {
  out += "\"known\":{";
  bool first = true;
  for (std::size_t j = 0; j < known.size(); ++j) {
    if (known[j] == kUnknown) continue;
    if (!first) out += ',';
    first = false;
    append_json(out, model.model.label_names()[j]);
    out += known[j] == 1 ? ":1" : ":0";
  }
  out += "},";
}

}  // namespace

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned value = 0;
    for (std::size_t k = 1; k <= 2; ++k) {
      const char c = i + k < text.size() ? text[i + k] : ' ';
      const int digit = c >= '0' && c <= '9'                     ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : -1;
      if (digit < 0) refuse(400, "'%' in a target is followed by two hexadecimal digits");
      value = value * 16 + static_cast<unsigned>(digit);
    }
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

SuggestSettings read_settings(std::string_view query) {
  SuggestSettings settings;
  if (query.empty()) return settings;
  for (const std::string_view part : split(query, '&')) {
    const std::size_t equals = part.find('=');
    const std::string key = percent_decoded(part.substr(0, equals));
    const std::string value =
        equals == std::string_view::npos ? "" : percent_decoded(part.substr(equals + 1));
    if (key == "model") {
      settings.model = value;
    } else if (key == "top") {
      const auto number = parse_int(value);
      if (!number || *number < 0) refuse(400, "top is a non-negative whole number, not '{}'", value);
      settings.top = static_cast<std::size_t>(*number);
    } else if (key == "explain") {
      settings.explain = flag(key, value);
    } else {
      refuse(400, "there is no parameter '{}' (there are model, top, explain)", key);
    }
  }
  return settings;
}

Suggestions read_items(std::string_view body, bool many, const ServedModel& model,
                       const SuggestSettings& settings, const Limits& limits) {
  const auto lines = lines_of(body, many, limits);
  if (settings.explain && lines.size() > kMostExplained)
    refuse(413, "the request has {} lines, {} may be explained at once; send it in parts", lines.size(),
           kMostExplained);
  std::size_t row_bytes = 0;
  for (const auto& view : model.views) row_bytes += view.columns * sizeof(float);
  if (lines.size() * row_bytes > static_cast<std::size_t>(limits.memory_bytes))
    refuse(413, "{} lines of {} bytes are more than {} in memory; send the request in parts", lines.size(),
           row_bytes, limits.memory_bytes);
  Suggestions items;
  items.settings = settings;
  items.many = many;
  items.block = std::make_unique<ItemBlock>(model.shapes, std::max<std::size_t>(lines.size(), 1),
                                            model.model.label_names());
  items.lines.resize(lines.size());
  std::size_t row = 0;
  for (std::size_t k = 0; k < lines.size(); ++k) {
    auto& line = items.lines[k];
    try {
      parse_item(lines[k], *items.block, row);
    } catch (const WrongSize& error) {
      if (!many)
        throw Refusal(400, error.what(),
                      {{"view", error.view}, {"columns", error.columns}, {"expected", error.expected}});
      line.error = error.what();
      continue;
    } catch (const Error& error) {
      if (!many) refuse(400, "{}", error.what());
      line.error = error.what();
      continue;
    }
    line.id = items.block->id(row);
    line.number = items.block->id_is_number(row);
    line.row = row;
    line.bare = !items.block->has_any(row);
    if (settings.explain && tells_any(items.block->known(row))) {
      line.error = "\"labels\" and explain do not go together: an explanation is of the views alone";
      if (!many) refuse(400, "{}", line.error);
      continue;
    }
    if (!line.bare) ++row;
  }
  Rows& rows = items.rows;
  rows.count = row;
  rows.features.resize(model.views.size());
  rows.present.assign(row * model.views.size(), 0);
  for (std::size_t v = 0; v < model.views.size(); ++v)
    for (std::size_t i = 0; i < row; ++i)
      if (items.block->has(i, v)) {
        rows.present[i * model.views.size() + v] = 1;
        rows.features[v] = items.block->values(0, v).data();
      }
  return items;
}

Reply write_suggestions(const Suggestions& items, const ServedModel& model, const Outcome& outcome) {
  if (!outcome.error.empty()) return problem(500, outcome.error);
  Matrix<float> probabilities;
  Matrix<std::uint8_t> decided;
  Explanation explanation;
  ExplainOptions explained;  // what is shown: the calibrated probability where there is one
  explained.calibrated = explained.log_odds = !model.model.calibration().empty();
  if (outcome.count > 0) {
    const Matrix<float> scores = refined(items, model, outcome);
    probabilities = probabilities_of(model, scores);
    decided = model.model.decide(scores);
    if (items.settings.explain) {
      const Dataset data = items.block->dataset(outcome.count, "request");
      explanation = explain(model.model, select_all(data), explained);
    }
  }
  const char* base = base_name(base_of(model.model, explained));
  Reply reply;
  if (items.many) reply.type = "application/x-ndjson";
  std::string& out = reply.body;
  std::vector<std::uint32_t> order;
  for (std::size_t k = 0; k < items.lines.size(); ++k) {
    const auto& line = items.lines[k];
    if (!line.error.empty()) {
      fmt::format_to(std::back_inserter(out), "{{\"line\":{},\"error\":", k + 1);
      append_json(out, line.error);
      out += "}\n";
      continue;
    }
    out += '{';
    if (!line.id.empty()) {
      out += "\"id\":";
      if (line.number)
        out += line.id;
      else
        append_json(out, line.id);
      out += ',';
    }
    if (line.bare) {  // nothing is known of it: no tag is a suggestion
      out += "\"tags\":null,\"scores\":null}\n";
      continue;
    }
    const auto shown = probabilities.row(line.row);
    const auto known = items.block->known(line.row);
    if (tells_any(known)) append_known(out, model, known);
    order.clear();  // what is known is no suggestion
    for (std::uint32_t j = 0; j < known.size(); ++j)
      if (known[j] == kUnknown) order.push_back(j);
    const std::size_t most =
        items.settings.top == 0 ? order.size() : std::min(items.settings.top, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
        [&](std::uint32_t a, std::uint32_t b) { return shown[a] != shown[b] ? shown[a] > shown[b] : a < b; });
    out += "\"tags\":[";
    for (std::size_t t = 0; t < most; ++t) {
      const std::uint32_t j = order[t];
      if (t > 0) out += ',';
      append_tag(out, model, j, probabilities(line.row, j), decided(line.row, j) != 0);
      if (items.settings.explain) {
        fmt::format_to(std::back_inserter(out), ",\"score\":{:.6g},\"base\":{:.6g},\"views\":{{",
                       explanation.score(line.row, j), explanation.base(line.row, j));
        bool first = true;
        for (std::size_t v = 0; v < model.views.size(); ++v) {
          if (!items.block->has(line.row, v)) continue;
          if (!first) out += ',';
          first = false;
          append_json(out, model.views[v].name);
          fmt::format_to(std::back_inserter(out), ":{:.6g}", explanation.values[v](line.row, j));
        }
        out += '}';
      }
      out += '}';
    }
    out += ']';
    if (items.settings.explain) fmt::format_to(std::back_inserter(out), ",\"base\":\"{}\"", base);
    out += "}\n";
  }
  return reply;
}

}  // namespace lacuna::serve
