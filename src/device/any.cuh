// SPDX-License-Identifier: Apache-2.0
// Elements whose type is known at the launch only: for numbers that a thread reads or writes once or twice. Never
// inlined: a branch for each type, repeated at every use, would be most of a kernel's code.
#pragma once

#include "device/types.cuh"

namespace tsr::dev {

template <class L>
__forceinline__ L load_any_here(const void* data, ElementType type, i64 at) {
  switch (type) {
    case ElementType::f16:
      return to_lane<L>(static_cast<const f16*>(data)[at]);
    case ElementType::bf16:
      return to_lane<L>(static_cast<const bf16*>(data)[at]);
    case ElementType::f32:
      return to_lane<L>(static_cast<const float*>(data)[at]);
    case ElementType::f64:
      return to_lane<L>(static_cast<const double*>(data)[at]);
    case ElementType::e8m0:
      return to_lane<L>(static_cast<const e8m0*>(data)[at]);
    case ElementType::i8:
      return to_lane<L>(static_cast<const i8*>(data)[at]);
    case ElementType::u8:
      return to_lane<L>(static_cast<const u8*>(data)[at]);
    case ElementType::i32:
      return to_lane<L>(static_cast<const i32*>(data)[at]);
    case ElementType::i64:
      return to_lane<L>(static_cast<const i64*>(data)[at]);
    case ElementType::boolean:
      return to_lane<L>(static_cast<const boolean*>(data)[at]);
    default:
      return convert_lane<L>(widen_minifloat(minifloat_format(type), static_cast<const u8*>(data)[at]));
  }
}
template <class L>
__noinline__ L load_any(const void* data, ElementType type, i64 at) {
  return load_any_here<L>(data, type, at);
}

template <class L>
__forceinline__ void store_any_here(void* data, ElementType type, i64 at, L v) {
  switch (type) {
    case ElementType::f16:
      static_cast<f16*>(data)[at] = from_lane<f16>(v);
      break;
    case ElementType::bf16:
      static_cast<bf16*>(data)[at] = from_lane<bf16>(v);
      break;
    case ElementType::f32:
      static_cast<float*>(data)[at] = from_lane<float>(v);
      break;
    case ElementType::f64:
      static_cast<double*>(data)[at] = from_lane<double>(v);
      break;
    case ElementType::e8m0:
      static_cast<e8m0*>(data)[at] = from_lane<e8m0>(v);
      break;
    case ElementType::i8:
      static_cast<i8*>(data)[at] = from_lane<i8>(v);
      break;
    case ElementType::u8:
      static_cast<u8*>(data)[at] = from_lane<u8>(v);
      break;
    case ElementType::i32:
      static_cast<i32*>(data)[at] = from_lane<i32>(v);
      break;
    case ElementType::i64:
      static_cast<i64*>(data)[at] = from_lane<i64>(v);
      break;
    case ElementType::boolean:
      static_cast<boolean*>(data)[at] = from_lane<boolean>(v);
      break;
    default:
      static_cast<u8*>(data)[at] = narrow_minifloat(minifloat_format(type), float(v));
  }
}
template <class L>
__noinline__ void store_any(void* data, ElementType type, i64 at, L v) {
  store_any_here(data, type, at, v);
}

}  // namespace tsr::dev
