// SPDX-License-Identifier: Apache-2.0
// The right side of a product of complex numbers as one of real numbers. Real and imaginary parts lie side by side, so
// the left side and the result are real matrices as they are, with twice the inner positions and twice the columns;
// the right side has for every number re + im i the square [re, im; -im, re].
#pragma once

#include "engines/cpu/product/strided.hpp"

namespace tsr::cpu {

template <class T>
class ComplexOperand : public Operand<T> {
 public:
  // As a StridedOperand of complex numbers.
  ComplexOperand(TensorId tensor, const Dims& batch, const Dims& share, const Dims& batch_strides,
                 const Axes& neighbours, int64_t inner);

  DType type() const override { return sizeof(T) == 4 ? DType::f32 : DType::f64; }
  int64_t slots() const override { return numbers_.slots(); }
  int64_t slot(int64_t batch) const override { return numbers_.slot(batch); }
  void pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
            const Panels<T>& to) const override;

 private:
  TensorId tensor_;
  StridedOperand<T> numbers_;
  int64_t inner_;
};

}  // namespace tsr::cpu
