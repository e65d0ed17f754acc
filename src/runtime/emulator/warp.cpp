// SPDX-License-Identifier: Apache-2.0
// Instructions that the lanes of a warp ask for together: products of small matrices, and matrices between shared
// memory and registers. Lanes meet, look at each other's registers, and part.
#include <cstring>

#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"
#include "runtime/emulator/numbers.hpp"

namespace tsr::emulator {
namespace {

using tsr_emulated::MatrixMove;
using tsr_emulated::WarpProduct;

int lane() { return static_cast<int>(cluster().here->thread.index.x % 32); }

// The lanes of the warp, which all ask for the same.
template <class Asked>
const Fibre* meet(const char* asks, const Asked& asked) {
  Fibre& f = *cluster().here;
  if (f.thread.index.x / 32 * 32 + 32 > cluster().world.block_dim.x)
    mistake(cat(asks, " takes a whole warp"), asked.here);
  f.asks = asks, f.asked = &asked;
  sync_lanes(asks, asked.here);
  const Fibre* warp = &f - lane();
  for (int l = 0; l < 32; ++l)
    if (warp[l].asks != asks) mistake(cat("not all lanes of a warp ask for ", asks), asked.here);
  return warp;
}
void part(const char* asks, Here here) {
  sync_lanes(asks, here);
  cluster().here->asks = nullptr;
}

template <class Asked>
const Asked& of_lane(const Fibre* warp, int l) {
  return *static_cast<const Asked*>(warp[l].asked);
}

// --- products
void mma(const WarpProduct& p) {
  constexpr const char* kAsks = "a product of a warp";
  const Fibre* warp = meet(kAsks, p);
  for (int l = 0; l < 32; ++l) {
    const auto& other = of_lane<WarpProduct>(warp, l);
    if (other.a_type != p.a_type || other.b_type != p.b_type || other.half_sums != p.half_sums)
      mistake("lanes of a warp ask for different products", p.here);
  }
  int bytes = bytes_of(p.a_type), each = 4 / bytes;  // elements of a register
  auto element = [&](ProductType type, const unsigned* r, int k) {
    return factor(type, reinterpret_cast<const char*>(r) + k % each * bytes);
  };
  constexpr int kMost = 32;
  Factor left[4][kMost], right[4][kMost];
  for (int s = 0; s < 4; ++s) {
    int row = lane() / 4 + s / 2 * 8, column = lane() % 4 * 2 + s % 2;
    for (int k = 0; k < 8 * each; ++k) {
      int quad = k / each % 4, half = k / (4 * each);
      const auto& a = of_lane<WarpProduct>(warp, row % 8 * 4 + quad);
      const auto& b = of_lane<WarpProduct>(warp, column * 4 + quad);
      left[s][k] = element(p.a_type, a.a + row / 8 + 2 * half, k);
      right[s][k] = element(p.b_type, b.b + half, k);
    }
  }
  part(kAsks, p.here);
  for (int s = 0; s < 4; ++s)
    take_sum(static_cast<uint32_t*>(p.sums), s, {left[s], right[s], 8 * each, p.a_type, p.b_type, true}, true,
             p.half_sums);
}

// --- matrices
void move_matrices(const MatrixMove& m) {
  const char* asks = m.out ? "a store of matrices" : "a load of matrices";
  const Fibre* warp = meet(asks, m);
  BlockState& b = *cluster().here->block;
  for (int l = 0; l < 32; ++l)
    if (of_lane<MatrixMove>(warp, l).count != m.count || of_lane<MatrixMove>(warp, l).turned != m.turned)
      mistake("lanes of a warp ask for different matrices", m.here);
  if (lane() < 8 * m.count) {  // names a row
    int64_t first = shared_place(b, m.row, 16, "a row of a matrix", m.here);
    if (first % 16 != 0)
      mistake(cat("a row of a matrix lies at offset ", first, ", it must be a multiple of 16"), m.here);
    if (m.out)
      check_unread(b, first, 16, "a store of matrices", m.here);
    else
      check_came(b, first, 16, "a load of matrices", m.here);
  }
  sync_lanes(asks, m.here);  // all rows were looked at
  for (int i = 0; i < m.count; ++i)
    for (int e = 0; e < 2; ++e) {
      int row = lane() / 4, column = lane() % 4 * 2 + e;
      if (m.turned) std::swap(row, column);
      char* there =
          const_cast<char*>(static_cast<const char*>(of_lane<MatrixMove>(warp, 8 * i + row).row)) + 2 * column;
      char* mine = reinterpret_cast<char*>(m.registers + i) + 2 * e;
      m.out ? std::memcpy(there, mine, 2) : std::memcpy(mine, there, 2);
    }
  part(asks, m.here);
}

}  // namespace

void add_warp(tsr_emulated::World& w) {
  w.mma = mma;
  w.move_matrices = move_matrices;
}

}  // namespace tsr::emulator
