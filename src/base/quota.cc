#include "base/quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace lacuna {

int processor_quota(const std::string& groups, const std::string& root) {
  std::ifstream lines(groups);
  std::string path;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::/")) path = line.substr(3);
  if (path == "/") path.clear();
  for (double least = 0;;) {
    std::ifstream file(root + path + "/cpu.max");  // microseconds, of how many; or "max 100000"
    double quota = 0, period = 0;
    if (file >> quota >> period && quota > 0 && period > 0)
      least = least > 0 ? std::min(least, quota / period) : quota / period;
    if (path.empty()) return static_cast<int>(std::ceil(std::min(least, 1e6)));
    path.resize(path.rfind('/'));
  }
}

}  // namespace lacuna
