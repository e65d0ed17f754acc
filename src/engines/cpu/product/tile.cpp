// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/tile.hpp"

#include "base/isa.hpp"

namespace tsr::cpu {

namespace generic {
extern const Tile kTile;
extern const BasicTile<double> kWideTile;
}  // namespace generic
#if defined(__x86_64__)
namespace avx2 {
extern const Tile kTile;
extern const BasicTile<double> kWideTile;
}  // namespace avx2
namespace avx512 {
extern const Tile kTile;
extern const BasicTile<double> kWideTile;
}  // namespace avx512
#endif

const Tile& tile() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kTile;
  if (isa == Isa::avx2) return avx2::kTile;
#endif
  return generic::kTile;
}

const BasicTile<double>& wide_tile() {
#if defined(__x86_64__)
  static const Isa isa = best_isa();
  if (isa == Isa::avx512) return avx512::kWideTile;
  if (isa == Isa::avx2) return avx2::kWideTile;
#endif
  return generic::kWideTile;
}

}  // namespace tsr::cpu
