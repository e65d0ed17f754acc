// SPDX-License-Identifier: Apache-2.0
// Attention backward, tile by tile. Probabilities are computed again from the statistics; gradients of a block of
// queries stay in scratch memory while its keys go by, gradients of keys and values add up in the workspace. Heads that
// share keys belong to one task; where that leaves threads idle, the queries are split and each part adds up on its
// own, so that the order of additions never depends on timing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/thread_pool.hpp"
#include "engines/cpu/attention/scores.hpp"
#include "engines/cpu/attention/steps.hpp"
#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu::attention {
namespace {

using namespace sdpa::bwd;

// Rows that were taken out of the operands of products: see take_out().
struct Taken {
  int64_t q_count, do_count;
  int64_t q[kRows], grad_o[kRows], k[kKeys];
};

// Scratch memory of one thread. `turned` operands are as Problem::pack() makes them.
struct Worker {
  Lanes* lanes;
  Taken* taken;
  float *q_turned, *do_turned, *q, *grad_o, *dq;  // of a block of queries
  float *stats, *delta;                           // by lane
  float *p, *dp, *s, *keep, *dbias;               // tiles
  float *k, *v, *row;                             // rows of keys
  std::byte* scores;
  float* amax;  // of dq, dk, dv and dp
};

// What all threads share: sums of do o for each query; gradients of keys and values by split.
struct Shared {
  std::byte* workers;
  float *amax, *delta, *dk, *dv;
};

// Steps of the longest sequences.
struct Extent {
  int64_t sq, skv;
};

struct Run {
  Tensors tensors;
  Scores::Run scores;
  Extent extent;
  Shared shared;
  float score_scale;                    // of products of stored numbers
  float scale, descale_o, descale_do;   // of q k^T; of stored numbers
  float do_v;                           // of products of stored do and v
  float scale_s, scale_dp, dq, dk, dv;  // factors of roundings and results
  float scale_dq, scale_dk, scale_dv;
};

class BackwardStep : public Step {
 public:
  BackwardStep(const Region& r, const Graph& g, const Node& n, int threads);
  size_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const StepArgs& a) const override;

 private:
  enum Amax { kOfDq, kOfDk, kOfDv, kOfDp, kAmaxCount };

  Worker cut(Pieces& p) const;
  Shared cut_shared(Pieces& p, Extent e) const;
  Run start(const StepArgs& a, std::vector<std::byte>& own) const;
  Worker worker(const Run& run, int i) const;
  float* delta(const Run& run, int64_t b, int64_t h) const;
  // Sums of part `split` for one key.
  float* sum_k(const Run& run, int64_t split, int64_t b, int64_t h, int64_t key) const;
  float* sum_v(const Run& run, int64_t split, int64_t b, int64_t h, int64_t key) const;

  void find_delta(const Run& run, const Worker& w, int64_t b, int64_t h) const;
  void run_task(const Run& run, const Worker& w, int64_t task) const;
  void begin(const Run& run, const Worker& w, int64_t b, int64_t head, int64_t heads, int64_t row) const;
  void score_gradient(const Run& run, const Worker& w, int64_t first, int64_t keys, Rows k, Rows v, float factor) const;
  void visit(const Run& run, const Worker& w, int64_t split, int64_t first, int64_t keys) const;
  void write_queries(const Run& run, const Worker& w) const;
  void write_keys(const Run& run, const Worker& w, int64_t b, int64_t key) const;
  void sum_row(const Run& run, const Worker& w, const Sequences& x, bool values, int64_t b, int64_t h,
               int64_t key) const;
  void write_padding(const Run& run, const Worker& w, int64_t b, int64_t h) const;
  void bias_gradient(const Run& run, const Worker& w, int64_t task) const;
  void sink_gradient(const Run& run) const;
  void write_amax(const Run& run) const;

  Problem p_;
  Scores scores_;
  std::optional<ScoreMod> modifier_;
  int threads_;
  Sequences o_, do_, stats_, delta_, dq_, dk_, dv_, dbias_, dsink_, amax_[kAmaxCount];
  Numbers descale_o_, descale_do_, descale_dp_, scale_dq_, scale_dk_, scale_dv_, scale_dp_;
  bool narrow_k_, narrow_v_;  // products with k and v in bf16
  int64_t ld_, ldv_;          // of rows of d and dv elements in scratch memory
  int64_t unit_, units_;      // heads of a task, tasks of a batch
  int64_t splits_ = 1;
  size_t worker_bytes_ = 0, workspace_bytes_ = 0;
};

BackwardStep::BackwardStep(const Region& r, const Graph& g, const Node& n, int threads)
    : p_(g, n),
      scores_(g, n, p_),
      threads_(p_.workers(threads, 6 * p_.n.d + 4 * p_.n.dv)),
      o_(make_sequences(g, n.in[kO])),
      do_(make_sequences(g, n.in[kDo])),
      stats_(make_sequences(g, n.in[kStats])),
      dq_(make_output(r, kDq)),
      dk_(make_output(r, kDk)),
      dv_(make_output(r, kDv)),
      dbias_(make_output(r, kDbias)),
      dsink_(make_output(r, kDsink)),
      narrow_k_(p_.narrow(p_.q, p_.k)),
      narrow_v_(p_.narrow(do_, p_.v)),
      ld_(round_up(p_.n.d, tile().columns)),
      ldv_(round_up(p_.n.dv, tile().columns)) {
  if (sdpa::has(n, kDelta)) delta_ = make_sequences(g, n.in[kDelta]);
  for (int i = 0; i < kAmaxCount; ++i) amax_[i] = make_output(r, kAmaxDq + i);
  const auto& o = p_.options;
  if (o.score_mod_bwd) modifier_.emplace(g, n, *o.score_mod_bwd, o.score_mod->captures.size());
  auto numbers = [&](int slot) { return make_numbers(g, n, slot); };
  descale_o_ = numbers(kDescaleO), descale_do_ = numbers(kDescaleDo), descale_dp_ = numbers(kDescaleDp);
  scale_dq_ = numbers(kScaleDq), scale_dk_ = numbers(kScaleDk), scale_dv_ = numbers(kScaleDv);
  scale_dp_ = numbers(kScaleDp);
  unit_ = std::lcm(p_.n.hq / p_.n.hk, p_.n.hq / p_.n.hv);
  units_ = p_.n.hq / unit_;
  int64_t tasks = p_.n.b * units_, blocks = ceil_div(p_.group * p_.n.sq, kRows);
  if (tasks > 0 && tasks < 2 * threads_ && threads_ > 1)
    splits_ = std::clamp<int64_t>(ceil_div(2 * threads_, tasks), 1, std::max<int64_t>(blocks, 1));
  Pieces one(nullptr), all(nullptr);
  cut(one);
  worker_bytes_ = one.used();
  cut_shared(all, {p_.n.sq, p_.n.skv});
  workspace_bytes_ = all.used();
}

Worker BackwardStep::cut(Pieces& p) const {
  int64_t tile_floats = p_.key_tile * kRows, widest = std::max(ld_, ldv_);
  Worker w = {};
  w.lanes = p.take<Lanes>(1);
  w.taken = p.take<Taken>(1);
  w.q_turned = p.take(kRows * ld_);
  w.do_turned = p.take(kRows * ldv_);
  w.q = p.take(kRows * ld_);
  w.grad_o = p.take(kRows * ldv_);
  w.dq = p.take(kRows * ld_);
  w.stats = p.take(kRows);
  w.delta = p.take(kRows);
  w.p = p.take(std::max(tile_floats, kRows * widest));  // also rows before they are turned
  w.dp = p.take(tile_floats);
  w.s = p.take(modifier_ ? tile_floats : 0);
  w.keep = p.take(scores_.drops() ? tile_floats : 0);
  w.dbias = p.take(dbias_.given() ? tile_floats : 0);
  w.k = p.take(p_.key_tile * ld_);
  w.v = p.take(p_.key_tile * ldv_);
  w.row = p.take(std::max(2 * widest, p_.key_tile));
  w.scores = p.take<std::byte>(std::max(scores_.scratch_bytes(), modifier_ ? modifier_->scratch_bytes() : 0));
  return w;
}

Shared BackwardStep::cut_shared(Pieces& p, Extent e) const {
  const sdpa::Shape& n = p_.n;
  Shared y = {};
  y.workers = p.take<std::byte>(static_cast<int64_t>(worker_bytes_) * threads_);
  y.amax = p.take(int64_t{kAmaxCount} * threads_);
  y.delta = p.take(n.b * n.hq * e.sq);
  y.dk = p.take(splits_ * n.b * n.hk * e.skv * ld_);
  y.dv = p.take(splits_ * n.b * n.hv * e.skv * ldv_);
  return y;
}

Worker BackwardStep::worker(const Run& run, int i) const {
  Pieces pieces(run.shared.workers + static_cast<size_t>(i) * worker_bytes_);
  Worker w = cut(pieces);
  w.amax = run.shared.amax + i * kAmaxCount;
  return w;
}

float* BackwardStep::delta(const Run& run, int64_t b, int64_t h) const {
  return run.shared.delta + (b * p_.n.hq + h) * run.extent.sq;
}
float* BackwardStep::sum_k(const Run& run, int64_t split, int64_t b, int64_t h, int64_t key) const {
  return run.shared.dk + (((split * p_.n.b + b) * p_.n.hk + h) * run.extent.skv + key) * ld_;
}
float* BackwardStep::sum_v(const Run& run, int64_t split, int64_t b, int64_t h, int64_t key) const {
  return run.shared.dv + (((split * p_.n.b + b) * p_.n.hv + h) * run.extent.skv + key) * ldv_;
}

// The workspace is for sequences as long as the sizes say; longer ones take memory of their own.
Run BackwardStep::start(const StepArgs& a, std::vector<std::byte>& own) const {
  Tensors t = a.tensors;
  auto number = [&](const Numbers& x) { return static_cast<float>(x.read(t, 1)); };
  Extent extent = {p_.longest_q(t), p_.longest_kv(t)};
  std::byte* memory = a.workspace;
  if (extent.sq > p_.n.sq || extent.skv > p_.n.skv) {
    constexpr size_t kAlign = 64;
    Pieces counted(nullptr);
    cut_shared(counted, extent);
    own.resize(counted.used() + kAlign);
    memory = own.data() + (kAlign - reinterpret_cast<uintptr_t>(own.data()) % kAlign) % kAlign;
  }
  Pieces pieces(memory);
  Run run = {.tensors = t, .scores = scores_.start(t), .extent = extent, .shared = cut_shared(pieces, extent)};
  run.score_scale = p_.score_scale(t);
  run.scale = static_cast<float>(p_.options.scale * p_.scale.read(t, 1));
  run.descale_o = number(descale_o_), run.descale_do = number(descale_do_);
  run.do_v = run.descale_do * number(p_.descale_v);
  run.scale_s = number(p_.scale_s), run.scale_dp = number(scale_dp_);
  run.dq = number(descale_dp_) * number(p_.descale_k);
  run.dk = number(descale_dp_) * number(p_.descale_q);
  run.dv = number(p_.descale_s) * run.descale_do;
  run.scale_dq = number(scale_dq_), run.scale_dk = number(scale_dk_), run.scale_dv = number(scale_dv_);
  return run;
}

void BackwardStep::run(const StepArgs& a) const {
  std::vector<std::byte> own;
  Run run = start(a, own);
  std::fill_n(run.shared.amax, kAmaxCount * threads_, 0.0f);
  auto each = [&](int64_t count, int64_t grain, const auto& f) {
    parallel_for(count, grain, threads_, [&](int64_t first, int64_t last, int i) {
      Worker w = worker(run, i);
      for (int64_t x = first; x < last; ++x) f(w, x);
    });
  };
  const sdpa::Shape& n = p_.n;
  each(n.b * n.hq, 1, [&](const Worker& w, int64_t x) { find_delta(run, w, x / n.hq, x % n.hq); });
  each(n.b * units_ * splits_, 1, [&](const Worker& w, int64_t x) { run_task(run, w, x); });
  int64_t keys = run.extent.skv;
  each(n.b * keys, 64, [&](const Worker& w, int64_t x) { write_keys(run, w, x / keys, x % keys); });
  each(n.b * n.hq, 1, [&](const Worker& w, int64_t x) { write_padding(run, w, x / n.hq, x % n.hq); });
  if (dbias_.given()) {
    const Dims& d = dbias_.dims;
    int64_t tiles = ceil_div(d[2], kRows) * ceil_div(d[3], p_.key_tile);
    each(d[0] * d[1] * tiles, 1, [&](const Worker& w, int64_t x) { bias_gradient(run, w, x); });
  }
  if (dsink_.given()) sink_gradient(run);
  write_amax(run);
}

// Sum of do o for each query, times what dropout multiplies by where the caller gave it without. What he gave may end
// where the sizes say; longer sequences go on.
void BackwardStep::find_delta(const Run& run, const Worker& w, int64_t b, int64_t h) const {
  float *to = delta(run, b, h), *o = w.row, *grad_o = w.row + ldv_;
  for (int64_t query = 0; query < p_.length_q(run.tensors, b); ++query) {
    if (delta_.given() && (delta_.offsets != kNone || query < delta_.dims[2])) {
      read_row(delta_, run.tensors, b, h, query, to + query);
      to[query] *= run.scores.keep_factor;
      continue;
    }
    read_row(o_, run.tensors, b, h, query, o);
    read_row(do_, run.tensors, b, h, query, grad_o);
    float sum = 0;
    vectors().dots(1, 1, p_.n.dv, o, p_.n.dv, grad_o, p_.n.dv, &sum, 1, {}, {});
    to[query] = sum * run.descale_o * run.descale_do;
  }
}

// Everything about a block of queries that does not depend on keys. A row without anything to attend to attends to
// nothing here either.
void BackwardStep::begin(const Run& run, const Worker& w, int64_t b, int64_t head, int64_t heads, int64_t row) const {
  Lanes& lanes = *w.lanes;
  Tensors t = run.tensors;
  p_.fill(lanes, t, b, head, heads, row);
  auto pack = [&](const Sequences& x, bool narrow, float factor, float* to) {
    if (narrow && !lanes.few())
      p_.pack_pairs(x, lanes, t, reinterpret_cast<uint32_t*>(to));
    else
      p_.pack(x, lanes, t, factor, w.p, to);
  };
  pack(p_.q, narrow_k_, run.score_scale, w.q_turned);
  pack(do_, narrow_v_, run.do_v, w.do_turned);
  float unit = p_.options.stats_log2 ? static_cast<float>(M_LN2) : 1.0f;
  for (int64_t i = 0; i < lanes.width; ++i) {
    if (i < lanes.count) {
      read_row(p_.q, t, b, lanes.head[i], lanes.query[i], w.q + i * ld_);
      read_row(do_, t, b, lanes.head[i], lanes.query[i], w.grad_o + i * ldv_);
    }
    read_row(stats_, t, b, lanes.head[i], lanes.query[i], w.stats + i);
    w.stats[i] *= unit;
    w.delta[i] = delta(run, b, lanes.head[i])[lanes.query[i]];
    if (w.stats[i] != -INFINITY) continue;
    lanes.first[i] = lanes.last[i] = lanes.inner_hi = 0;
    w.stats[i] = 0;
  }
  Rows q = {w.q, ld_}, grad_o = {w.grad_o, ldv_};
  w.taken->q_count = take_out(q, lanes.count, p_.n.d, w.q, ld_, w.taken->q);
  w.taken->do_count = take_out(grad_o, lanes.count, p_.n.dv, w.grad_o, ldv_, w.taken->grad_o);
}

void BackwardStep::run_task(const Run& run, const Worker& w, int64_t task) const {
  const sdpa::Shape& n = p_.n;
  int64_t split = task % splits_, b = task / splits_ / units_, first_head = task / splits_ % units_ * unit_;
  for (int64_t h = 0; h < unit_ * n.hk / n.hq; ++h)
    std::fill_n(sum_k(run, split, b, first_head * n.hk / n.hq + h, 0), run.extent.skv * ld_, 0.0f);
  for (int64_t h = 0; h < unit_ * n.hv / n.hq; ++h)
    std::fill_n(sum_v(run, split, b, first_head * n.hv / n.hq + h, 0), run.extent.skv * ldv_, 0.0f);
  int64_t rows = p_.group * p_.length_q(run.tensors, b), step = p_.key_tile;
  for (int64_t head = first_head; head < first_head + unit_; head += p_.group)
    for (int64_t row = split * kRows; row < rows; row += splits_ * kRows) {
      begin(run, w, b, head, p_.group, row);
      std::fill_n(w.dq, kRows * ld_, 0.0f);
      for (int64_t first = w.lanes->lo; first < w.lanes->hi; first = round_up(first + 1, step)) {
        int64_t keys = std::min(w.lanes->hi, round_up(first + 1, step)) - first;
        if (!scores_.hides(run.scores, *w.lanes, first, keys)) visit(run, w, split, first, keys);
      }
      write_queries(run, w);
    }
}

// p becomes the probabilities before dropout, dp the gradient of what score_mod gives, times `factor`.
void BackwardStep::score_gradient(const Run& run, const Worker& w, int64_t first, int64_t keys, Rows k, Rows v,
                                  float factor) const {
  const Vectors& loops = vectors();
  const Lanes& lanes = *w.lanes;
  auto product = [&](const Sequences& x, int64_t head, Rows rows, bool narrow, float scale, const float* y, float* to) {
    int64_t depth = x.dims[3];
    if (lanes.few())
      loops.dots(keys, lanes.count, depth, rows.data, rows.ld, y, depth, to, lanes.width, {}, {});
    else if (narrow)
      p_.multiply_pairs(x, lanes, run.tensors, head, first, keys, reinterpret_cast<const uint32_t*>(y), scale, to);
    else
      tile().multiply_rows(keys, lanes.width, depth, rows.data, rows.ld, y, lanes.width, to, lanes.width, false);
  };
  int64_t n = keys * lanes.width;
  alignas(64) float ones[kRows];
  std::fill_n(ones, kRows, 1.0f);
  product(p_.k, lanes.k_head, k, narrow_k_, run.score_scale, w.q_turned, w.p);
  if (modifier_) std::copy_n(w.p, n, w.s);
  scores_.finish(run.scores, lanes, first, keys, w.p, w.scores);
  loops.probabilities(keys, lanes.width, w.p, w.stats, ones);
  product(p_.v, lanes.v_head, v, narrow_v_, run.do_v, w.do_turned, w.dp);
  if (scores_.drops()) {
    scores_.keep(run.scores, lanes, first, keys, w.keep, w.scores);
    loops.scale(n, w.keep, run.scores.keep_factor);
    loops.multiply(n, w.dp, w.keep);
  }
  loops.gradient(keys, lanes.width, w.p, w.dp, w.delta, factor);
}

void BackwardStep::visit(const Run& run, const Worker& w, int64_t split, int64_t first, int64_t keys) const {
  const Vectors& loops = vectors();
  const Tile& matrix = tile();
  const Lanes& lanes = *w.lanes;
  const sdpa::Shape& n = p_.n;
  Rows k = read_rows(p_.k, run.tensors, lanes.b, lanes.k_head, first, keys, true, w.k, ld_);
  Rows v = {};
  if (!narrow_v_ || lanes.few()) v = read_rows(p_.v, run.tensors, lanes.b, lanes.v_head, first, keys, false, w.v, ldv_);
  score_gradient(run, w, first, keys, k, v, modifier_ ? 1.0f : run.scale);
  int64_t size = keys * lanes.width;
  if (modifier_) {
    modifier_->apply(run.tensors, lanes, first, keys, {w.dp, w.s}, w.dp, w.scores);
    loops.scale(size, w.dp, run.scale);
    for (int64_t i = 0; i < size; ++i) w.dp[i] = w.p[i] == 0 ? 0.0f : w.dp[i];  // what was masked stays 0
  }
  if (scores_.drops()) loops.multiply(size, w.p, w.keep);
  for (int64_t j = 0; amax_[kOfDp].given() && j < keys; ++j) note(w.amax[kOfDp], lanes.count, w.dp + j * lanes.width);
  if (p_.rounds_to_fp8) {
    loops.scale(size, w.p, run.scale_s);
    loops.round_fp8(size, w.p, p_.v.type);
    if (is_fp8(do_.type)) {
      loops.scale(size, w.dp, run.scale_dp);
      loops.round_fp8(size, w.dp, do_.type);
    }
  }
  float *dk = sum_k(run, split, lanes.b, lanes.k_head, first), *dv = sum_v(run, split, lanes.b, lanes.v_head, first);
  matrix.multiply_rows(keys, n.dv, lanes.count, w.p, lanes.width, w.grad_o, ldv_, dv, ldv_, true);
  matrix.multiply_rows(keys, n.d, lanes.count, w.dp, lanes.width, w.q, ld_, dk, ld_, true);
  int64_t k_count = take_out(k, keys, n.d, w.k, ld_, w.taken->k);
  matrix.multiply(lanes.count, n.d, keys, w.dp, lanes.width, k.data, k.ld, w.dq, ld_, true);
  for (int64_t x = 0; x < k_count; ++x) {
    int64_t key = w.taken->k[x], at = key * lanes.width;
    read_row(p_.k, run.tensors, lanes.b, lanes.k_head, first + key, w.row);
    put_back(lanes.count, w.p + at, w.dp + at, 1, w.row, n.d, w.dq, ld_);
  }
  for (int64_t x = 0; x < w.taken->q_count; ++x) {
    int64_t i = w.taken->q[x];
    read_row(p_.q, run.tensors, lanes.b, lanes.head[i], lanes.query[i], w.row);
    put_back(keys, w.p + i, w.dp + i, lanes.width, w.row, n.d, dk, ld_);
  }
  for (int64_t x = 0; x < w.taken->do_count; ++x) {
    int64_t i = w.taken->grad_o[x];
    read_row(do_, run.tensors, lanes.b, lanes.head[i], lanes.query[i], w.row);
    put_back(keys, w.p + i, w.p + i, lanes.width, w.row, n.dv, dv, ldv_);
  }
}

void BackwardStep::write_queries(const Run& run, const Worker& w) const {
  const Lanes& lanes = *w.lanes;
  for (int64_t i = 0; i < lanes.count; ++i) {
    float* row = w.dq + i * ld_;
    vectors().scale(p_.n.d, row, run.dq);
    if (amax_[kOfDq].given()) note(w.amax[kOfDq], p_.n.d, row);
    vectors().scale(p_.n.d, row, run.scale_dq);
    if (dq_.given()) write_row(dq_, run.tensors, lanes.b, lanes.head[i], lanes.query[i], row);
  }
}

void BackwardStep::write_keys(const Run& run, const Worker& w, int64_t b, int64_t key) const {
  for (int64_t h = 0; h < p_.n.hk; ++h) sum_row(run, w, dk_, false, b, h, key);
  for (int64_t h = 0; h < p_.n.hv; ++h) sum_row(run, w, dv_, true, b, h, key);
}

// Parts add up in their order. Keys past the end of their sequence have sums of 0; ragged results do not hold them.
void BackwardStep::sum_row(const Run& run, const Worker& w, const Sequences& x, bool values, int64_t b, int64_t h,
                           int64_t key) const {
  auto part = [&](int64_t split) { return values ? sum_v(run, split, b, h, key) : sum_k(run, split, b, h, key); };
  int64_t n = values ? p_.n.dv : p_.n.d;
  float* y = part(0);
  for (int64_t s = 1; s < splits_; ++s) vectors().add(n, y, part(s));
  vectors().scale(n, y, values ? run.dv : run.dk);
  Amax which = values ? kOfDv : kOfDk;
  if (amax_[which].given()) note(w.amax[which], n, y);
  vectors().scale(n, y, values ? run.scale_dv : run.scale_dk);
  bool exists = x.offsets == kNone || key < p_.length_kv(run.tensors, b);
  if (x.given() && exists) write_row(x, run.tensors, b, h, key, y);
}

void BackwardStep::write_padding(const Run& run, const Worker& w, int64_t b, int64_t h) const {
  if (!dq_.given() || dq_.offsets != kNone) return;
  std::fill_n(w.row, p_.n.d, 0.0f);
  for (int64_t query = p_.length_q(run.tensors, b); query < p_.n.sq; ++query)
    write_row(dq_, run.tensors, b, h, query, w.row);
}

// One tile of dbias from all scores it was added to: products are made again, so that no two tasks share a result.
void BackwardStep::bias_gradient(const Run& run, const Worker& w, int64_t task) const {
  const sdpa::Shape& n = p_.n;
  const Dims& d = dbias_.dims;
  int64_t key_tiles = ceil_div(d[3], p_.key_tile), query_tiles = ceil_div(d[2], kRows);
  int64_t key_tile = task % key_tiles, query_tile = task / key_tiles % query_tiles;
  int64_t h = task / key_tiles / query_tiles % d[1], b = task / key_tiles / query_tiles / d[1];
  int64_t queries = std::min(kRows, d[2] - query_tile * kRows), key0 = key_tile * p_.key_tile;
  int64_t keys = std::min(p_.key_tile, d[3] - key0);
  auto range = [](int64_t size, int64_t at, int64_t full) {
    return size == 1 ? std::pair(int64_t{0}, full) : std::pair(at, at + 1);
  };
  float* sum = w.dbias;  // [keys][queries]
  std::fill_n(sum, keys * queries, 0.0f);
  auto add = [&](int64_t first, int64_t count) {
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < w.lanes->count; ++i)
        sum[(d[3] == 1 ? 0 : first + k - key0) * queries + (d[2] == 1 ? 0 : i)] += w.dp[k * w.lanes->width + i];
  };
  auto [b0, b1] = range(d[0], b, n.b);
  auto [h0, h1] = range(d[1], h, n.hq);
  for (int64_t batch = b0; batch < b1; ++batch)
    for (int64_t head = h0; head < h1; ++head) {
      int64_t length = p_.length_q(run.tensors, batch);
      int64_t row = d[2] == 1 ? 0 : query_tile * kRows, rows = d[2] == 1 ? length : std::min(length, row + kRows);
      for (; row < rows; row += kRows) {
        begin(run, w, batch, head, 1, row);
        int64_t lo = std::max(w.lanes->lo, d[3] == 1 ? 0 : key0);
        int64_t hi = std::min(w.lanes->hi, d[3] == 1 ? n.skv : key0 + keys);
        for (int64_t first = lo; first < hi; first = round_up(first + 1, p_.key_tile)) {
          int64_t count = std::min(hi, round_up(first + 1, p_.key_tile)) - first;
          Rows k = read_rows(p_.k, run.tensors, batch, w.lanes->k_head, first, count, false, w.k, ld_);
          Rows v = read_rows(p_.v, run.tensors, batch, w.lanes->v_head, first, count, false, w.v, ldv_);
          score_gradient(run, w, first, count, k, v, 1);
          add(first, count);
        }
      }
    }
  for (int64_t i = 0; i < queries; ++i) {
    for (int64_t k = 0; k < keys; ++k) w.row[k] = sum[k * queries + i];
    write_part(dbias_, run.tensors, b, h, query_tile * kRows + i, key0, keys, w.row);
  }
}

// The sink has probability exp(sink - stats) and no value.
void BackwardStep::sink_gradient(const Run& run) const {
  float unit = p_.options.stats_log2 ? static_cast<float>(M_LN2) : 1.0f;
  parallel_for(p_.n.hq, 1, threads_, [&](int64_t first, int64_t last, int) {
    for (int64_t h = first; h < last; ++h) {
      double sum = 0;
      float sink = p_.sink_of(run.tensors, h);
      for (int64_t b = 0; b < p_.n.b; ++b)
        for (int64_t query = 0; query < p_.length_q(run.tensors, b); ++query) {
          float stats = 0;
          read_row(stats_, run.tensors, b, h, query, &stats);
          if (stats != -INFINITY) sum -= std::exp(sink - stats * unit) * delta(run, b, h)[query];
        }
      auto y = static_cast<float>(sum);
      write_row(dsink_, run.tensors, 0, h, 0, &y);
    }
  });
}

void BackwardStep::write_amax(const Run& run) const {
  const float* amax = run.shared.amax;
  for (int which = 0; which < kAmaxCount; ++which) {
    if (!amax_[which].given()) continue;
    float y = 0;
    for (int i = 0; i < threads_; ++i)
      if (float x = amax[i * kAmaxCount + which]; !(x <= y)) y = x;
    write_row(amax_[which], run.tensors, 0, 0, 0, &y);
  }
}

}  // namespace

std::unique_ptr<Step> make_backward(const Region& r, int threads) {
  return std::make_unique<BackwardStep>(r, *r.graph, r.graph->node(r.nodes[0]), threads);
}

}  // namespace tsr::cpu::attention
