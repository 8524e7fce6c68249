#define LACUNA_ISA plain
#include "ops/linalg_kernels.h"
