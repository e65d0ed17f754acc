// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/rnn/cells.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const Cells kCells;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Cells kCells;
}
namespace avx512 {
extern const Cells kCells;
}
#endif

const Cells& cells() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kCells;
  if (isa == Isa::avx2) return avx2::kCells;
#endif
  return generic::kCells;
}

}  // namespace tsr::cpu
