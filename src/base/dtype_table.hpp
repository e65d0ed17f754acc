// SPDX-License-Identifier: Apache-2.0
// The data types, a row each, in the order of their enumeration. What is not said of a type elsewhere follows from
// here: see docs/adding-a-data-type.md.
#pragma once

#include <iterator>

#include "base/dtype.hpp"

namespace tsr {

inline constexpr DTypeInfo kDTypes[] = {
    {DType::f64, "f64", TypeKind::real, 64, {11, 52}},
    {DType::f32, "f32", TypeKind::real, 32, {8, 23}},
    {DType::f16, "f16", TypeKind::real, 16, {5, 10}},
    {DType::bf16, "bf16", TypeKind::real, 16, {8, 7}},
    {DType::e4m3, "e4m3", TypeKind::real, 8, {4, 3, FloatFormat::nan}},
    {DType::e5m2, "e5m2", TypeKind::real, 8, {5, 2}},
    {DType::e8m0, "e8m0", TypeKind::real, 8, {8, 0, FloatFormat::nan, false}},
    {DType::e2m1, "e2m1", TypeKind::real, 4, {2, 1, FloatFormat::number}},
    {DType::i64, "i64", TypeKind::integer, 64},
    {DType::i32, "i32", TypeKind::integer, 32},
    {DType::i8, "i8", TypeKind::integer, 8},
    {DType::u8, "u8", TypeKind::integer, 8},
    {DType::i4, "i4", TypeKind::integer, 4},
    {DType::u4, "u4", TypeKind::integer, 4},
    {DType::boolean, "bool", TypeKind::boolean, 8},
    {DType::bit, "bit", TypeKind::boolean, 1},
    {DType::c64, "c64", TypeKind::complex, 64, {8, 23}},
    {DType::c128, "c128", TypeKind::complex, 128, {11, 52}},
    {DType::i8x4, "i8x4", TypeKind::integer, 8, {}, 4},
    {DType::i8x32, "i8x32", TypeKind::integer, 8, {}, 32},
    {DType::e5m3, "e5m3", TypeKind::real, 8, {5, 3, FloatFormat::nan, false}},
};

// f<Row>() for the row of a minifloat type; false for other types.
template <size_t Row = 0, class F>
[[gnu::always_inline]] inline bool with_minifloat(DType t, const F& f) {
  if constexpr (Row < std::size(kDTypes)) {
    if constexpr (kDTypes[Row].is_minifloat())
      if (kDTypes[Row].type == t) return f.template operator()<Row>(), true;
    return with_minifloat<Row + 1>(t, f);
  }
  return false;
}

}  // namespace tsr
