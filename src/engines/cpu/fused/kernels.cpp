// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/fused/kernels.hpp"

namespace tsr::cpu {

namespace generic {
extern const Kernels kKernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kKernels;
}
namespace avx512 {
extern const Kernels kKernels;
}
#endif

const Kernels& kernels() {
  static const Kernels& best = [&]() -> const Kernels& {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return avx512::kKernels;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kKernels;
#endif
    return generic::kKernels;
  }();
  return best;
}

}  // namespace tsr::cpu
