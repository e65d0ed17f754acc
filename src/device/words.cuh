// SPDX-License-Identifier: Apache-2.0
// Words of 1 to 16 bytes that move whole. The compiler takes vectors apart that it keeps in registers across a
// condition, and then stores the pieces one by one.
#pragma once

#include "device/types.cuh"

namespace tsr::dev {

template <int BYTES>
struct WordOf;
template <>
struct WordOf<1> {
  using Type = u8;
};
template <>
struct WordOf<2> {
  using Type = u16;
};
template <>
struct WordOf<4> {
  using Type = u32;
};
template <>
struct WordOf<8> {
  using Type = uint2;
};
template <>
struct WordOf<16> {
  using Type = uint4;
};
template <int BYTES>
using Word = typename WordOf<BYTES>::Type;

// To global memory.
template <class W>
void store_word(void* p, const W& w) {
#ifndef TSR_EMULATED
  if constexpr (sizeof(W) == 16) {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(p), "r"(w.x), "r"(w.y), "r"(w.z), "r"(w.w)
                 : "memory");
    return;
  }
  if constexpr (sizeof(W) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(p), "r"(w.x), "r"(w.y) : "memory");
    return;
  }
#endif
  *static_cast<W*>(p) = w;
}

}  // namespace tsr::dev
