#define LACUNA_ISA avx512
#include "ops/row_kernels.h"
