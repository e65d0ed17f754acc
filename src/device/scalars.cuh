// SPDX-License-Identifier: Apache-2.0
// Names for numbers that host and device share in the arguments of kernels; no other header is needed.
#pragma once

namespace tsr::dev {

using i8 = signed char;
using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

constexpr int kMaxAxes = 8;

// The bits of a float of 8 bits, from the highest: a sign, the exponent with a bias of half its range, the fraction.
// What the highest patterns are: numbers; NaN alone; those of the highest exponent, infinity and NaN.
enum class Highest : u8 { number, nan, infinity };
struct MinifloatFormat {
  i32 exponent, fraction;
  Highest highest;
  bool sign;

  constexpr i32 bias() const { return (1 << (exponent - 1)) - 1; }
  constexpr u32 all_bits() const { return (1u << (exponent + fraction)) - 1; }  // without the sign
  constexpr u32 largest_bits() const {
    return highest == Highest::number ? all_bits() : all_bits() - (highest == Highest::nan ? 1u : 1u << fraction);
  }
};

// Types of elements that are chosen at run time (device/any.cuh). What is not one of these is a minifloat: its format.
enum class ElementType : i32 { f16, bf16, f32, f64, e8m0, i8, u8, i32, i64, boolean, minifloat };
constexpr ElementType element_type(MinifloatFormat f) {
  return ElementType(i32(ElementType::minifloat) + ((f.fraction * 8 + f.exponent) * 3 + i32(f.highest)) * 2 + f.sign);
}
constexpr MinifloatFormat minifloat_format(ElementType t) {
  i32 code = i32(t) - i32(ElementType::minifloat), widths = code / 6;
  return {widths % 8, widths / 8, Highest(code / 2 % 3), code % 2 != 0};
}

}  // namespace tsr::dev
