// SPDX-License-Identifier: Apache-2.0
// Elements from and to device memory, V at once.
#pragma once

#include "device/ptx/address.cuh"
#include "device/words.cuh"

namespace tsr::dev {

// In pieces of up to 16 bytes; the address must be aligned to one.
template <class T, int V>
void check_aligned(const T* p, Here here) {
#if defined(TSR_EMULATED)
  if (reinterpret_cast<u64>(p) % alignof(Vec<T, V>) != 0)
    tsr_emulated::world->misaligned(p, int(sizeof(Vec<T, V>)), int(alignof(Vec<T, V>)), here);
#endif
}
template <class T, int V>
void load_vector(const T* p, Vec<T, V>& x, Here here = {}) {
  check_aligned<T, V>(p, here);
  x = *reinterpret_cast<const Vec<T, V>*>(p);
}
template <class T, int V>
void store_vector(T* p, const Vec<T, V>& x, Here here = {}) {
  check_aligned<T, V>(p, here);
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

// Where a scale factor lies in the order f8_128x4: tiles of 128 rows by 4 columns, in which rows 32 apart are
// neighbours. `at` counts row by row.
template <class Index>
Index in_f8_128x4(Index at, Index columns) {
  Index row = at / columns, column = at - row * columns;
  Index tile = row / 128 * (columns / 4) + column / 4;
  return tile * 512 + row % 32 * 16 + row % 128 / 32 * 4 + column % 4;
}

// --- elements of less than a byte
template <class L, class T, int V>
void load_packed_each(const void* data, i64 first, i64 step, Vec<L, V>& x) {
#pragma unroll
  for (int i = 0; i < V; ++i) x.v[i] = load_packed<L, T>(data, first + i * step);
}

// V neighbours that fill whole bytes, or one.
template <class L, class T, int V>
void load_packed_vector(const void* data, i64 first, Vec<L, V>& x) {
  if constexpr (V == 1) {
    x.v[0] = load_packed<L, T>(data, first);
  } else {
    constexpr int kBits = kPackedBits<T>, kEach = 8 / kBits, kBytes = V / kEach, kWord = kBytes < 4 ? kBytes : 4,
                  kPer = kWord * kEach;
    using W = Word<kWord>;
    Vec<W, kBytes / kWord> words;
    load_vector(reinterpret_cast<const W*>(static_cast<const u8*>(data) + u64(first) / kEach), words);
#pragma unroll
    for (int i = 0; i < V; ++i) x.v[i] = from_packed<L, T>(words.v[i / kPer] >> i % kPer * kBits & ((1 << kBits) - 1));
  }
}

// V neighbours, from a multiple of V on, as whole bytes. A single one changes its part of a byte, which no other thread
// may touch meanwhile.
template <class T, class L, int V>
void store_packed(void* data, i64 first, const L (&x)[V]) {
  constexpr int kBits = kPackedBits<T>, kEach = 8 / kBits, kBytes = V / kEach;
  u8* p = static_cast<u8*>(data) + u64(first) / kEach;
  if constexpr (V == 1) {
    int shift = int(u64(first) % kEach) * kBits;
    *p = u8((*p & ~(((1 << kBits) - 1) << shift)) | to_packed<T>(x[0]) << shift);
  } else {
    static_assert(kBytes > 0, "a byte of several threads");
    constexpr int kWord = kBytes < 4 ? kBytes : 4, kPer = kWord * kEach;
    using W = Word<kWord>;
    Vec<W, kBytes / kWord> words = {};
#pragma unroll
    for (int i = 0; i < V; ++i) words.v[i / kPer] |= W(to_packed<T>(x[i]) << i % kPer * kBits);
    store_vector(reinterpret_cast<W*>(p), words);
  }
}

}  // namespace tsr::dev
