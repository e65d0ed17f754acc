// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set, with TESSERA_ISA naming the namespace.
#include "engines/cpu/gemm/lines.hpp"

namespace tsr::cpu::TESSERA_ISA {
namespace {

void channels(int64_t n, const float* __restrict x, const float* __restrict w, float* __restrict sum) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i] * w[i];
}

void positions(int64_t n, const float* __restrict x, int64_t stride, float w, float* __restrict sum) {
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) sum[i] += x[i] * w;
  else
    for (int64_t i = 0; i < n; ++i) sum[i] += x[i * stride] * w;
}

}  // namespace

extern const LineKernels kLineKernels;
const LineKernels kLineKernels = {channels, positions};

}  // namespace tsr::cpu::TESSERA_ISA
