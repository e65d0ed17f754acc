// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/vector/kernels.hpp"

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

const Kernels* kernels_for(Isa isa) {
  if (isa > best_isa()) return nullptr;
#if defined(__x86_64__)
  if (isa == Isa::avx512) return &avx512::kKernels;
  if (isa == Isa::avx2) return &avx2::kKernels;
#endif
  return &generic::kKernels;
}

const Kernels& kernels() {
  static const Kernels& best = *kernels_for(best_isa());
  return best;
}

}  // namespace tsr::cpu
