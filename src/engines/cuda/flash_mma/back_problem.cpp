// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_mma/back_problem.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/scores/grouped.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::bwd;

int64_t padded(int64_t width) { return ceil_div(width, 32) * 32; }
int64_t pitch(int64_t width) { return width * 2 + 16; }
double real(int64_t v) { return static_cast<double>(v); }

// Blocks that share a multiprocessor; more than eight warps have too few registers.
int blocks_of(int64_t bytes, int warps, int64_t registers, const Device& d) {
  constexpr int64_t kReserved = 1024, kMostOfThread = 255;
  int64_t most = 8 / warps;
  if (bytes > d.shared_bytes || registers > kMostOfThread) return 0;
  return static_cast<int>(std::min(most, (d.shared_bytes + kReserved) / (bytes + kReserved)));
}

Reason check_outputs(const Region& r) {
  for (int slot : {int{kDbias}, int{kAmaxDp}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given())
      return Reason::no("output ", describe(r.graph->tensor(x.id)),
                        ": gradients of a bias and largest magnitudes are not made");
  return Reason::yes();
}

// Of packed sequences, only lengths say where they end; longer ones than the sizes say have no room for all their
// numbers.
Reason check_packed(const Region& r, const GradientProblem& m) {
  auto packed = [](const attention::Sequences& x) { return x.offsets != kNone; };
  bool q = packed(m.p.q) || packed(m.grad_o), kv = packed(m.p.k) || packed(m.p.v);
  if (q && !m.p.seq_len_q.given() && !m.p.cu_seq_len_q.given())
    return Reason::no("q or do is packed, but their lengths are not given");
  if (kv && !m.p.seq_len_kv.given() && !m.p.cu_seq_len_kv.given())
    return Reason::no("k or v is packed, but their lengths are not given");
  if ((q || kv) && m.p.dropout_mask.given()) return Reason::no("sequences are packed, and dropout has a mask");
  if (m.p.open.q && m.dsink.given())
    return Reason::no("q is packed: output ", describe(r.graph->tensor(m.dsink.id)),
                      " is a sum over rows of any number");
  return Reason::yes();
}

Reason check_sizes(const sdpa::Shape& n) {
  constexpr double kMost = 1073741824.0;
  for (double size : {real(n.skv), real(n.b) * real(n.hq) * real(n.sq), real(n.b) * real(n.hk) * real(n.skv)})
    if (size > kMost) return Reason::no("attention of ", n.scores(), " has a size of ", size, ", the limit is ", kMost);
  return Reason::yes();
}

}  // namespace

int64_t FlashMmaBackShape::query_bytes() const {
  return (query_rows() + dev::attention::kFlashStages * keys) * (pitch(depth) + pitch(columns));
}

int64_t FlashMmaBackShape::key_bytes() const {
  constexpr int64_t kNumbers = 8;  // of a query: statistics and sum of do o
  return key_rows() * (pitch(depth) + pitch(columns)) + stages * rows * (pitch(depth) + pitch(columns) + kNumbers);
}

FlashMmaBackShape flash_mma_back_shape(const attention::Problem& p, const Device& d) {
  // What a thread holds beside sums, scores and their gradients.
  int64_t other = changes_scores(p) ? 102 : 90, scores = p.options.score_mod_bwd ? 3 : 2;
  FlashMmaBackShape y{padded(p.n.d), padded(p.n.dv)};
  auto try_keys = [&](int warps, int least_blocks, int keys) {
    FlashMmaBackShape c = y;
    c.query_warps = warps, c.keys = keys;
    c.query_blocks = blocks_of(c.query_bytes(), warps, c.depth / 2 + scores * keys / 2 + other, d);
    if (y.query_blocks == 0 && c.query_blocks >= least_blocks) y = c;
  };
  auto try_rows = [&](int warps, int least_blocks, bool both, int rows, int stages) {
    FlashMmaBackShape c = y;
    c.both = both, c.key_warps = warps, c.rows = rows, c.stages = stages;
    int64_t sums = both ? c.depth + c.columns : std::max(c.depth, c.columns);
    c.key_blocks = blocks_of(c.key_bytes(), warps, sums / 2 + scores * rows / 2 + other, d);
    if (y.key_blocks == 0 && c.key_blocks >= least_blocks) y = c;
  };
  // Eight warps hide each other's waiting, best in two blocks, which do not meet the same barriers; steps of 16 read
  // more from shared memory than they multiply.
  constexpr std::pair<int, int> kWarpsAndBlocks[] = {{4, 2}, {8, 1}};
  for (int least : {32, 16})
    for (auto [warps, blocks] : kWarpsAndBlocks)
      for (bool both : {true, false})
        for (int size = 64; size >= least; size /= 2)
          try_keys(warps, blocks, size), try_rows(warps, blocks, both, size, 2);
  for (int size : {32, 16}) {
    try_keys(4, 1, size);
    for (int stages : {2, 1})
      for (bool both : {true, false}) try_rows(4, 1, both, size, stages);
  }
  return y;
}

Reason check_flash_mma_back(const Region& r, const Device& d) {
  constexpr int kLeastArch = 80;
  if (d.arch < kLeastArch)
    return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", less than 8.0");
  if (Reason why = check_gradients(r); !why) return why;
  if (Reason why = check_outputs(r); !why) return why;
  const GradientProblem m(r);
  const std::pair<const attention::Sequences*, const char*> list[] = {
      {&m.p.q, "q"}, {&m.p.k, "k"}, {&m.p.v, "v"}, {&m.grad_o, "do"}};
  for (auto [x, name] : list)
    if (Reason why = check_pieces(*r.graph, *x, name); !why) return why;
  if (Reason why = check_places(*r.graph, r.graph->node(r.nodes[0])); !why) return why;
  if (Reason why = check_packed(r, m); !why) return why;
  if (Reason why = check_sizes(m.p.n); !why) return why;
  FlashMmaBackShape s = flash_mma_back_shape(m.p, d);
  if (s.query_blocks == 0 || s.key_blocks == 0)
    return Reason::no("tiles of rows of ", s.depth, " and ", s.columns, " elements do not fit the registers, or the ",
                      d.shared_bytes, " bytes of shared memory");
  return Reason::yes();
}

double flash_mma_back_seconds(const Region& r, const Device& d) {
  const GradientProblem m(r);
  const sdpa::Shape& n = m.p.n;
  const tessera::SdpaOptions& o = m.p.options;
  FlashMmaBackShape s = flash_mma_back_shape(m.p, d);
  // A fraction of all scores lies in the band.
  double most = real(n.skv), keys = most;
  if (o.right) keys = std::min(keys, most / 2 + real(*o.right));
  if (o.left && o.right) keys = std::min(keys, real(*o.left + *o.right) + real(s.query_rows()));
  double scores = real(n.b) * real(n.hq) * real(n.sq) * std::max(keys, 1.0);
  // What such kernels are known to reach of an A100's products; of later tensor cores products of warps reach less.
  double efficiency = s.columns >= 96 ? 0.5 : 0.45;
  constexpr int kLaterFrom = 90, kLaterTo = 119;
  if (d.arch >= kLaterFrom && d.arch <= kLaterTo) efficiency *= 0.6;
  // Blocks that do not fill the device leave a part of it idle.
  auto seconds = [&](double tiles, int warps, int blocks, double products) {
    double room = real(int64_t{d.units} * blocks), waves = tiles / room;
    double idle = o.right && waves > 1 ? 1 : std::ceil(waves) / waves;
    return 2 * scores * products / (d.rates.bits16 * efficiency) * idle * (warps * blocks >= 8 ? 1 : 1.25);
  };
  double query_tiles = real(n.b * m.p.groups() * ceil_div(m.p.group * n.sq, s.query_rows()));
  double key_tiles = real(n.b * n.hk * ceil_div(n.skv, s.key_rows()));
  double total = 0, depth = real(s.depth), columns = real(s.columns);
  if (m.dq.given()) total += seconds(query_tiles, s.query_warps, s.query_blocks, 2 * depth + columns);
  if (m.dk.given() || m.dv.given())
    total += seconds(key_tiles, s.key_warps, s.key_blocks, (s.both ? 2 : 3) * depth + 2 * columns);
  constexpr double kSteps = 4;
  return std::max(region_limits(r, d).memory, total) + kSteps * d.step_seconds;
}

}  // namespace tsr::cuda
