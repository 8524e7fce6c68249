// Verbs for experiments on more machines than one.
#pragma once

#include "cli/verbs.h"

namespace lacuna::cli {

int bench_slurm(const Arguments& arguments);
int bench_status(const Arguments& arguments);

}  // namespace lacuna::cli
