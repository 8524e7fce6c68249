#define LACUNA_ISA avx2
#include "ops/row_kernels.h"
