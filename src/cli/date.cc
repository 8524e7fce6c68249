#include "cli/date.h"

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"

namespace lacuna::cli {

std::string utc_text(std::time_t seconds) {
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::optional<std::string> source_date() {
  const char* given = std::getenv("SOURCE_DATE_EPOCH");
  if (given == nullptr || *given == 0) return {};
  const auto seconds = parse_int(given);
  if (!seconds || *seconds < 0)
    fail(Exit::usage, "SOURCE_DATE_EPOCH is '{}', expected seconds since 1970", given);
  return utc_text(static_cast<std::time_t>(*seconds));
}

}  // namespace lacuna::cli
