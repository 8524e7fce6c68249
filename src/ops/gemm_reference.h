// The naive implementation of ops/gemm.h, for float and double: three plain loops, sums in double, no blocking, one
// thread. It is the ground truth for the fast products, and the arithmetic of the reference
// Ops.
#pragma once

#include <span>

#include "ops/gemm.h"

namespace lacuna::reference {

// The nearest bf16 number (ties to even), as a float. Infinities stay, NaN stays NaN.
float round_bf16(float x);

// T is float or double. Precision::bf16 rounds the factors of every product to bf16 first, as the fast form
// does.
template <class T>
void linear_forward(MatrixView<const T> X, MatrixView<const T> W, std::span<const T> b, bool relu,
                    Precision precision, MatrixView<T> Y);
template <class T>
void linear_backward(MatrixView<const T> X, MatrixView<const T> dY, bool mask_by_input, Precision precision,
                     const UpdateRule& rule, ParameterView<T> W, ParameterView<T> b, MatrixView<T> dX);
template <class T>
void multiply(MatrixView<const T> A, MatrixView<const T> B, Transpose transpose, bool accumulate,
              MatrixView<T> C);

}  // namespace lacuna::reference
