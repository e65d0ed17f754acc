// SPDX-License-Identifier: Apache-2.0
// What reference functions compute with: whole tensors as packed row-major arrays of one number type.
#pragma once

#include <vector>

#include "base/dims.hpp"

namespace tsr::ref {

template <class T>
struct Array {
  Dims dims;
  std::vector<T> data;

  Array() = default;
  explicit Array(const Dims& d, T fill = T{}) : dims(d), data(static_cast<size_t>(volume(d)), fill) {}

  int64_t size() const { return static_cast<int64_t>(data.size()); }
  int rank() const { return dims.size(); }
  T& operator[](int64_t i) { return data[static_cast<size_t>(i)]; }
  const T& operator[](int64_t i) const { return data[static_cast<size_t>(i)]; }

  int64_t flat(const Dims& index) const {
    int64_t o = 0;
    for (int i = 0; i < dims.size(); ++i) o = o * dims[i] + index[i];
    return o;
  }
  // Row-major position of (i, j, ...); as many indices as dimensions.
  template <class... I>
  int64_t pos(I... i) const {
    int64_t o = 0;
    int d = 0;
    ((o = o * dims[d++] + static_cast<int64_t>(i)), ...);
    return o;
  }
  template <class... I>
  T& at(I... i) {
    return data[static_cast<size_t>(pos(i...))];
  }
  template <class... I>
  const T& at(I... i) const {
    return data[static_cast<size_t>(pos(i...))];
  }
  // What follows from there.
  template <class... I>
  T* from(I... i) {
    return data.data() + pos(i...);
  }
  template <class... I>
  const T* from(I... i) const {
    return data.data() + pos(i...);
  }
  T& at(const Dims& index) { return data[static_cast<size_t>(flat(index))]; }
  const T& at(const Dims& index) const { return data[static_cast<size_t>(flat(index))]; }

  // Element of an array that broadcasts: indices are aligned at the last dimension, size 1 repeats.
  const T& broadcast_at(const Dims& index) const {
    int64_t o = 0;
    int shift = index.size() - dims.size();
    for (int i = 0; i < dims.size(); ++i) o = o * dims[i] + (dims[i] == 1 ? 0 : index[i + shift]);
    return data[static_cast<size_t>(o)];
  }
};

}  // namespace tsr::ref
