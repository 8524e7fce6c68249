// --memory-limit of lacuna train and lacuna complete: learning from more rows than fit into memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/options.h"
#include "data/dataset.h"
#include "data/prepared.h"

namespace lacuna::cli {

struct MemoryFlags {
  std::string limit;  // "2G"; empty = rows in memory
  std::string
      prepared;  // a folder for prepared rows that is kept; empty = beside the model, until it is written

  void declare(Options& options);
  bool given() const { return !limit.empty(); }
  std::uint64_t bytes() const;  // Exit::usage for what is no size; 0 if not given
};

// The folder that is written next to a model during training.
inline constexpr const char* kPreparedEnding = ".prepared";

// Throws Exit::usage unless the views lie in files that can be read in passes, and sparse views, which are prepared in
// memory, are small compared with the limit.
void check_in_files(const Dataset& data, const std::string& path, std::uint64_t limit);

// From now on the system refuses memory beyond this many bytes, mapped files excepted.
void limit_memory(std::uint64_t bytes);
// After such a refusal: fails with the memory in use and the limit.
[[noreturn]] void fail_beyond_limit(std::uint64_t bytes);

}  // namespace lacuna::cli
