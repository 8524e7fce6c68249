// Predicting lines from a stream: available lines are read, scored together and written before waiting for more.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "cli/counted.h"
#include "cli/item_stream.h"
#include "cli/prediction.h"
#include "cli/progress.h"
#include "cli/text_out.h"

namespace lacuna::cli {

PredictTally predict_stream(const PredictFlags& flags, const Model& model) {
  ItemStream items(
      {flags.source.path, flags.source.read, flags.reading, flags.strict, flags.quiet, flags.known_labels},
      model);
  const PredictionStyle style = prediction_style(flags, items.format());
  const PredictionText text(style, model.label_names());
  const bool errors_inside = style.format == PredictionStyle::Format::jsonl;
  TextOut out(flags.out);
  if (const std::string header = text.header(); !header.empty()) out.write(header);

  Shown shown(flags, model, style.shows_decisions());
  const Stopwatch watch;
  std::string written;
  std::size_t known = 0;
  while (items.next()) {
    if (items.size() == 0) continue;
    shown.set(model.predict(items.dataset()), items.known());
    for (std::size_t i = 0; i < shown.known().rows(); ++i)
      known += std::ranges::any_of(shown.known().row(i), [](std::int8_t y) { return y != kUnknown; });
    written.clear();
    text.append(written, items.size(), [&](std::size_t i) {
      PredictionText::Row row;
      row.id = items.block().id(i);
      row.id_is_number = items.block().id_is_number(i);
      row.line = items.line(i);
      row.error = items.error(i);
      if (flags.known_labels) row.known = shown.known().row(i);
      if (!items.block().has_any(i)) return row;
      row.scores = shown.values().row(i);
      if (!shown.decided().empty()) row.decided = shown.decided().row(i);
      return row;
    });
    out.write(written);
    for (std::size_t i = 0; i < items.size() && !errors_inside; ++i) {
      if (items.error(i).empty()) continue;
      std::string line;
      PredictionText::append_error(line, items.line(i), items.error(i));
      std::fputs(line.c_str(), stderr);
    }
  }
  out.commit();
  if (!items.broken().empty())
    fail(Exit::data, "{}: {} (--strict ends here; {} written)", items.name(), items.broken(),
         counted(items.items(), "item") + (items.items() == 1 ? " was" : " were"));
  items.check_any();
  return {items.items(), items.without_view(), items.bad_lines(), known, watch.seconds()};
}

}  // namespace lacuna::cli
