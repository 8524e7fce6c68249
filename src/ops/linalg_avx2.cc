#define LACUNA_ISA avx2
#include "ops/linalg_kernels.h"
