// The machine of a measurement, and the resources that it took.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/clock.h"

namespace lacuna {

// Seconds of processor time that this process has used so far, in user and kernel mode.
double processor_seconds();

// Version, process, processor, cores, threads, memory, system, time of day.
nlohmann::json machine_json();

// The largest resident memory of this process since reset_peak_memory() (since its start if the kernel cannot
// reset it).
void reset_peak_memory();
std::uint64_t peak_memory();

}  // namespace lacuna
