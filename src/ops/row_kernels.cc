#include "ops/row_kernels.h"

#include "ops/machine.h"

namespace lacuna {

const RowKernels& row_kernels() {
  return by_width(&row_kernels_plain, &row_kernels_avx2, &row_kernels_avx512)();
}

}  // namespace lacuna
