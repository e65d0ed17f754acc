// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/decode/problem.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/scores/check.hpp"
#include "engines/cuda/scores/grouped.hpp"

namespace tsr::cuda {
namespace {

using dev::attention::kDecodeWarps, dev::attention::kWarpRows;

constexpr int kLeastStages = 2, kMostStages = 4;
constexpr int kSpan = kWarpRows * kDecodeWarps;  // keys of one step of a block

// Products of 32 elements more or less share a kernel.
int64_t padded(int64_t width) { return ceil_div(width, 32) * 32; }
double real(int64_t v) { return static_cast<double>(v); }

// Keys and values of one step of a block; rows are 16 bytes further apart than they are long.
int64_t stage_bytes(const DecodeProblem& m) { return kSpan * 2 * (m.depth() + 8 + m.columns() + 8); }

Reason check_sizes(const DecodeProblem& m) {
  constexpr double kMost = 2147483647.0 - 1024;
  for (double size : {real(m.p.n.skv), real(m.rows()), real(m.tiles())})
    if (size > kMost)
      return Reason::no("attention of ", m.p.n.scores(), " has a size of ", size, ", the limit is ", kMost);
  return Reason::yes();
}

// Keys that a query meets, as far as the sizes tell.
double keys_met(const DecodeProblem& m) {
  const tessera::SdpaOptions& o = m.p.options;
  double keys = real(m.p.n.skv);
  if (o.left) keys = std::min(keys, real(*o.left) + (o.right ? real(*o.right) : keys) + real(m.p.n.sq));
  return std::max(keys, 1.0);
}

}  // namespace

DecodeProblem::DecodeProblem(const Region& r, const Device& d)
    : p(*r.graph, r.graph->node(r.nodes[0])),
      o(attention::make_output(r, sdpa::fwd::kO)),
      folded(folds_scale(p)),
      pages(pages_of(p)),
      team(1) {
  // Of the widest rows four warps' worth of queries would not leave registers enough.
  int most = columns() > 128 ? kDecodeWarps / 2 : kDecodeWarps;
  while (team < most && rows() > int64_t{team} * kWarpRows) team *= 2;
  constexpr int64_t kReserved = 1024;  // of each block, by the system
  // Two blocks of a multiprocessor begin and end at different times.
  for (int count : {2, 1}) {
    int64_t room = d.shared_bytes / count - (count - 1) * kReserved - shared_bytes();
    auto fit = static_cast<int>(std::min<int64_t>(kMostStages, room / stage_bytes(*this)));
    if (fit < kLeastStages) continue;
    stages = fit, blocks = count;
    return;
  }
}

int64_t DecodeProblem::depth() const { return padded(p.n.d); }
int64_t DecodeProblem::columns() const { return padded(p.n.dv); }
int64_t DecodeProblem::row_tiles() const { return ceil_div(rows(), kWarpRows * team); }
int64_t DecodeProblem::shared_bytes() const {
  int64_t queries = int64_t{2} * kWarpRows * team * (depth() + 8);
  return dev::attention::kDecodeFixed + queries + stages * stage_bytes(*this);
}

Reason check_decode(const Region& r, const Device& d) {
  constexpr int kLeastArch = 80;
  if (d.arch < kLeastArch)
    return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", less than 8.0");
  if (Reason why = check_forward(r); !why) return why;
  const Graph& g = *r.graph;
  DecodeProblem m(r, d);
  if (Reason why = check_pieces(g, m.p.q, "q"); !why) return why;
  if (Reason why = check_pieces(g, m.p.k, "k"); !why) return why;
  if (Reason why = check_pieces(g, m.p.v, "v"); !why) return why;
  if (Reason why = check_sizes(m); !why) return why;
  if (m.stages == 0)
    return Reason::no("two steps of ", kSpan, " rows of ", m.depth(), " and ", m.columns(), " elements do not fit the ",
                      d.shared_bytes, " bytes of shared memory");
  return Reason::yes();
}

std::vector<DecodeChoice> decode_choices(const DecodeProblem& m, const Device& d) {
  constexpr int64_t kWaves = 8, kMost = 1024;
  constexpr int kClusterArch = 90, kMostCluster = 8;
  int64_t room = int64_t{m.blocks} * d.units, wanted = ceil_div(kWaves * room, m.tiles());
  auto spans = static_cast<int64_t>(std::ceil(keys_met(m) / kSpan));
  int64_t most = std::min({wanted, spans, kMost});
  std::vector<DecodeChoice> list;
  auto add = [&](int64_t splits, int64_t cluster) {
    if (splits >= 1 && splits <= most) list.push_back({static_cast<int>(splits), static_cast<int>(cluster)});
  };
  for (int64_t base = 1; base <= most; base *= 2) {
    add(base, 1), add(base * 3, 1);
    if (d.arch >= kClusterArch && base > 1 && base <= kMostCluster) add(base, base);
  }
  // As many as fill the device.
  int64_t fill = room / m.tiles();
  if (std::none_of(list.begin(), list.end(), [&](const DecodeChoice& c) { return c.splits == fill; })) add(fill, 1);
  return list;
}

double decode_seconds(const DecodeProblem& m, const DecodeChoice& c, const Device& d) {
  // What a step takes from asking for it when memory is busy, products included; what a block does before and after.
  constexpr double kLatency = 1.9e-6, kAround = 2e-6, kMemory = 0.95, kCache = 1.4, kProducts = 0.3;
  const sdpa::Shape& n = m.p.n;
  double spans = std::ceil(keys_met(m) / kSpan), key = 2 * real(n.d + n.dv);
  double bytes = std::ceil(spans / c.splits) * kSpan * key;  // of a block
  double bandwidth = d.bytes_per_second * kMemory, blocks = real(m.tiles()) * c.splits, room = real(m.blocks * d.units);
  // Row tiles after the first find keys in the cache.
  if (m.row_tiles() > 1) bandwidth *= std::min(kCache, real(m.row_tiles()));
  double ahead = (m.stages - 1) * real(stage_bytes(m)), rate = ahead / kLatency, full = std::floor(blocks / room);
  // What is asked for before the first step waits for nothing else.
  auto wave = [&](double count) {
    return count == 0 ? 0 : std::max(count * bytes / bandwidth, (bytes - ahead) / rate);
  };
  double streamed = full * wave(room) + wave(blocks - full * room);
  double flops = blocks * 2 * kWarpRows * m.team * bytes / key * real(m.depth() + m.columns());
  double seconds = std::max(streamed, flops / (kProducts * d.rates.bits16)) + kAround + d.step_seconds;
  // Blocks of a cluster begin together, where there is room for all of them.
  // Many large ones, which share multiprocessors, crowd on some.
  constexpr double kMeeting = 1e-6, kTogether = 1.01, kCrowded = 1.3;
  if (c.cluster > 1) seconds = seconds * (c.cluster > 2 && blocks > d.units ? kCrowded : kTogether) + kMeeting;
  if (!c.joins()) return seconds;
  constexpr double kJoin = 2e-6;  // of the second kernel, beside reading parts, which are in the cache
  double parts = 8 * real(n.b * n.hq * n.sq) * c.splits * real(n.dv + 2);
  return seconds + parts / (kCache * d.bytes_per_second) + kJoin + d.step_seconds;
}

}  // namespace tsr::cuda
