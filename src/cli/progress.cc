#include "cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/text.h"
#include "cli/terminal.h"

namespace lacuna::cli {

Progress::Progress(Style style)
    : terminal_(style == Style::automatic && isatty(STDERR_FILENO) != 0),
      quiet_(style == Style::quiet),
      events_(style == Style::events) {}

Progress::~Progress() {
  finish();
}

double Progress::time_left(const EpochRecord& record) {
  const double now = steady_seconds(), share = record.share_done();
  if (first_) {  // a resumed run starts in the middle: time counts from the first record on
    first_ = false;
    started_ = now;
    first_done_ = share;
    return std::nan("");
  }
  return share > first_done_ ? (now - started_) * (1 - share) / (share - first_done_) : std::nan("");
}

std::string Progress::line(const EpochRecord& r, double left) const {
  std::string text = r.pass > 0 ? "again, all rows: " : "";
  if (r.members > 1)
    text += fmt::format("member {}/{}{}", r.member + 1, r.members, r.views > 1 ? ", " : "  ");
  if (r.views > 1) text += fmt::format("view {}/{}  ", r.view + 1, r.views);
  text += fmt::format("epoch {}/{}", r.epoch, r.epochs);
  // What matters first: a narrow terminal cuts the end off.
  if (const auto total = r.losses.find("total"); total != r.losses.end())
    text += fmt::format("  loss {:.4g}", total->second);
  if (r.validated) {
    text += fmt::format("  val AP {:.4f} 1-RL {:.4f}", r.validation.ap, r.validation.rl);
    // With few rows no label may have both kinds of them; then there is no AUC to speak of.
    if (std::isfinite(r.validation.auc)) text += fmt::format(" AUC {:.4f}", r.validation.auc);
  }
  if (std::isfinite(left) && left >= .5) text += fmt::format("  {} left", duration_text(left));
  if (r.rows_per_second > 0)
    text += fmt::format("  {} rows/s", count_text(static_cast<std::uint64_t>(r.rows_per_second)));
  for (const auto& [name, value] : r.losses)
    if (name != "total") text += fmt::format("  {} {:.4g}", name, value);
  return text;
}

void Progress::epoch(const EpochRecord& record) {
  const double left = time_left(record), now = steady_seconds();
  const bool last = record.epoch == record.epochs;
  if (events_) {
    nlohmann::json event = epoch_json(record);
    event["event"] = "epoch";
    event["rows_per_second"] = record.rows_per_second;
    if (std::isfinite(left)) event["seconds_left"] = left;
    fmt::print(stderr, "{}\n", event.dump());
  } else if (terminal_) {
    constexpr std::size_t kBar = 20;
    const auto filled = static_cast<std::size_t>(record.share_done() * static_cast<double>(kBar));
    std::string text =
        "[" + std::string(filled, '#') + std::string(kBar - filled, '.') + "] " + line(record, left);
    fmt::print(stderr, "\r{}\x1b[K", clipped(text, terminal_width(STDERR_FILENO) - 1));
    std::fflush(stderr);
    drawn_ = true;
  } else if (!quiet_ && (record.validated || last || shown_ == 0 || now - shown_ > 1)) {
    // A log file wants the validated epochs and a sign of life a second, not hundreds of lines from a fast
    // method.
    if (shown_ != 0 && !last && now - shown_ < .1) return;
    shown_ = now;
    fmt::print(stderr, "{}\n", line(record, left));
  }
}

void Progress::finish() {
  if (drawn_) fmt::print(stderr, "\n");
  drawn_ = false;
}

nlohmann::json epoch_json(const EpochRecord& record) {
  nlohmann::json entry = {{"epoch", record.epoch},
                          {"epochs", record.epochs},
                          {"seconds", record.seconds},
                          {"losses", record.losses}};
  if (record.pass > 0) entry["pass"] = record.pass;
  if (record.members > 1) entry["member"] = record.member;
  if (record.views > 1) entry["view"] = record.view;
  if (record.kept > 0) entry["kept"] = record.kept;
  entry["validation"] = record.validated ? metrics_json(record.validation) : nlohmann::json(nullptr);
  return entry;
}

}  // namespace lacuna::cli
