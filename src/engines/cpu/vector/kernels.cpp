// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/vector/kernels.hpp"

#include "base/isa.hpp"

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
    if (best_isa() == Isa::avx512) return avx512::kKernels;
    if (best_isa() == Isa::avx2) return avx2::kKernels;
#endif
    return generic::kKernels;
  }();
  return best;
}

}  // namespace tsr::cpu
