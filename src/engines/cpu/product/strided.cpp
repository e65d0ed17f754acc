// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/strided.hpp"

#include <algorithm>

namespace tsr::cpu {

int64_t Axes::offset(int64_t flat) const {
  int64_t o = 0;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    o += flat % sizes[i] * strides[i];
    flat /= sizes[i];
  }
  return o;
}

Axes Axes::merged() const {
  Axes m;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    int last = m.sizes.size() - 1;
    if (last >= 0 && m.strides[last] == sizes[i] * strides[i]) {
      m.sizes[last] *= sizes[i];
      m.strides[last] = strides[i];
    } else {
      m.add(sizes[i], strides[i]);
    }
  }
  if (m.sizes.empty()) m.add(1, 1);
  return m;
}

template <class T>
StridedOperand<T>::StridedOperand(TensorId tensor, DType type, const Dims& batch, const Dims& share,
                                  const Dims& batch_strides, const Axes& neighbours, const Axes& inner, int64_t start)
    : tensor_(tensor),
      type_(type),
      batch_(batch),
      share_(share),
      neighbours_(neighbours.merged()),
      inner_(inner.merged()),
      start_(start) {
  for (int i = 0; i < batch.size(); ++i) matrices_.add(batch[i] / share[i], batch_strides[i]);
  slots_ = matrices_.count();
}

template <class T>
int64_t StridedOperand<T>::slot(int64_t batch) const {
  int64_t slot = 0, scale = 1;
  for (int i = batch_.size() - 1; i >= 0; --i) {
    slot += batch % batch_[i] / share_[i] * scale;
    scale *= matrices_.sizes[i];
    batch /= batch_[i];
  }
  return slot;
}

template <class T>
void StridedOperand<T>::pack(void* const* tensors, int64_t slot, int64_t first, int64_t n, int64_t from, int64_t depth,
                             const Panels<T>& to) const {
  int64_t run = neighbours_.sizes.back(), inner_run = inner_.sizes.back();
  for (int64_t k = 0, deep; k < depth; k += deep) {
    deep = std::min(depth - k, inner_run - (from + k) % inner_run);
    Panels<T> part = to.from(k);
    for (int64_t i = 0, count; i < n; i += count) {
      count = std::min(n - i, run - (first + i) % run);
      int64_t at = offset(slot, first + i) + inner_.offset(from + k);
      cpu::pack<T>({type_, tensors[tensor_], at, count, neighbours_.strides.back(), deep, inner_.strides.back()}, part,
                   i);
    }
  }
}

template class StridedOperand<float>;
template class StridedOperand<double>;
template class StridedOperand<Bf16>;
template class StridedOperand<Byte>;

}  // namespace tsr::cpu
