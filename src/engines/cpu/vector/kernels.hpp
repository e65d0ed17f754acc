// SPDX-License-Identifier: Apache-2.0
// Vector loops over blocks of values: the instruction set of the fused engine's interpreter. The *_isa.cpp
// files are compiled once for each instruction set; kernels() picks the best that the processor has.
#pragma once

#include "base/isa.hpp"
#include "engines/cpu/vector/chain.hpp"

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

struct Kernels {
  const char* isa;
  void (*apply)(Lane lane, const ApplyArgs& args);
  void (*chain)(const ChainArgs& args);
  // Adds the kPartials values that a chain's reduction collected to its running value, and starts them anew.
  void (*drain)(tessera::ReduceMode mode, float* partials, double& total);
  // n elements at base[offset + i * stride]
  void (*load)(DType type, Lane lane, const void* base, int64_t offset, int64_t stride, void* y, int64_t n);
  void (*store)(DType type, Lane lane, const void* a, void* base, int64_t offset, int64_t stride, int64_t n);
  void (*fence)();  // makes streamed results visible to other threads
  void (*round)(DType type, Lane lane, const void* a, void* y, int64_t n);
  void (*convert)(Lane from, Lane to, const void* a, void* y, int64_t n);
  // Into a double, or an int64_t for the integer lane.
  void (*reduce)(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, void* acc);
  // The largest of each `block` elements of a, one after the other: the only reduction over blocks that there is.
  void (*max_blocks)(Lane lane, const void* a, void* y, int64_t block, int64_t n);
  // Side by side: acc[i] takes in a[i].
  void (*accumulate)(Lane lane, tessera::ReduceMode mode, const void* a, int64_t n, void* acc);
  // Uniform numbers in [0, 1) of elements first + i * stride of a random tensor (base/philox.hpp).
  void (*random)(uint64_t seed, uint64_t offset, int64_t first, int64_t stride, float* y, int64_t n);
  void (*fill)(Lane lane, const void* one, void* y, int64_t n);
};

const Kernels& kernels();
const Kernels* kernels_for(Isa isa);  // null: the processor lacks it
constexpr int64_t lane_bytes(Lane l) { return l == Lane::f32 ? 4 : 8; }

}  // namespace tsr::cpu
