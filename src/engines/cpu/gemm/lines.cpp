// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/lines.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const LineKernels kLineKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const LineKernels kLineKernels;
}
namespace avx512 {
extern const LineKernels kLineKernels;
}
#endif

const LineKernels& line_kernels() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kLineKernels;
  if (isa == Isa::avx2) return avx2::kLineKernels;
#endif
  return generic::kLineKernels;
}

}  // namespace tsr::cpu
