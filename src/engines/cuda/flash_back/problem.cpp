// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash_back/problem.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/flash_back/args.cuh"
#include "engines/cuda/scores/boxes.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::bwd;

int padded(int64_t width, int64_t unit) { return static_cast<int>(ceil_div(width, unit) * unit); }

// Registers hold a bias's gradients or the largest magnitude.
Reason check_outputs(const Region& r) {
  const Graph& g = *r.graph;
  for (int slot : {int{kDbias}, int{kAmaxDp}})
    if (attention::Sequences x = attention::make_output(r, slot); x.given() && !is_real(x.type))
      return Reason::no("output ", describe(g.tensor(x.id)), " is of ", x.type);
  if (attention::make_output(r, kDbias).given() && attention::make_output(r, kAmaxDp).given())
    return Reason::no("registers hold a bias's gradients or the largest magnitude, not both");
  return Reason::yes();
}

Reason check_unpacked(const Region& r) {
  const Node& n = r.graph->node(r.nodes[0]);
  for (const auto* list : {&n.in, &n.out})
    for (TensorId id : *list)
      if (id != kNone && r.graph->tensor(id).ragged != kNone)
        return Reason::no("tensor ", describe(r.graph->tensor(id)), " is ragged");
  return Reason::yes();
}

Reason check_boxes(const Graph& g, const GradientProblem& m) {
  const std::pair<const attention::Sequences*, const char*> list[] = {
      {&m.p.q, "q"}, {&m.p.k, "k"}, {&m.p.v, "v"}, {&m.grad_o, "do"}};
  for (auto [x, name] : list)
    if (Reason why = check_sequence_box(g, *x, sequence_box(*x, 1), name); !why) return why;
  return Reason::yes();
}

Reason check_sizes(const sdpa::Shape& n) {
  constexpr double kMost = 1073741824.0;
  auto real = [](int64_t v) { return static_cast<double>(v); };
  double row_tiles = real(n.b) * real(n.hq) * real(ceil_div(n.sq, kChunk));
  double key_tiles = real(n.b) * real(n.hk) * real(ceil_div(n.skv, kChunk));
  for (double size : {real(n.sq), real(n.skv), row_tiles, key_tiles})
    if (size > kMost) return Reason::no("attention of ", n.scores(), " has a size of ", size, ", the limit is ", kMost);
  return Reason::yes();
}

}  // namespace

BackProblem::BackProblem(const Region& r)
    : GradientProblem(r),
      dbias(attention::make_output(r, kDbias)),
      amax_dp(attention::make_output(r, kAmaxDp)),
      cut(p.seq_len_q.given() || p.cu_seq_len_q.given() || p.seq_len_kv.given() || p.cu_seq_len_kv.given()) {}

bool BackProblem::bias_repeats() const { return dbias.given() && dbias.dims != p.n.scores(); }
bool BackProblem::wide() const { return std::max(p.n.d, p.n.dv) > 2 * kChunk; }
int BackProblem::depth() const { return padded(wide() ? p.n.d : std::max(p.n.d, p.n.dv), kChunk); }
int BackProblem::columns() const { return wide() ? padded(p.n.dv, kChunk) : depth(); }
int BackProblem::dq_width() const { return wide() ? padded(p.n.d, 2 * kChunk) : depth(); }
int BackProblem::dv_width() const { return wide() ? padded(p.n.dv, 2 * kChunk) : depth(); }
int BackProblem::rows() const { return depth() == kChunk && !wide() ? 128 : 64; }
int BackProblem::keys() const { return wide() ? dev::attention::kWideKeys : dev::attention::kBackKeys; }
int64_t BackProblem::row_tiles() const { return ceil_div(p.n.sq, rows()); }
int64_t BackProblem::key_tiles() const { return ceil_div(p.n.skv, keys()); }

Reason check_back(const Region& r, const Device& d) {
  if (d.arch != 90) return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 9.0");
  if (Reason why = check_gradients(r); !why) return why;
  GradientProblem m(r);
  if (Reason why = check_unpacked(r); !why) return why;
  if (Reason why = check_outputs(r); !why) return why;
  if (Reason why = check_boxes(*r.graph, m); !why) return why;
  return check_sizes(m.p.n);
}

int64_t back_bytes(const BackProblem& m, const BackChoice& c, int stages) {
  constexpr int64_t kOtherBytes = 512;  // barriers and factors
  int64_t row = (m.dq_width() + m.dv_width()) * 2, rows = m.rows();
  int64_t operands = m.keys() * row + stages * rows * (row + 2 * 4), scores = 2 * rows * m.keys() * 2;
  int64_t sums = kDirect && !c.ordered ? 0 : rows * m.dq_width() * 4;
  int64_t kept = m.p.options.score_mod_bwd ? rows * m.keys() * 4 : 0, largest = m.amax_dp.given() ? 256 * 4 : 0;
  return operands + scores + sums + kept + largest + kOtherBytes;
}

int back_stages(const BackProblem& m, const BackChoice& c, const Device& d) {
  constexpr int kMost = 3;
  int stages = kMost;
  while (stages > 1 && back_bytes(m, c, stages) > d.shared_bytes) --stages;
  return stages;
}

std::vector<BackChoice> back_choices(const BackProblem& m, bool ordered, const Device& d) {
  std::vector<BackChoice> list;
  int64_t sharers = m.p.n.hq / m.p.n.hk;
  for (int splits : {1, 2, 4}) {
    BackChoice c{splits, ordered};
    bool shares = splits == 1 || (sharers % splits == 0 && !m.wide());
    if (shares && back_bytes(m, c, back_stages(m, c, d)) <= d.shared_bytes) list.push_back(c);
  }
  return list;
}

double back_seconds(const BackProblem& m, const BackChoice& c, const Region& r, const Device& d) {
  const sdpa::Shape& n = m.p.n;
  auto real = [](int64_t v) { return static_cast<double>(v); };
  const tessera::SdpaOptions& o = m.p.options;
  // Steps along the queries: all, or as many as the band is high. Under a causal mask the first keys have all of them.
  double most = real(n.sq), mean = most;
  if (o.left && o.right) most = mean = std::min(most, real(*o.left + *o.right) + m.keys());
  if (o.right && !o.left) mean = std::min(most, most / 2 + real(*o.right) + m.keys());
  double heads = real(n.hq / n.hk) / c.splits, blocks = real(n.b * n.hk * m.key_tiles() * c.splits);
  constexpr double kOverhead = 3;  // steps that a block's beginning and end take
  auto steps = [&](double queries) { return std::ceil(std::max(queries, 1.0) / m.rows()) * heads + kOverhead; };
  double waves = mean < most ? blocks / d.units : std::ceil(blocks / d.units);
  double longest = std::max(steps(most), waves * steps(mean));
  double efficiency = m.wide() ? 0.4 : m.depth() > kChunk ? 0.55 : 0.42;
  if (c.ordered) efficiency *= 0.85;
  double multiplied = 3.0 * m.dq_width() + 2.0 * m.dv_width();
  double step = 2.0 * m.rows() * m.keys() * multiplied / (d.rates.bits16 / d.units * efficiency);
  // Sums of dq are cleared, added to, and read; so are those of splits.
  double sums = real(n.b * n.hq * m.row_tiles() * m.rows()) * m.dq_width() * 4 * 2;
  if (c.splits > 1) sums += blocks * m.keys() * m.depth() * 4 * 2 * 2;
  double kernels = c.splits > 1 ? 5 : 3;
  return std::max(region_limits(r, d).memory, longest * step) + sums / d.bytes_per_second + kernels * d.step_seconds;
}

}  // namespace tsr::cuda
