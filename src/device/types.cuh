// SPDX-License-Identifier: Apache-2.0
// The element types of tensors on the device and their conversions, with the meaning that base/dtype.hpp gives them on
// the host: to the nearest, ties to even; f16 and bf16 overflow to infinity, 8-bit floats saturate; integers saturate
// and NaN becomes 0.
#pragma once

#include "device/scalars.cuh"

namespace tsr::dev {

struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
// Floats of 8 bits with a fraction, by their format, as base/dtype_table.hpp has it.
template <int EXPONENT, int FRACTION, Highest HIGHEST = Highest::infinity, bool SIGN = true>
struct Minifloat {
  u8 bits;
};
using e4m3 = Minifloat<4, 3, Highest::nan>;
using e5m2 = Minifloat<5, 2>;
using e5m3 = Minifloat<5, 3, Highest::nan, false>;
struct e8m0 {
  u8 bits;
};
struct boolean {
  u8 bits;
};

template <class A, class B>
constexpr bool kSame = false;
template <class A>
constexpr bool kSame<A, A> = true;

template <class T>
constexpr bool kMinifloat = false;
template <int E, int F, Highest H, bool S>
constexpr bool kMinifloat<Minifloat<E, F, H, S>> = true;
// Floats whose values f32 has, but for f32 itself and those of less than a byte.
template <class T>
constexpr bool kNarrow = kMinifloat<T> || kSame<T, f16> || kSame<T, bf16> || kSame<T, e8m0>;

// --- narrow floats from and to f32
inline float widen(f16 v) {
#ifdef TSR_EMULATED
  u32 sign = (v.bits & 0x8000u) << 16, rest = v.bits & 0x7fffu;
  if (rest >= 0x7c00) return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ff) << 13);
  // Scaling by a power of two makes subnormal numbers of f16 normal in f32.
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(rest << 13) * 0x1p112f));
#else
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(v.bits));
  return f;
#endif
}

inline float widen(bf16 v) { return __uint_as_float(u32(v.bits) << 16); }

inline f16 to_f16(float v) {
#ifdef TSR_EMULATED
  u32 bits = __float_as_uint(v), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  if (rest > 0x7f800000) return {u16(sign | 0x7e00)};
  if (rest >= 0x477ff000) return {u16(sign | 0x7c00)};
  if (rest < 0x38800000) {  // subnormal: let the addition of f32 round
    float magic = __uint_as_float(rest) + 0.5f;
    return {u16(sign | (__float_as_uint(magic) - 0x3f000000))};
  }
  return {u16(sign | (rest + 0xfff + (rest >> 13 & 1) - 0x38000000) >> 13)};
#else
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
#endif
}

inline bf16 to_bf16(float v) {
#ifdef TSR_EMULATED
  u32 bits = __float_as_uint(v);
  if ((bits & 0x7fffffff) > 0x7f800000) return {0x7fff};
  return {u16((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
#else
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
#endif
}

inline float not_a_number() { return __uint_as_float(0x7fc00000); }
inline float infinity() { return __uint_as_float(0x7f800000); }

// Placing the bits and scaling them, which subnormal numbers survive.
__forceinline__ float widen_minifloat(MinifloatFormat f, u32 bits) {
  u32 m = bits & f.all_bits(), sign = f.sign ? (bits & 0x80) << 24 : 0;
  float v = __uint_as_float(m << (23 - f.fraction)) * __uint_as_float(u32(127 + 127 - f.bias()) << 23);
  if (m > f.largest_bits())
    v = f.highest == Highest::infinity && m == f.largest_bits() + 1 ? infinity() : not_a_number();
  return __uint_as_float(__float_as_uint(v) | sign);
}

// To the nearest; what is too large becomes the largest number, what is below 0 becomes 0 where there is no sign.
__forceinline__ u8 narrow_minifloat(MinifloatFormat f, float v) {
  u32 bits = __float_as_uint(v), rest = bits & 0x7fffffff, sign = f.sign ? bits >> 24 & 0x80 : 0;
  if (rest > 0x7f800000) return u8(f.highest == Highest::number ? f.largest_bits() : sign | f.all_bits());
  if (!f.sign && bits > 0x7fffffff) return 0;
  u32 bias = u32(127 - f.bias()) << 23, drop = u32(23 - f.fraction), small;
  if (rest < bias + (1u << 23)) {  // adding a number whose last place is the subnormal's unit rounds to it
    u32 magic = bias + ((drop + 1) << 23);
    small = __float_as_uint(__uint_as_float(rest) + __uint_as_float(magic)) - magic;
  } else {
    small = (rest + (1u << (drop - 1)) - 1 + (rest >> drop & 1) - bias) >> drop;
  }
  return u8(sign | (small > f.largest_bits() ? f.largest_bits() : small));
}

template <int E, int F, Highest H, bool S>
float widen(Minifloat<E, F, H, S> v) {
  return widen_minifloat({E, F, H, S}, v.bits);
}
inline float widen(e8m0 v) {
  if (v.bits == 0xff) return not_a_number();
  return __uint_as_float(v.bits ? u32(v.bits) << 23 : 0x00400000u);
}

template <int E, int F, Highest H, bool S>
void narrow(float v, Minifloat<E, F, H, S>& to) {
  to.bits = narrow_minifloat({E, F, H, S}, v);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
inline void narrow(float v, e4m3& to) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(v));
  to.bits = u8(pair);
}
inline void narrow(float v, e5m2& to) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(v));
  to.bits = u8(pair);
}
#endif
// Up to a power of two.
inline e8m0 to_e8m0(float v) {
  if (v != v) return {0xff};
  u32 bits = __float_as_uint(v);
  if (!(v > 0x1p-127f)) return {0};
  if (v > 0x1p127f) return {0xfe};
  if (bits < 0x00800000) return {1};
  return {u8((bits >> 23) + ((bits & 0x7fffff) != 0))};
}

// --- lanes: what instructions compute in
template <class To, class From>
To nearest_integer(From v, To low, To high) {
  double r = rint(double(v));
  if (r != r) return 0;
  if (r <= double(low)) return low;
  if (r >= double(high)) return high;
  return To(r);
}

template <class To, class From>
To convert_lane(From v) {
  if constexpr (kSame<To, From>)
    return v;
  else if constexpr (kSame<To, i64>)
    return nearest_integer<i64>(v, -9223372036854775807LL - 1, 9223372036854775807LL);
  else
    return To(v);
}

// An element as a lane reads it.
template <class L, class T>
L to_lane(T v) {
  if constexpr (kNarrow<T>)
    return convert_lane<L>(widen(v));
  else if constexpr (kSame<T, boolean>)
    return L(v.bits != 0);
  else if constexpr (kSame<T, float> || kSame<T, double>)
    return convert_lane<L>(v);
  else
    return L(v);
}

template <class T, class L>
T to_integer(L v, T low, T high) {
  if constexpr (kSame<L, i64>)
    return v < low ? low : v > high ? high : T(v);
  else if constexpr (kSame<L, float> && sizeof(T) == 1) {
    float r = rintf(v);  // exact here, and far cheaper than in f64
    return r != r ? T(0) : T(r < float(low) ? float(low) : r > float(high) ? float(high) : r);
  } else
    return nearest_integer<T>(v, low, high);
}

// A lane's value as an element stores it.
template <class T, class L>
T from_lane(L v) {
  if constexpr (kSame<T, f16>)
    return to_f16(float(v));
  else if constexpr (kSame<T, bf16>)
    return to_bf16(float(v));
  else if constexpr (kSame<T, e8m0>)
    return to_e8m0(float(v));
  else if constexpr (kMinifloat<T>) {
    T y;
    narrow(float(v), y);
    return y;
  } else if constexpr (kSame<T, boolean>)
    return {u8(v != L(0))};
  else if constexpr (kSame<T, i8>)
    return to_integer<i8>(v, -128, 127);
  else if constexpr (kSame<T, u8>)
    return to_integer<u8>(v, 0, 255);
  else if constexpr (kSame<T, i32>)
    return to_integer<i32>(v, -2147483647 - 1, 2147483647);
  else
    return convert_lane<T>(v);
}

// --- types of less than a byte
struct e2m1 {};
struct i4 {};
struct u4 {};
struct bit {};

template <class T>
constexpr bool kPacked = kSame<T, e2m1> || kSame<T, i4> || kSame<T, u4> || kSame<T, bit>;
template <class T>
constexpr int kPackedBits = kSame<T, bit> ? 1 : 4;

template <class L, class T>
L from_packed(u32 bits) {
  if constexpr (kSame<T, bit> || kSame<T, u4>) return L(bits);
  if constexpr (kSame<T, i4>) return L(i32(bits << 28) >> 28);
  // Where f32 has its exponent and the first bit behind; scaling makes what is subnormal there right as well.
  return L(__uint_as_float(bits << 28 & 0x80000000u | bits << 22 & 0x01c00000u) * 0x1p126f);
}

inline u32 to_e2m1(float v) {
  u32 rest = __float_as_uint(v) & 0x7fffffff, sign = v != v ? 0 : __float_as_uint(v) >> 28 & 8;
  if (!(__uint_as_float(rest) < 6.0f)) return sign | 7;
  // Below 1 steps are one half, the last place of 2^22: adding that rounds to it.
  if (rest < 0x3f800000) return sign | (__float_as_uint(__uint_as_float(rest) + 0x1p22f) & 7);
  return sign | (((rest + 0x1fffff + (rest >> 22 & 1)) >> 22) - 252);
}

template <class T, class L>
u32 to_packed(L v) {
  if constexpr (kSame<T, bit>) return v != L(0);
  if constexpr (kSame<T, u4>) return to_integer<u8>(v, 0, 15);
  if constexpr (kSame<T, i4>) return to_integer<i8>(v, -8, 7) & 15;
  return to_e2m1(float(v));
}

template <class L, class T>
L load_packed(const void* data, i64 index) {
  constexpr int kBits = kPackedBits<T>, kEach = 8 / kBits;
  u32 byte = static_cast<const u8*>(data)[u64(index) / kEach];
  return from_packed<L, T>(byte >> int(u64(index) % kEach) * kBits & ((1 << kBits) - 1));
}

// A lane's value as it reads back from a type.
template <class T, class L>
L round_as(L v) {
  if constexpr (kPacked<T>)
    return from_packed<L, T>(to_packed<T>(v));
  else
    return to_lane<L>(from_lane<T>(v));
}

// --- vectors of elements, moved in one access
template <class T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Vec {
  T v[N];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
// Two numbers, which f16 has all of.
template <class T>
void widen_pair(u16 pair, float& low, float& high) {
  u32 both;
  if constexpr (kSame<T, e4m3>)
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(both) : "h"(pair));
  else
    asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(both) : "h"(pair));
  low = widen(f16{u16(both)}), high = widen(f16{u16(both >> 16)});
}
template <class T>
constexpr bool kWidensPairs = kSame<T, e4m3> || kSame<T, e5m2>;
#else
template <class T>
void widen_pair(u16, float&, float&);
template <class T>
constexpr bool kWidensPairs = false;
#endif

// Elements as lanes: two bf16 of a word take one instruction each, the 8-bit floats of the hardware one for two.
template <class L, class T, int N>
void unpack(const Vec<T, N>& from, L (&to)[N]) {
  if constexpr (kSame<L, float> && kWidensPairs<T> && N % 2 == 0) {
    const u16* pairs = reinterpret_cast<const u16*>(&from);
#pragma unroll
    for (int i = 0; i < N; i += 2) widen_pair<T>(pairs[i / 2], to[i], to[i + 1]);
  } else if constexpr (kSame<L, float> && kSame<T, bf16> && N % 2 == 0) {
    const u32* words = reinterpret_cast<const u32*>(&from);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      to[i] = __uint_as_float(words[i / 2] << 16);
      to[i + 1] = __uint_as_float(words[i / 2] & 0xffff0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = to_lane<L>(from.v[i]);
  }
}

// Lanes as elements; the narrow floats by twos, as the hardware converts them.
template <class L, class T, int N>
void pack(const L (&from)[N], Vec<T, N>& to) {
#ifdef TSR_EMULATED
  constexpr bool kByTwos = false;
#else
  constexpr bool kByTwos = kSame<L, float> && N % 2 == 0 && (kSame<T, bf16> || kSame<T, f16>);
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  constexpr bool kSmallByTwos = kSame<L, float> && N % 2 == 0 && (kSame<T, e4m3> || kSame<T, e5m2>);
#else
  constexpr bool kSmallByTwos = false;
#endif
  if constexpr (kSmallByTwos) {
    u16* pairs = reinterpret_cast<u16*>(&to);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      if constexpr (kSame<T, e4m3>)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pairs[i / 2]) : "f"(from[i + 1]), "f"(from[i]));
      else
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pairs[i / 2]) : "f"(from[i + 1]), "f"(from[i]));
    }
  } else if constexpr (kByTwos) {
    u32* words = reinterpret_cast<u32*>(&to);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      if constexpr (kSame<T, bf16>)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(words[i / 2]) : "f"(from[i + 1]), "f"(from[i]));
      else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(words[i / 2]) : "f"(from[i + 1]), "f"(from[i]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to.v[i] = from_lane<T>(from[i]);
  }
}

// As many elements as fill a word, the first in its lowest bits.
template <class T, class... Numbers>
u32 word_of(Numbers... numbers) {
  constexpr int kCount = sizeof...(numbers);
  static_assert(sizeof(T) * kCount == 4);
  float all[kCount] = {numbers...};
  Vec<T, kCount> v;
  pack(all, v);
  return *reinterpret_cast<const u32*>(&v);
}

}  // namespace tsr::dev
