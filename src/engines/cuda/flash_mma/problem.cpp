// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_mma/problem.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/scores/check.hpp"
#include "engines/cuda/scores/grouped.hpp"

namespace tsr::cuda {
namespace {

// Products of 32 elements more or less share a kernel.
int64_t padded(int64_t width) { return ceil_div(width, 32) * 32; }
int64_t pitch(int64_t width) { return width * 2 + 16; }
double real(int64_t v) { return static_cast<double>(v); }

Reason check_sizes(const FlashMmaProblem& m) {
  constexpr double kMost = 2147483647.0 - 1024;
  const sdpa::Shape& n = m.p.n;
  for (double size : {real(n.skv), real(m.rows()), real(n.b) * real(n.hq) * real(n.sq)})
    if (size > kMost) return Reason::no("attention of ", n.scores(), " has a size of ", size, ", the limit is ", kMost);
  return Reason::yes();
}

// Blocks that share a multiprocessor: as many as its memory and its registers have room for.
int blocks_of(const FlashMmaProblem& m, const FlashMmaChoice& c, const Device& d) {
  constexpr int64_t kReserved = 1024, kRegisters = 65536, kMostOfThread = 255;
  // As the compiler counts them: without a spill on any target, and on 9.0 it wants two more.
  int64_t needed = c.parts() * (m.columns() + c.keys) / 2 + (m.changed ? 108 : 94) + (d.arch == 90 ? 2 : 0);
  int64_t bytes = flash_mma_bytes(m, c);
  if (needed > kMostOfThread || bytes > d.shared_bytes) return 0;
  int64_t by_memory = (d.shared_bytes + kReserved) / (bytes + kReserved),
          by_registers = kRegisters / (32 * c.warps * needed);
  constexpr int64_t kMost = 4;
  return static_cast<int>(std::min({by_memory, std::max<int64_t>(by_registers, 1), kMost}));
}

}  // namespace

FlashMmaProblem::FlashMmaProblem(const Region& r)
    : p(*r.graph, r.graph->node(r.nodes[0])),
      o(attention::make_output(r, sdpa::fwd::kO)),
      changed(changes_scores(p)),
      folded(folds_scale(p)),
      pages(pages_of(p)) {}

int64_t FlashMmaProblem::depth() const { return padded(p.n.d); }
int64_t FlashMmaProblem::columns() const { return padded(p.n.dv); }

void fill_tiles(dev::attention::FlashMmaArgs& a, const attention::Problem& p, int64_t row_tiles, const Device& d) {
  a.group = static_cast<int>(p.group), a.row_tiles = static_cast<int>(row_tiles);
  // Groups whose keys and values fill half of the cache.
  int64_t bytes = p.n.skv * (p.n.d + p.n.dv) * 2;
  a.together = static_cast<int>(std::clamp<int64_t>(d.cache_bytes / 2 / bytes, 1, p.n.b * p.groups()));
}

Reason check_flash_mma(const Region& r, const Device& d) {
  constexpr int kLeastArch = 80;
  if (d.arch < kLeastArch)
    return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", less than 8.0");
  if (Reason why = check_forward(r); !why) return why;
  const Graph& g = *r.graph;
  FlashMmaProblem m(r);
  if (Reason why = check_pieces(g, m.p.q, "q"); !why) return why;
  if (Reason why = check_pieces(g, m.p.k, "k"); !why) return why;
  if (Reason why = check_pieces(g, m.p.v, "v"); !why) return why;
  if (Reason why = check_sizes(m); !why) return why;
  if (flash_mma_choices(m, d).empty())
    return Reason::no("tiles of rows of ", m.depth(), " and ", m.columns(),
                      " elements do not fit the registers, or the ", d.shared_bytes, " bytes of shared memory");
  return Reason::yes();
}

int64_t flash_mma_bytes(const FlashMmaProblem& m, const FlashMmaChoice& c) {
  return c.rows * pitch(m.depth()) + dev::attention::kFlashStages * c.keys * (pitch(m.depth()) + pitch(m.columns()));
}

int64_t flash_mma_row_tiles(const FlashMmaProblem& m, const FlashMmaChoice& c) { return ceil_div(m.rows(), c.rows); }

std::vector<FlashMmaChoice> flash_mma_choices(const FlashMmaProblem& m, const Device& d) {
  std::vector<FlashMmaChoice> list;
  auto fits = [&](FlashMmaChoice& c) { return (c.blocks = blocks_of(m, c, d)) > 0; };
  // Two parts of a warp read each key from shared memory once. That is worth it as long as registers hold both, and as
  // another block has as many warps.
  int64_t widest = m.changed ? 0 : m.pages == dev::attention::Pages::none ? 96 : 64;
  for (int keys : {64, 32}) {
    FlashMmaChoice two{128, keys, 4}, one{128, keys, 8}, small{64, keys, 4};
    if (m.columns() <= widest && fits(two) && two.blocks > 1)
      list.push_back(two);
    else if (fits(one))
      list.push_back(one);
    if (fits(small)) list.push_back(small);
  }
  return list;
}

double flash_mma_seconds(const FlashMmaProblem& m, const FlashMmaChoice& c, const Region& r, const Device& d) {
  const sdpa::Shape& n = m.p.n;
  const tessera::SdpaOptions& o = m.p.options;
  // Steps along the keys: all, or about as many as the band is wide.
  double keys = real(n.skv), queries = std::max(1.0, real(c.rows) / real(m.p.group));
  if (o.right) {
    double diagonal = o.align == tessera::Align::bottom_right ? keys - real(n.sq) / 2 : real(n.sq) / 2;
    keys = std::min(keys, std::max(diagonal, 0.0) + real(*o.right));
  }
  if (o.left && o.right) keys = std::min(keys, real(*o.left + *o.right) + queries);
  double steps = std::ceil(std::max(keys, 1.0) / c.keys);
  double tiles = real(n.b * m.p.groups() * flash_mma_row_tiles(m, c)), room = real(int64_t{d.units} * c.blocks);
  double waves = o.right ? std::max(1.0, tiles / room) : std::ceil(tiles / room);
  // What such kernels are known to reach of an A100's products; of later tensor cores products of warps reach less.
  double efficiency = m.columns() >= 96 ? 0.8 : 0.7;
  constexpr int kLaterFrom = 90, kLaterTo = 119;
  if (d.arch >= kLaterFrom && d.arch <= kLaterTo) efficiency *= 0.6;
  // Warps hide each other's exponentials; a warp with one part waits for shared memory; small steps wait more often.
  double warps = c.warps * c.blocks;
  efficiency *= warps / (warps + 2) * (c.parts() > 1 ? 1 : 0.85) * c.keys / (c.keys + 16.0);
  constexpr double kOverhead = 2;  // steps that a tile's beginning and end take
  double step = 2.0 * c.rows * c.keys * real(m.depth() + m.columns()) / (d.rates.bits16 / room * efficiency);
  return std::max(region_limits(r, d).memory, waves * (steps + kOverhead) * step) + d.step_seconds;
}

}  // namespace tsr::cuda
