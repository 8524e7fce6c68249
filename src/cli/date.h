// Dates in output. A model contains none, because the same data, settings and seed give the same bytes, unless
// SOURCE_DATE_EPOCH, the convention of reproducible builds, sets one.
#pragma once

#include <ctime>
#include <optional>
#include <string>

namespace lacuna::cli {

std::string utc_text(std::time_t seconds);  // "2026-11-16T15:02:57Z"
// The time of SOURCE_DATE_EPOCH, if it is set; Exit::usage if it is no number.
std::optional<std::string> source_date();

}  // namespace lacuna::cli
