// SPDX-License-Identifier: Apache-2.0
// Numbers of cuBLASLt's interface that this client uses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cublaslt {

enum class Type : int { f32 = 0, f64 = 1, f16 = 2, i8 = 3, i32 = 10, bf16 = 14, e4m3 = 28, e5m2 = 29 };
enum class Compute : int { f32 = 68, f64 = 70, i32 = 72, tf32 = 77 };
enum class Turned : int32_t { no = 0, yes = 1 };

// What follows the product; the numbers of bias and one of the others are added up.
enum Epilogue : uint32_t { kPlain = 1, kRelu = 2, kBias = 4, kGelu = 32 };

enum class MatmulAttr : int {
  turned_a = 3,
  turned_b = 4,
  epilogue = 7,
  bias_pointer = 8,
  a_scale_pointer = 17,
  fast_sums = 25,
  bias_type = 26,
};
enum class LayoutAttr : int { batches = 5, batch_stride = 6 };
enum class PreferenceAttr : int { workspace_bytes = 1 };

// An algorithm that the library's heuristics suggest.
struct Algorithm {
  uint64_t data[8];
};
struct Suggestion {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

}  // namespace cublaslt
