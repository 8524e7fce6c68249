// Where a measurement was made, and what it took.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace lacuna {

// Seconds of processor time that this process has used so far, its own and the kernel's for it.
double processor_seconds();

// Version, process, processor, cores, threads, memory, system, time of day.
nlohmann::json machine_json();

// The largest resident memory of this process since reset_peak_memory() (since its start where the kernel
// cannot reset).
void reset_peak_memory();
std::uint64_t peak_memory();

}  // namespace lacuna
