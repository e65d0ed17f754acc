// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/flash/problem.hpp"

#include <algorithm>
#include <cmath>

#include "engines/cuda/scores/boxes.hpp"
#include "engines/cuda/scores/check.hpp"

namespace tsr::cuda {
namespace {

using namespace sdpa::fwd;

constexpr int64_t kBarrierBytes = 1024;
constexpr int kLeastStages = 2, kMostStages = 4, kLeastKeys = 64, kMostKeys = 192;

// Products of 32 elements more or less share a kernel.
int64_t padded(int64_t width) { return ceil_div(width, 32) * 32; }
int64_t chunks(int64_t width, int bytes) { return ceil_div(width * bytes, 128); }

bool is_narrow(const attention::Problem& p) { return info(p.q.type).bits == 8; }

// Packed sequences: all rows of all heads lie at multiples of the same stride.
Reason check_packed(const attention::Sequences& x) {
  if (x.offsets == kNone) return Reason::yes();
  if (x.strides[2] <= 0 || x.multiplier % x.strides[2] != 0)
    return Reason::no("offsets count ", x.multiplier, " elements, no multiple of the ", x.strides[2], " of a step");
  return Reason::yes();
}

Reason check_pages(const attention::Sequences& x) {
  constexpr int64_t kLeast = 8;  // rows that a swizzle exchanges
  if (x.pages && x.dims[2] % kLeast != 0)
    return Reason::no("pages have ", x.dims[2], " steps, not a multiple of ", kLeast);
  if (x.pages && x.pages->offsets != kNone) return Reason::no("its page table is ragged");
  if (x.pages && x.dims[0] > 1 && x.strides[0] == 0) return Reason::no("all pages are the same");
  return Reason::yes();
}

Reason check_sequence(const Graph& g, const attention::Sequences& x, const char* name) {
  for (const Reason& why : {check_packed(x), check_pages(x)})
    if (!why) return Reason::no(name, " ", describe(g.tensor(x.id)), ": ", why.text());
  return check_sequence_box(g, x, flash_box(x, 1), name);
}

Reason check_sizes(const sdpa::Shape& n) {
  constexpr double kMost = 2147483647.0 - 1024;
  auto real = [](int64_t v) { return static_cast<double>(v); };
  double tiles = real(n.b) * real(n.hq) * real(ceil_div(n.sq, kChunk));
  for (double size : {real(n.sq), real(n.skv), tiles})
    if (size > kMost) return Reason::no("attention of ", n.scores(), " has a size of ", size, ", the limit is ", kMost);
  return Reason::yes();
}

// Do results lie as the copy engine stores them?
bool leaves_in_boxes(const Graph& g, const attention::Sequences& o) {
  if (!o.given() || info(o.type).bits > 16 || !check_packed(o)) return false;
  const Tensor& t = g.tensor(o.id);
  return check_box(flash_box(o, 1), t.stored ? t.alignment : kMemoryAlign).ok();
}

// Is any sequence or result packed?
bool has_offsets(const Region& r) {
  const Node& n = r.graph->node(r.nodes[0]);
  const sdpa::Slots& s = sdpa::slots(n);
  for (int slot : {s.q, s.k, s.v})
    if (attention::input(*r.graph, n, slot)->ragged != kNone) return true;
  for (int slot : {int{kO}, int{kStats}, int{kMax}, int{kSumExp}})
    if (attention::make_output(r, slot).offsets != kNone) return true;
  return false;
}

// Do registers of a thread hold scores, weights and results, and what else a step needs?
bool holds(const FlashProblem& m, int rows, int keys) {
  int64_t held = keys / 2 + keys * m.bytes() / 8 + m.columns() / 2, most = rows == 192 ? 130 : 200;
  if (m.narrow) held += m.columns_at_once() / 2, most += rows == 192 ? 0 : 8;
  if (m.changed) most -= rows == 192 ? 40 : 88;
  if (m.ragged || m.paged) most -= 12;
  return held <= most && (rows < 192 || m.depth() <= 128);
}

int64_t key_bytes(const FlashProblem& m, int keys) { return chunks(m.depth(), m.bytes()) * keys * 128; }
int64_t value_bytes(const FlashProblem& m, int keys) {
  return m.narrow ? keys * m.columns() : chunks(m.columns(), 2) * keys * 128;
}
int64_t query_bytes(const FlashProblem& m, int rows) {
  int64_t width = chunks(m.depth(), m.bytes());
  if (m.staged) width = std::max(width, chunks(m.columns(), info(m.o.type).bits / 8));
  return width * rows * 128;
}

}  // namespace

FlashProblem::FlashProblem(const Region& r)
    : p(*r.graph, r.graph->node(r.nodes[0])),
      o(attention::make_output(r, kO)),
      narrow(is_narrow(p)),
      staged(leaves_in_boxes(*r.graph, o)),
      changed(changes_scores(p)),
      folded(narrow ? !changed : folds_scale(p)),
      cut(!narrow && (p.seq_len_kv.given() || p.cu_seq_len_kv.given() || p.k.pages || p.v.pages)),
      ragged(has_offsets(r)),
      paged(p.k.pages || p.v.pages) {}

int64_t FlashProblem::depth() const { return padded(p.n.d); }
int64_t FlashProblem::columns() const { return padded(p.n.dv); }
int64_t FlashProblem::columns_at_once() const {
  int64_t all = columns();
  return !narrow || all <= 128 ? all : all <= 224 ? all / 2 : all / 4;
}

Reason check_flash(const Region& r, const Device& d) {
  if (d.arch != 90) return Reason::no("the device has compute capability ", d.arch / 10, ".", d.arch % 10, ", not 9.0");
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  bool narrow = attention::is_forward(n) && is_fp8(attention::input(g, n, sdpa::slots(n).q)->dtype);
  if (Reason why = narrow ? check_narrow_forward(r) : check_forward(r); !why) return why;
  const attention::Problem p(g, n);
  // Wider rows are right on the emulated GPU, and on an H200 as long as sequences are short; with 16384 keys of 256
  // elements the kernel left its memory there, and why is not known.
  constexpr int64_t kProven = 128;
  if (narrow && std::max(p.n.d, p.n.dv) > kProven)
    return Reason::no("8-bit rows have ", std::max(p.n.d, p.n.dv), " elements, more than ", kProven);
  if (narrow && (p.k.offsets != kNone || p.v.offsets != kNone))
    return Reason::no("k or v of 8-bit numbers is packed: nobody knows how many values there are to turn");
  if (Reason why = check_sequence(g, p.q, "q"); !why) return why;
  if (Reason why = check_sequence(g, p.k, "k"); !why) return why;
  if (Reason why = check_sequence(g, p.v, "v"); !why) return why;
  if (Reason why = check_sizes(p.n); !why) return why;
  FlashProblem m(r);
  if (!flash_choices(m, d).empty()) return Reason::yes();
  if (narrow && !holds(m, 128, kLeastKeys))
    return Reason::no("registers do not hold ", p.n.dv, " columns of 8-bit numbers and what else a step needs");
  return Reason::no("pages of ", p.k.dims[2], " and ", p.v.dims[2], " steps divide no tile and are divided by none");
}

TensorBox flash_box(const attention::Sequences& x, int steps) {
  constexpr int64_t kAnyNumber = int64_t{1} << 31;  // of rows: offsets say how many there are
  TensorBox b = sequence_box(x, steps);
  if (x.offsets != kNone) {
    b.strides[1] = x.strides[2] * b.element_bytes;
    b.dims[1] = kAnyNumber, b.dims[3] = 1, b.strides[3] = 16;
  }
  for (size_t i : {size_t{2}, size_t{3}})
    if (b.strides[i] == 0) b.dims[i] = 1, b.strides[i] = 16;  // all heads or batches are the same
  return b;
}

int64_t turned_keys(const FlashProblem& m) { return ceil_div(m.p.n.skv, 16) * 16; }
int64_t turned_bytes(const FlashProblem& m) { return m.p.n.b * m.p.n.hv * m.p.n.dv * turned_keys(m); }
TensorBox turned_box(const FlashProblem& m, const FlashChoice& c) {
  const sdpa::Shape& n = m.p.n;
  TensorBox b;
  b.rank = 4, b.element_bytes = 1;
  b.swizzle = c.keys % 128 == 0 ? dev::Swizzle::bytes_128 : dev::Swizzle::bytes_64;
  b.dims = {turned_keys(m), n.dv, n.hv, n.b};
  b.strides = {1, b.dims[0], b.dims[0] * n.dv, b.dims[0] * n.dv * n.hv};
  b.box = {dev::row_bytes(b.swizzle), static_cast<int>(m.columns()) / c.cluster, 1, 1};
  return b;
}

int flash_steps(const attention::Sequences& x, int keys) {
  return x.pages ? static_cast<int>(std::min<int64_t>(keys, x.dims[2])) : keys;
}

int64_t flash_bytes(const FlashProblem& m, const FlashChoice& c) {
  return c.q_stages * query_bytes(m, c.rows) + c.stages * (key_bytes(m, c.keys) + value_bytes(m, c.keys)) +
         kBarrierBytes;
}

int64_t flash_row_tiles(const FlashProblem& m, const FlashChoice& c) {
  return ceil_div(m.p.n.sq, c.rows * c.rows_each());
}
int64_t flash_tiles(const FlashProblem& m, const FlashChoice& c) {
  return m.p.n.b * m.p.n.hq / c.heads_each() * flash_row_tiles(m, c);
}

std::vector<FlashChoice> flash_choices(const FlashProblem& m, const Device& d) {
  std::vector<FlashChoice> list;
  auto divides = [](const attention::Sequences& x, int keys) {
    return !x.pages || x.dims[2] % keys == 0 || keys % x.dims[2] == 0;
  };
  auto add = [&](FlashChoice c) {
    c.by_heads = m.p.group % c.cluster == 0;
    auto too_much = [&] { return flash_bytes(m, c) > d.shared_bytes; };
    if (too_much()) c.q_stages = 1;
    if (too_much()) return;
    while (c.stages < kMostStages && !too_much()) ++c.stages;
    if (too_much()) --c.stages;
    list.push_back(c);
  };
  for (int rows : {128, 192})
    for (int keys = kMostKeys; keys >= kLeastKeys; keys -= 16) {
      if (m.narrow && keys % 64 != 0) continue;
      if (!holds(m, rows, keys) || !divides(m.p.k, keys) || !divides(m.p.v, keys)) continue;
      for (int cluster : {2, 1})
        if (cluster == 1 || (!m.ragged && !m.paged)) add({rows, keys, cluster, kLeastStages, 2});
    }
  return list;
}

double flash_seconds(const FlashProblem& m, const FlashChoice& c, const Region& r, const Device& d) {
  const sdpa::Shape& n = m.p.n;
  auto real = [](int64_t v) { return static_cast<double>(v); };
  // Steps along the keys: all, or about as many as the band is wide.
  double keys = real(n.skv);
  if (m.p.options.right) keys = std::min(keys, real(n.skv) / 2 + real(*m.p.options.right));
  if (m.p.options.left && m.p.options.right)
    keys = std::min(keys, real(*m.p.options.left + *m.p.options.right) + c.rows);
  keys = std::max(keys, 1.0);
  // The ends of a band meet parts of steps.
  double steps = std::ceil(keys / c.keys);
  if (m.p.options.right) steps = (keys + (m.p.options.left ? 0 : c.rows / 2.0)) / c.keys + (m.p.options.left ? 1 : 0.5);
  double tiles = real(flash_tiles(m, c)), clusters = real(d.units / c.cluster);
  double waves = m.p.options.right ? std::max(1.0, tiles / clusters) : std::ceil(tiles / clusters);
  // Exponentials take as long as products where rows are short; smaller steps wait more often.
  double efficiency = m.columns() >= 192 ? 1.2 : m.columns() >= 96 ? 1.02 : 0.73;
  if (m.narrow) efficiency = m.columns() >= 96 ? 0.72 : 0.42;
  efficiency *= c.keys / (c.keys + 24.0);
  if (m.columns() >= 96 && c.keys > 160) efficiency *= 0.95;  // registers are all taken
  // Blocks of a cluster wait for each other. Keys and values that leave the cache before other tiles meet them cost
  // more.
  constexpr int64_t kStays = 6 << 20;
  if (c.cluster > 1)
    efficiency *= m.columns() >= 192 ? 0.88 : 0.95;
  else if (m.columns() < 192 && n.skv * (n.d + n.dv) * m.bytes() > kStays)
    efficiency *= 0.93;
  if (m.p.options.right && c.rows_each() > 1) steps += 0.5;  // that one of the blocks need not take
  if (c.rows == 192) efficiency *= m.columns() <= 64 ? 1.12 : 0.9;
  constexpr double kOverheadKeys = 256;  // that a tile's beginning and end take as long as
  double rate = (m.narrow ? d.rates.bits8 : d.rates.bits16) / d.units * efficiency;
  double step = 2.0 * c.rows * c.keys * real(m.depth() + m.columns()) / rate;
  double turning = m.narrow ? 2 * real(turned_bytes(m)) / d.bytes_per_second + d.step_seconds : 0;
  constexpr double kMemory = 0.93;  // of the bandwidth
  return std::max(region_limits(r, d).memory / kMemory, waves * (steps + kOverheadKeys / c.keys) * step) +
         d.step_seconds + turning;
}

}  // namespace tsr::cuda
