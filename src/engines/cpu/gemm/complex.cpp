// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/complex.hpp"

namespace tsr::cpu {

template <class T>
ComplexOperand<T>::ComplexOperand(TensorId tensor, const Dims& batch, const Dims& share, const Dims& batch_strides,
                                  const Axes& neighbours, int64_t inner)
    : tensor_(tensor),
      numbers_(tensor, type(), batch, share, batch_strides, neighbours, Axes(1, inner)),
      inner_(inner) {}

template <class T>
void ComplexOperand<T>::pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
                             const Panels<T>& to) const {
  const T* base = static_cast<const T*>(tensors[tensor_]);
  for (int64_t i = 0; i < n; ++i) {
    // Column 2j meets (re, -im) of number j, column 2j + 1 (im, re).
    bool imaginary = (first + i) % 2 != 0;
    const T* number = base + 2 * numbers_.offset(slot, (first + i) / 2);
    for (int64_t p = 0; p < depth; ++p) {
      const T* at = number + (from + p) / 2 * 2 * inner_;
      bool second = (from + p) % 2 != 0;
      *to.place(i, p) = imaginary != second ? (second ? -at[1] : at[1]) : at[0];
    }
  }
}

template class ComplexOperand<float>;
template class ComplexOperand<double>;

}  // namespace tsr::cpu
