// SPDX-License-Identifier: Apache-2.0
// Vector loops over blocks of values: the instruction set of the fused engine's interpreter. kernels_isa.cpp is
// compiled once for each instruction set; kernels() picks the best that the processor has.
#pragma once

#include "planner/expr.hpp"

namespace tsr::cpu {

// Elements in a block; a handful of f32 registers of this size stay in the first-level cache.
constexpr int64_t kBlock = 1024;

struct ApplyArgs {
  const tessera::PointwiseOptions* options;
  const void *a, *b, *c;              // null where the mode takes fewer
  bool a_scalar, b_scalar, c_scalar;  // one value for the whole block
  void* y;
  int64_t n;  // at most kBlock
};

// Running value of a reduction over a row.
struct Accumulator {
  double real = 0;
  int64_t integer = 0;
};

struct Kernels {
  const char* isa;
  void (*apply)(Lane lane, const ApplyArgs& args);
  // n elements at base[offset + i * stride]
  void (*load)(DType type, Lane lane, const void* base, int64_t offset, int64_t stride, void* y, int64_t n);
  void (*store)(DType type, Lane lane, const void* a, void* base, int64_t offset, int64_t stride, int64_t n);
  // f32 to memory that nobody reads soon, past the caches: no line is fetched only to be overwritten. Once all is
  // stored, `fence` makes it visible to other threads.
  void (*stream)(const void* a, void* to, int64_t n);
  void (*fence)();
  void (*round)(DType type, Lane lane, const void* a, void* y, int64_t n);
  void (*convert)(Lane from, Lane to, const void* a, void* y, int64_t n);
  void (*reduce)(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, Accumulator& acc);
  // Side by side: acc[i] takes in a[i]; acc holds double, or int64_t for the integer lane.
  void (*accumulate)(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, void* acc);
  void (*fill)(Lane lane, const void* one, void* y, int64_t n);
};

const Kernels& kernels();
constexpr int64_t lane_bytes(Lane l) { return l == Lane::f32 ? 4 : 8; }

}  // namespace tsr::cpu
