#define LACUNA_ISA plain
#include "ops/row_kernels.h"
