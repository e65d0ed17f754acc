// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/attention/vectors.hpp"

#include "base/isa.hpp"
#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu::attention {

namespace generic {
extern const Vectors kVectors;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Vectors kVectors;
}
namespace avx512 {
extern const Vectors kVectors;
}
#endif

const Vectors& vectors() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kVectors;
  if (isa == Isa::avx2) return avx2::kVectors;
#endif
  return generic::kVectors;
}

bool has_bf16() { return has_bf16_products(); }

}  // namespace tsr::cpu::attention
