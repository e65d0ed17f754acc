// SPDX-License-Identifier: Apache-2.0
// Products of a warp (mma.sync, compute capability 8.0 and later; 8-bit floats 8.9): d += a b, 16 rows by 8 columns, 32
// bytes of each row and column along the inner dimension. All operands are in registers.
//
// Lane l has in d[2 i + e] the sum of row l / 4 + 8 i and column 2 (l % 4) + e. Of operands with n elements to a
// register, element e of a[i + 2 h] is that of row l / 4 + 8 i, and of b[h] that of column l / 4, at n (4 h + l % 4) +
// e of the inner dimension.
#pragma once

#include "device/ptx/address.cuh"
#include "device/types.cuh"

namespace tsr::dev {

// Stands for f32 of which sign, exponent and the first 10 bits of the mantissa count.
struct tf32 {
  u32 bits;
};

// To the nearest of those, ties away from zero: products would cut the other bits off.
inline float round_to_tf32(float v) {
#if defined(TSR_EMULATED)
  u32 bits = __float_as_uint(v);
  return v - v == 0 ? __uint_as_float((bits + 0x1000) & 0xffffe000) : v;
#else
  u32 bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
  return __uint_as_float(bits);
#endif
}

#if defined(TSR_EMULATED)
template <class T>
constexpr tsr_emulated::Product::Type kProductType = kSame<T, f16>    ? tsr_emulated::Product::f16
                                                     : kSame<T, bf16> ? tsr_emulated::Product::bf16
                                                     : kSame<T, tf32> ? tsr_emulated::Product::tf32
                                                     : kSame<T, e4m3> ? tsr_emulated::Product::e4m3
                                                     : kSame<T, e5m2> ? tsr_emulated::Product::e5m2
                                                     : kSame<T, i8>   ? tsr_emulated::Product::s8
                                                                      : tsr_emulated::Product::u8;
#endif

// A, B: f16, bf16 or tf32 both; e4m3 and e5m2 in any mix.
template <class A, class B = A>
void mma(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2], Here here = {}) {
  constexpr bool kSmall = (kSame<A, e4m3> || kSame<A, e5m2>)&&(kSame<B, e4m3> || kSame<B, e5m2>);
  static_assert(kSmall || (kSame<A, B> && (kSame<A, f16> || kSame<A, bf16> || kSame<A, tf32>)));
#if defined(TSR_EMULATED)
  tsr_emulated::world->mma({d, a, b, kProductType<A>, kProductType<B>, false, here});
#else
// The text of an instruction must be a literal: no function can put it together.
#define TSR_MMA(NAME)                                                                                      \
  asm volatile("mma.sync.aligned." NAME " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kSame<A, f16>) TSR_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  if constexpr (kSame<A, bf16>) TSR_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  if constexpr (kSame<A, tf32>) TSR_MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
  if constexpr (kSame<A, e4m3> && kSame<B, e4m3>) TSR_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32");
  if constexpr (kSame<A, e4m3> && kSame<B, e5m2>) TSR_MMA("m16n8k32.row.col.f32.e4m3.e5m2.f32");
  if constexpr (kSame<A, e5m2> && kSame<B, e4m3>) TSR_MMA("m16n8k32.row.col.f32.e5m2.e4m3.f32");
  if constexpr (kSame<A, e5m2> && kSame<B, e5m2>) TSR_MMA("m16n8k32.row.col.f32.e5m2.e5m2.f32");
#undef TSR_MMA
#endif
}

// A, B: i8 and u8 in any mix; sums wrap around.
template <class A, class B = A>
void mma(i32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], Here here = {}) {
  static_assert((kSame<A, i8> || kSame<A, u8>)&&(kSame<B, i8> || kSame<B, u8>));
#if defined(TSR_EMULATED)
  tsr_emulated::world->mma({d, a, b, kProductType<A>, kProductType<B>, false, here});
#else
#define TSR_MMA(NAME)                                                                 \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." NAME                          \
               ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
  if constexpr (kSame<A, i8> && kSame<B, i8>) TSR_MMA("s8.s8");
  if constexpr (kSame<A, i8> && kSame<B, u8>) TSR_MMA("s8.u8");
  if constexpr (kSame<A, u8> && kSame<B, i8>) TSR_MMA("u8.s8");
  if constexpr (kSame<A, u8> && kSame<B, u8>) TSR_MMA("u8.u8");
#undef TSR_MMA
#endif
}

// f16 with sums in f16: d[i] holds two columns of row l / 4 + 8 i.
inline void mma_half(u32 (&d)[2], const u32 (&a)[4], const u32 (&b)[2], Here here = {}) {
#if defined(TSR_EMULATED)
  tsr_emulated::world->mma({d, a, b, tsr_emulated::Product::f16, tsr_emulated::Product::f16, true, here});
#else
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace tsr::dev
