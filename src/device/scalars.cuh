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

// Types of elements that are chosen at run time (device/any.cuh).
enum class ElementType : i32 { f16, bf16, f32, f64, e4m3, e5m2, e5m3, e8m0, i8, u8, i32, i64, boolean };

}  // namespace tsr::dev
