// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/product/tile.hpp"

#include "base/amx.hpp"
#include "base/error.hpp"
#include "base/isa.hpp"
#include "planner/machine.hpp"

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
extern const NarrowTiles kVectorTiles, kAmxTiles;
extern const Joins kJoins;
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

bool has_amx_products() {
  static const bool has = best_isa() == Isa::avx512 && this_machine().tile_flops_one > 0 && amx_granted();
  return has;
}

namespace {
[[noreturn]] void no_narrow_products() {
  fail(Status::internal_error, "no products of narrow numbers on this processor");
}
}  // namespace

const NarrowTiles& narrow_tiles() { return has_amx_products() ? amx_tiles() : vector_tiles(); }

const NarrowTiles& vector_tiles() {
#if defined(__x86_64__)
  if (has_bf16_products() || has_byte_products()) return avx512::kVectorTiles;
#endif
  no_narrow_products();
}

const NarrowTiles& amx_tiles() {
#if defined(__x86_64__)
  if (has_amx_products()) return avx512::kAmxTiles;
#endif
  no_narrow_products();
}

const Joins& joins() {
#if defined(__x86_64__)
  if (best_isa() == Isa::avx512) return avx512::kJoins;
#endif
  no_narrow_products();
}

}  // namespace tsr::cpu
