// SPDX-License-Identifier: Apache-2.0
// Single elements of operands, and a few at once where they lie side by side.
#pragma once

#include "device/memory.cuh"
#include "device/operand.cuh"

namespace tsr::dev {

struct none {};  // the type of a tensor that is absent

inline const void* elements(const Operand& o) { return o.data ? o.data : &o.value; }

template <class L, class T>
L read(const Operand& o, i64 at) {
  if constexpr (kPacked<T>)
    return load_packed<L, T>(elements(o), at);
  else
    return to_lane<L>(static_cast<const T*>(elements(o))[at]);
}
template <class T, class L>
void write(const Operand& o, i64 at, L v) {
  static_cast<T*>(o.data)[at] = from_lane<T>(v);
}
// An element of an integer tensor of 4 or 8 bytes.
inline i64 read_integer(const Operand& o, int bytes, i64 at) {
  return bytes == 8 ? static_cast<const i64*>(elements(o))[at] : static_cast<const i32*>(elements(o))[at];
}

template <bool WHICH, class A, class B>
struct Either {
  using type = A;
};
template <class A, class B>
struct Either<false, A, B> {
  using type = B;
};

template <bool TOGETHER, class T, int V>
void store_elements(void* data, i64 at, i64 step, const Vec<T, V>& x) {
  if constexpr (TOGETHER)
    store_vector(static_cast<T*>(data) + at, x);
  else
    store_each(static_cast<T*>(data) + at, step, x);
}

// V elements as they lie in memory: neighbours in one access (TOGETHER), or `step` elements from each other. Those that
// share bytes are unpacked on the way.
template <class L, class T, int V>
struct Elements {
  Vec<typename Either<kPacked<T>, L, T>::type, V> kept;

  template <bool TOGETHER>
  void load(const void* data, i64 at, i64 step) {
    if constexpr (kPacked<T>)
      load_packed_each<L, T>(data, at, step, kept);
    else if constexpr (TOGETHER)
      load_vector(static_cast<const T*>(data) + at, kept);
    else
      load_each(static_cast<const T*>(data) + at, step, kept);
  }
  L lane(int i) const {
    if constexpr (kPacked<T>)
      return kept.v[i];
    else
      return to_lane<L>(kept.v[i]);
  }
};

}  // namespace tsr::dev
