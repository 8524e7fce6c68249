#include "ops/row_kernels.h"

#include "ops/machine.h"

namespace lacuna {

const RowKernels& row_kernels() {
  switch (isa()) {
    case Isa::plain:
      return row_kernels_plain();
    case Isa::avx2:
      return row_kernels_avx2();
    case Isa::avx512:
    case Isa::bf16:
    case Isa::amx:
      return row_kernels_avx512();
  }
  return row_kernels_plain();
}

}  // namespace lacuna
