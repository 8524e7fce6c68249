#define LACUNA_ISA avx512
#include "ops/linalg_kernels.h"
