// Dates in what the program writes. A model holds none by itself, because the same data, settings and seed give the same
// bytes; SOURCE_DATE_EPOCH, the convention of reproducible builds, puts one in.
#pragma once

#include <ctime>
#include <optional>
#include <string>

namespace lacuna::cli {

std::string utc_text(std::time_t seconds);  // "2026-11-16T15:02:57Z"
// The time of SOURCE_DATE_EPOCH, if it is set; Exit::usage if it is no number.
std::optional<std::string> source_date();

}  // namespace lacuna::cli
