// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/tile.hpp"

#include "base/error.hpp"
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
extern const NarrowTiles kNarrowTiles;
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

bool has_bf16_products() {
#if defined(__x86_64__)
  static const bool has = best_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
  return has;
#else
  return false;
#endif
}

bool has_byte_products() {
#if defined(__x86_64__)
  static const bool has = best_isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni");
  return has;
#else
  return false;
#endif
}

const NarrowTiles& narrow_tiles() {
#if defined(__x86_64__)
  if (has_bf16_products() || has_byte_products()) return avx512::kNarrowTiles;
#endif
  fail(Status::internal_error, "no products of narrow numbers on this processor");
}

}  // namespace tsr::cpu
