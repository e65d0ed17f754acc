// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/gemm/tile.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const Tile kTile;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Tile kTile;
}
namespace avx512 {
extern const Tile kTile;
}
#endif

const Tile& tile() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kTile;
  if (isa == Isa::avx2) return avx2::kTile;
#endif
  return generic::kTile;
}

}  // namespace tsr::cpu
