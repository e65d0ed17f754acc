// SPDX-License-Identifier: Apache-2.0
// Elements from and to device memory, V at once.
#pragma once

#include "device/types.cuh"

namespace tsr::dev {

// In pieces of up to 16 bytes; the address must be aligned to one.
template <class T, int V>
void load_vector(const T* p, Vec<T, V>& x) {
  x = *reinterpret_cast<const Vec<T, V>*>(p);
}
template <class T, int V>
void store_vector(T* p, const Vec<T, V>& x) {
  *reinterpret_cast<Vec<T, V>*>(p) = x;
}
// What is not read again soon: the cache gives it up first and keeps what is.
template <class T, int V>
void store_through(T* p, const Vec<T, V>& x) {
#ifndef TSR_EMULATED
  if constexpr (sizeof x % 16 == 0) {
    const u32* w = reinterpret_cast<const u32*>(&x);
#pragma unroll
    for (int i = 0; i < int(sizeof x / 4); i += 4)
      asm volatile("st.global.cs.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<u32*>(p) + i), "r"(w[i]),
                   "r"(w[i + 1]), "r"(w[i + 2]), "r"(w[i + 3])
                   : "memory");
    return;
  }
#endif
  store_vector(p, x);
}
template <class T, int V>
void load_each(const T* p, i64 step, Vec<T, V>& x) {
#pragma unroll
  for (int i = 0; i < V; ++i) x.v[i] = p[i * step];
}
template <class T, int V>
void store_each(T* p, i64 step, const Vec<T, V>& x) {
#pragma unroll
  for (int i = 0; i < V; ++i) p[i * step] = x.v[i];
}
template <class L, class T, int V>
void load_packed_each(const void* data, i64 first, i64 step, Vec<L, V>& x) {
#pragma unroll
  for (int i = 0; i < V; ++i) x.v[i] = load_packed<L, T>(data, first + i * step);
}

}  // namespace tsr::dev
