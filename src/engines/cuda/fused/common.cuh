// SPDX-License-Identifier: Apache-2.0
// What the kernels of this folder share. Each is a function of the generated `Code<V>` (see code.hpp).
#pragma once

#include "device/block.cuh"
#include "device/memory.cuh"
#include "device/pointwise.cuh"
#include "device/random.cuh"
#include "engines/cuda/fused/args.cuh"

namespace tsr::dev {

// Adds to each operand's offset what position `index` of the loops adds.
template <int OPERANDS, int LOOPS, bool OUTER, class Index, class Args>
void locate(const Args& a, Index index, Index* at) {
#pragma unroll
  for (int l = 0; l < LOOPS; ++l) {
    Index here = index;
    if (l + 1 < LOOPS) {
      const Divisor& size = OUTER ? a.outer_size[l] : a.inner_size[l];
      Index rest = divide(index, size);
      here = index - rest * Index(size.value);
      index = rest;
    }
#pragma unroll
    for (int k = 0; k < OPERANDS; ++k) at[k] += here * Index(OUTER ? a.operands[k].outer[l] : a.operands[k].inner[l]);
  }
}

// Offsets of the operands at position `index` of a row that starts at `base`. What is not used of them costs nothing.
template <class C, class Index, class Args>
void along(const Args& a, const Index* base, Index index, Index* at) {
#pragma unroll
  for (int k = 0; k < C::kOperands; ++k) at[k] = base[k];
  locate<C::kOperands, C::kInner, false>(a, index, at);
}

// Joins the partial results of THREADS neighbouring threads; all of them get the total. `scratch` holds one for each
// warp of the block; the next call must be given another one, the call after that may have this one again.
template <class C, int S, int THREADS>
void total(typename C::Partial& p, typename C::Partial* scratch) {
#pragma unroll
  for (int bits = (THREADS < 32 ? THREADS : 32) / 2; bits > 0; bits /= 2) {
    typename C::Partial q = C::template shuffle<S>(p, bits);
    C::template join<S>(p, q);
  }
  if constexpr (THREADS > 32) {
    constexpr int kWarps = THREADS / 32;
    int warp = threadIdx.x / 32, first = warp / kWarps * kWarps;
    if (threadIdx.x % 32 == 0) scratch[warp] = p;
    __syncthreads();
    p = scratch[first + threadIdx.x % kWarps];
#pragma unroll
    for (int bits = kWarps / 2; bits > 0; bits /= 2) {
      typename C::Partial q = C::template shuffle<S>(p, bits);
      C::template join<S>(p, q);
    }
  }
}

}  // namespace tsr::dev
