// Progress of a fit: a bar on a terminal, plain lines elsewhere, JSON lines on request. Everything goes to stderr.
#pragma once

#include <string>

#include "methods/method.h"

namespace lacuna::cli {

class Progress {
 public:
  enum class Style { automatic, quiet, events };
  explicit Progress(Style style);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void epoch(const EpochRecord& record);
  void finish();  // leaves the last state on the terminal

 private:
  std::string line(const EpochRecord& record, double left) const;
  double time_left(const EpochRecord& record);

  bool terminal_, quiet_, events_;
  bool drawn_ = false;
  double shown_ = 0;    // when a plain line was last shown
  double started_ = 0;  // clock and place at the first record, for the time left
  double first_done_ = 0;
  bool first_ = true;
};

nlohmann::json epoch_json(const EpochRecord& record);

}  // namespace lacuna::cli
