// SPDX-License-Identifier: Apache-2.0
// Attention forward, tile by tile: scores of a block of queries with a block of keys, the running maximum and sum of
// the softmax, and the products with the values added up. Memory beyond inputs and outputs does not grow with the
// sequences.
//
// A task is a few blocks of queries that share keys, which are converted once for all of them. Where there are too few
// tasks for the threads (generating token by token), the keys of a task are split and the parts combined afterwards.
#include <algorithm>
#include <cmath>

#include "base/thread_pool.hpp"
#include "engines/cpu/attention/scores.hpp"
#include "engines/cpu/attention/steps.hpp"
#include "engines/cpu/attention/vectors.hpp"
#include "engines/cpu/product/tile.hpp"

namespace tsr::cpu::attention {
namespace {

using namespace sdpa::fwd;

constexpr int64_t kBlocksOfTask = 4;   // of queries, where keys need conversion
constexpr int64_t kTasksOfThread = 4;  // enough for threads to finish together
constexpr int64_t kLeastKeys = 512;    // worth a split

// What a walk over the keys does with each tile.
enum class Pass : uint8_t {
  online,    // running softmax and weighted sum at once
  softmax,   // maximum and sum only
  weighted,  // weighted sum with the final probabilities, where these are rounded or measured
};

// The running softmax of a block of queries.
struct Block {
  Lanes lanes;
  float *q, *o, *max, *sum;
};

// Scratch memory of one thread.
struct Worker {
  Block* blocks;
  float *of_blocks, *s, *k, *v, *keep, *factor, *row;
  int64_t* special;  // keys of the tile whose values were taken out
  std::byte* scores;
  float *amax_s, *amax_o;
};

// What all threads share.
struct Shared {
  std::byte* workers;
  float *amax, *partials;
};

// How the work is cut: blocks of queries of a group of heads, and parts of their keys.
struct Cut {
  int64_t tasks_of_group = 0, tasks = 0, splits = 1;
};

struct Run {
  Tensors tensors;
  Scores::Run scores;
  Shared shared;
  float scale, scale_s, result_scale, scale_o;
  Cut cut;
};

// Values of a tile, and how many of them were taken out because they are not finite.
struct Values {
  Rows rows;
  int64_t special;
};

class ForwardStep : public Step {
 public:
  ForwardStep(const Region& r, const Graph& g, const Node& n, int threads);
  size_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const StepArgs& a) const override;

 private:
  struct Task {
    int64_t b, g, row, blocks;
  };

  Cut cut_rows(int64_t queries) const;
  Worker cut(Pieces& p) const;
  Shared cut_shared(Pieces& p) const;
  Worker worker(const Run& run, int i) const;
  int64_t state_floats() const { return kRows * (columns_ + 2); }  // of a block: o, max and sum, one after the other
  float* partial(const Run& run, int64_t part) const;
  bool narrow(const Block& b) const { return narrow_ && !b.lanes.few(); }
  bool two_passes() const { return p_.rounds_to_fp8 || amax_s_.given(); }

  void run_task(const Run& run, const Worker& w, int64_t part) const;
  Task start(const Run& run, const Worker& w, int64_t task) const;
  void reset(const Run& run, Block& b, bool with_sink) const;
  void walk(const Run& run, const Worker& w, const Task& task, int64_t split, Pass pass) const;
  void visit(const Run& run, const Worker& w, Block& b, int64_t first, int64_t keys, Rows k, Values& v,
             Pass pass) const;
  void drop(const Run& run, const Worker& w, const Block& b, int64_t first, int64_t keys, float factor) const;
  void accumulate(const Run& run, const Worker& w, Block& b, int64_t first, int64_t keys, Values v) const;
  void combine(const Run& run, const Worker& w, int64_t task) const;
  void write(const Run& run, const Worker& w, const Block& b) const;
  void write_statistics(const Run& run, int64_t b, int64_t h, int64_t query, float max, float sum) const;
  void write_rest(const Run& run, const Worker& w, int64_t b, int64_t h) const;
  void write_amax(const Run& run) const;

  Problem p_;
  Scores scores_;
  int threads_;
  Sequences o_, stats_, max_, sum_, dump_, amax_s_, amax_o_;
  Numbers scale_o_;
  bool narrow_;      // products of q and k in bf16
  int64_t columns_;  // of o and v in scratch memory
  int64_t blocks_of_task_ = 1;
  Cut cut_;
  size_t worker_bytes_ = 0, workspace_bytes_ = 0;
};

ForwardStep::ForwardStep(const Region& r, const Graph& g, const Node& n, int threads)
    : p_(g, n),
      scores_(g, n, p_),
      threads_(p_.workers(threads, 2 * (p_.n.d + p_.n.dv))),
      o_(make_output(r, kO)),
      stats_(make_output(r, kStats)),
      max_(make_output(r, kMax)),
      sum_(make_output(r, kSumExp)),
      dump_(make_output(r, kRngDump)),
      amax_s_(make_output(r, kAmaxS)),
      amax_o_(make_output(r, kAmaxO)),
      scale_o_(make_numbers(g, n, kScaleO)),
      narrow_(p_.narrow(p_.q, p_.k)),
      columns_(round_up(p_.n.dv, tile().columns)) {
  int64_t rows = p_.group * p_.n.sq, blocks = ceil_div(rows, kRows), heads = p_.n.b * p_.groups();
  int64_t wanted = kTasksOfThread * threads_;
  if (p_.k.type != DType::f32 || p_.v.type != DType::f32)
    blocks_of_task_ = std::clamp<int64_t>(heads * blocks / wanted, 1, kBlocksOfTask);
  cut_ = cut_rows(p_.n.sq);
  if (cut_.tasks > 0 && cut_.tasks < wanted && threads_ > 1 && !two_passes())
    cut_.splits = std::clamp<int64_t>(p_.n.skv / kLeastKeys, 1, ceil_div(wanted, cut_.tasks));
  Pieces one(nullptr), all(nullptr);
  cut(one);
  worker_bytes_ = one.used();
  cut_shared(all);
  workspace_bytes_ = all.used();
}

Cut ForwardStep::cut_rows(int64_t queries) const {
  int64_t blocks = ceil_div(p_.group * queries, kRows), tasks = ceil_div(blocks, blocks_of_task_);
  return {tasks, p_.n.b * p_.groups() * tasks, 1};
}

Worker ForwardStep::cut(Pieces& p) const {
  const sdpa::Shape& n = p_.n;
  int64_t tile_floats = p_.key_tile * kRows;
  Worker w = {};
  w.blocks = p.take<Block>(blocks_of_task_);
  w.of_blocks = p.take(blocks_of_task_ * (kRows * n.d + state_floats()));
  w.s = p.take(std::max(tile_floats, kRows * n.d));  // also rows of q before they are turned
  w.k = p.take(p_.key_tile * n.d);
  w.v = p.take(p_.key_tile * columns_);
  w.keep = p.take(scores_.drops() ? tile_floats : 0);
  w.factor = p.take(kRows);
  w.row = p.take(std::max(n.dv, p_.key_tile));
  w.special = p.take<int64_t>(p_.key_tile);
  w.scores = p.take<std::byte>(scores_.scratch_bytes());
  return w;
}

Shared ForwardStep::cut_shared(Pieces& p) const {
  Shared y = {};
  y.workers = p.take<std::byte>(static_cast<int64_t>(worker_bytes_) * threads_);
  y.amax = p.take(2 * threads_);
  y.partials = p.take(cut_.splits > 1 ? cut_.tasks * cut_.splits * blocks_of_task_ * state_floats() : 0);
  return y;
}

Worker ForwardStep::worker(const Run& run, int i) const {
  Pieces pieces(run.shared.workers + static_cast<size_t>(i) * worker_bytes_);
  Worker w = cut(pieces);
  w.amax_s = run.shared.amax + 2 * i;
  w.amax_o = w.amax_s + 1;
  float* at = w.of_blocks;
  for (int64_t b = 0; b < blocks_of_task_; ++b, at += state_floats()) {
    Block& y = w.blocks[b];
    y.q = at;
    at += kRows * p_.n.d;
    y.o = at;
    y.max = y.o + kRows * columns_;
    y.sum = y.max + kRows;
  }
  return w;
}

float* ForwardStep::partial(const Run& run, int64_t part) const {
  return run.shared.partials + part * blocks_of_task_ * state_floats();
}

void ForwardStep::run(const StepArgs& a) const {
  Tensors t = a.tensors;
  auto number = [&](const Numbers& x) { return static_cast<float>(x.read(t, 1)); };
  Pieces pieces(a.workspace);
  Run run = {t, scores_.start(t), cut_shared(pieces), p_.score_scale(t), number(p_.scale_s), 1, number(scale_o_), {}};
  run.result_scale = number(p_.descale_v) * number(p_.descale_s);
  // Sequences that are longer than the sizes say are cut anew; the workspace has no room for parts of their keys.
  int64_t longest = p_.longest_q(t);
  run.cut = longest > p_.n.sq ? cut_rows(longest) : cut_;
  std::fill_n(run.shared.amax, 2 * threads_, 0.0f);
  parallel_for(run.cut.tasks * run.cut.splits, 1, threads_, [&](int64_t first, int64_t last, int i) {
    Worker w = worker(run, i);
    for (int64_t part = first; part < last; ++part) run_task(run, w, part);
  });
  if (run.cut.splits > 1)
    parallel_for(run.cut.tasks, 1, threads_, [&](int64_t first, int64_t last, int i) {
      Worker w = worker(run, i);
      for (int64_t task = first; task < last; ++task) combine(run, w, task);
    });
  bool padded = p_.seq_len_q.given() || p_.cu_seq_len_q.given();
  if (padded || dump_.given())
    parallel_for(p_.n.b * p_.n.hq, 1, threads_, [&](int64_t first, int64_t last, int i) {
      Worker w = worker(run, i);
      for (int64_t x = first; x < last; ++x) write_rest(run, w, x / p_.n.hq, x % p_.n.hq);
    });
  write_amax(run);
}

// The last queries come first: under a causal mask they have the most to do.
ForwardStep::Task ForwardStep::start(const Run& run, const Worker& w, int64_t task) const {
  int64_t count = run.cut.tasks_of_group, group = task / count, block = count - 1 - task % count;
  Task y = {group / p_.groups(), group % p_.groups(), block * blocks_of_task_ * kRows, 0};
  int64_t rows = p_.group * p_.length_q(run.tensors, y.b) - y.row;
  y.blocks = std::clamp<int64_t>(ceil_div(std::max<int64_t>(rows, 0), kRows), 0, blocks_of_task_);
  for (int64_t i = 0; i < y.blocks; ++i)
    p_.fill(w.blocks[i].lanes, run.tensors, y.b, y.g * p_.group, p_.group, y.row + i * kRows);
  return y;
}

void ForwardStep::reset(const Run& run, Block& b, bool with_sink) const {
  std::fill_n(b.o, b.lanes.count * columns_, 0.0f);
  for (int64_t i = 0; i < b.lanes.width; ++i) {
    b.max[i] = with_sink ? p_.sink_of(run.tensors, b.lanes.head[i]) : -INFINITY;
    b.sum[i] = b.max[i] == -INFINITY ? 0.0f : 1.0f;
  }
}

void ForwardStep::run_task(const Run& run, const Worker& w, int64_t part) const {
  int64_t split = part % run.cut.splits;
  Task task = start(run, w, part / run.cut.splits);
  for (int64_t i = 0; i < task.blocks; ++i) {
    Block& b = w.blocks[i];
    if (narrow(b))
      p_.pack_pairs(p_.q, b.lanes, run.tensors, reinterpret_cast<uint32_t*>(b.q));
    else
      p_.pack(p_.q, b.lanes, run.tensors, run.scale, w.s, b.q);
    reset(run, w.blocks[i], split == 0);
  }
  walk(run, w, task, split, two_passes() ? Pass::softmax : Pass::online);
  if (two_passes()) walk(run, w, task, split, Pass::weighted);
  for (int64_t i = 0; i < task.blocks; ++i) {
    Block& b = w.blocks[i];
    if (run.cut.splits == 1)
      write(run, w, b);
    else
      std::copy_n(b.o, state_floats(), partial(run, part) + i * state_floats());
  }
}

// Tiles start at multiples of their size, so that blocks of a mask lie in one.
void ForwardStep::walk(const Run& run, const Worker& w, const Task& task, int64_t split, Pass pass) const {
  if (task.blocks == 0) return;
  int64_t lo = kFar, hi = 0, step = p_.key_tile;
  for (int64_t i = 0; i < task.blocks; ++i) {
    lo = std::min(lo, w.blocks[i].lanes.lo);
    hi = std::max(hi, w.blocks[i].lanes.hi);
  }
  int64_t start = lo / step * step, part = round_up(ceil_div(std::max<int64_t>(hi - start, 0), run.cut.splits), step);
  int64_t from = std::max(lo, start + split * part), to = std::min(hi, start + (split + 1) * part);
  for (int64_t first = from; first < to; first = round_up(first + 1, step)) {
    int64_t keys = std::min(to, round_up(first + 1, step)) - first;
    Rows k = {};
    Values v = {};
    for (int64_t i = 0; i < task.blocks; ++i) {
      Block& b = w.blocks[i];
      if (first >= b.lanes.hi || first + keys <= b.lanes.lo || scores_.hides(run.scores, b.lanes, first, keys))
        continue;
      if (!k.data && !narrow(b))
        k = read_rows(p_.k, run.tensors, b.lanes.b, b.lanes.k_head, first, keys, false, w.k, p_.n.d);
      visit(run, w, b, first, keys, k, v, pass);
    }
  }
}

void ForwardStep::visit(const Run& run, const Worker& w, Block& b, int64_t first, int64_t keys, Rows k, Values& v,
                        Pass pass) const {
  const Vectors& loops = vectors();
  const Lanes& lanes = b.lanes;
  if (narrow(b))
    p_.multiply_pairs(p_.k, lanes, run.tensors, lanes.k_head, first, keys, reinterpret_cast<const uint32_t*>(b.q),
                      run.scale, w.s);
  else if (lanes.few())
    loops.dots(keys, lanes.count, p_.n.d, k.data, k.ld, b.q, p_.n.d, w.s, lanes.width,
               soon(p_.k, run.tensors, lanes.b, lanes.k_head, first + keys, std::min(keys, lanes.hi - first - keys)),
               soon(p_.v, run.tensors, lanes.b, lanes.v_head, first, keys));
  else
    tile().multiply_rows(keys, lanes.width, p_.n.d, k.data, k.ld, b.q, lanes.width, w.s, lanes.width, false);
  scores_.finish(run.scores, lanes, first, keys, w.s, w.scores);
  if (pass == Pass::weighted) {
    for (int64_t i = 0; i < lanes.width; ++i) w.factor[i] = b.sum[i] == 0 ? 0.0f : 1.0f / b.sum[i];
    loops.probabilities(keys, lanes.width, w.s, b.max, w.factor);
    if (scores_.drops()) drop(run, w, b, first, keys, run.scores.keep_factor);
    for (int64_t j = 0; amax_s_.given() && j < keys; ++j) note(*w.amax_s, lanes.count, w.s + j * lanes.width);
    if (p_.rounds_to_fp8) {
      loops.scale(keys * lanes.width, w.s, run.scale_s);
      loops.round_fp8(keys * lanes.width, w.s, p_.v.type);
    }
  } else {
    bool changed = loops.softmax(keys, lanes.width, w.s, b.max, b.sum, w.factor);
    if (pass == Pass::softmax) return;
    if (changed) loops.scale_rows(lanes.count, columns_, b.o, columns_, w.factor);
    if (scores_.drops()) drop(run, w, b, first, keys, 1);
  }
  if (!v.rows.data) {
    v.rows = read_rows(p_.v, run.tensors, lanes.b, lanes.v_head, first, keys, true, w.v, columns_);
    v.special = take_out(v.rows, keys, p_.n.dv, w.v, columns_, w.special);
  }
  accumulate(run, w, b, first, keys, v);
}

void ForwardStep::drop(const Run& run, const Worker& w, const Block& b, int64_t first, int64_t keys,
                       float factor) const {
  int64_t n = keys * b.lanes.width;
  scores_.keep(run.scores, b.lanes, first, keys, w.keep, w.scores);
  vectors().multiply(n, w.s, w.keep);
  if (factor != 1) vectors().scale(n, w.s, factor);
}

void ForwardStep::accumulate(const Run& run, const Worker& w, Block& b, int64_t first, int64_t keys, Values v) const {
  const Lanes& lanes = b.lanes;
  tile().multiply(lanes.count, p_.n.dv, keys, w.s, lanes.width, v.rows.data, v.rows.ld, b.o, columns_, true);
  for (int64_t x = 0; x < v.special; ++x) {
    int64_t k = w.special[x];
    read_row(p_.v, run.tensors, lanes.b, lanes.v_head, first + k, w.row);
    const float* p = w.s + k * lanes.width;
    put_back(lanes.count, p, p, 1, w.row, p_.n.dv, b.o, columns_);
  }
}

// Parts of the keys add up once they are scaled to the same maximum.
void ForwardStep::combine(const Run& run, const Worker& w, int64_t task) const {
  Task rows = start(run, w, task);
  for (int64_t i = 0; i < rows.blocks; ++i) {
    Block& b = w.blocks[i];
    for (int64_t lane = 0; lane < b.lanes.count; ++lane) {
      b.max[lane] = -INFINITY, b.sum[lane] = 0;
      std::fill_n(b.o + lane * columns_, columns_, 0.0f);
      auto part = [&](int64_t split) { return partial(run, task * run.cut.splits + split) + i * state_floats(); };
      for (int64_t s = 0; s < run.cut.splits; ++s)
        b.max[lane] = std::max(b.max[lane], part(s)[kRows * columns_ + lane]);
      if (b.max[lane] == -INFINITY) continue;
      for (int64_t s = 0; s < run.cut.splits; ++s) {
        const float *o = part(s), *max = o + kRows * columns_, *sum = max + kRows;
        float factor = std::exp(max[lane] - b.max[lane]);
        b.sum[lane] += sum[lane] * factor;
        for (int64_t j = 0; j < p_.n.dv; ++j) b.o[lane * columns_ + j] += o[lane * columns_ + j] * factor;
      }
    }
    write(run, w, b);
  }
}

void ForwardStep::write(const Run& run, const Worker& w, const Block& b) const {
  const Lanes& lanes = b.lanes;
  const Vectors& loops = vectors();
  for (int64_t i = 0; i < lanes.count; ++i) {
    float* o = b.o + i * columns_;
    float factor = run.result_scale;
    if (!two_passes()) factor *= b.sum[i] == 0 ? 0.0f : run.scores.keep_factor / b.sum[i];
    loops.scale(p_.n.dv, o, factor);
    if (amax_o_.given()) note(*w.amax_o, p_.n.dv, o);
    if (run.scale_o != 1) loops.scale(p_.n.dv, o, run.scale_o);
    if (o_.given()) write_row(o_, run.tensors, lanes.b, lanes.head[i], lanes.query[i], o);
    write_statistics(run, lanes.b, lanes.head[i], lanes.query[i], b.max[i], b.sum[i]);
  }
}

void ForwardStep::write_statistics(const Run& run, int64_t b, int64_t h, int64_t query, float max, float sum) const {
  float unit = p_.options.stats_log2 ? static_cast<float>(M_LOG2E) : 1.0f;
  float stats = max == -INFINITY && sum == 0 ? -INFINITY : (max + std::log(sum)) * unit;
  if (std::isnan(sum) && max != INFINITY) max = sum;  // comparisons passed a NaN by
  if (stats_.given()) write_row(stats_, run.tensors, b, h, query, &stats);
  if (max_.given()) write_row(max_, run.tensors, b, h, query, &max);
  if (sum_.given()) write_row(sum_, run.tensors, b, h, query, &sum);
}

// Queries past the end of their sequence, and the random numbers, which exist for all scores.
void ForwardStep::write_rest(const Run& run, const Worker& w, int64_t b, int64_t h) const {
  Tensors t = run.tensors;
  int64_t length = p_.length_q(t, b);
  std::fill_n(w.v, p_.n.dv, 0.0f);
  for (int64_t query = length; query < p_.n.sq; ++query) {
    // Ragged outputs end with their sequence.
    if (o_.given() && o_.offsets == kNone) write_row(o_, t, b, h, query, w.v);
    float max = -INFINITY, sum = 0;
    for (auto [x, value] : {std::pair(&stats_, &max), std::pair(&max_, &max), std::pair(&sum_, &sum)})
      if (x->given() && x->offsets == kNone) write_row(*x, t, b, h, query, value);
  }
  for (int64_t query = 0; dump_.given() && query < p_.n.sq; ++query)
    for (int64_t first = 0; first < p_.n.skv; first += p_.key_tile) {
      int64_t keys = std::min(p_.key_tile, p_.n.skv - first);
      scores_.keep_row(run.scores, b, h, query, first, keys, w.row);
      write_part(dump_, t, b, h, query, first, keys, w.row);
    }
}

void ForwardStep::write_amax(const Run& run) const {
  const float* amax = run.shared.amax;
  float s = 0, o = 0;
  for (int i = 0; i < threads_; ++i) {
    if (!(amax[2 * i] <= s)) s = amax[2 * i];
    if (!(amax[2 * i + 1] <= o)) o = amax[2 * i + 1];
  }
  if (amax_s_.given()) write_row(amax_s_, run.tensors, 0, 0, 0, &s);
  if (amax_o_.given()) write_row(amax_o_, run.tensors, 0, 0, 0, &o);
}

}  // namespace

std::unique_ptr<Step> make_forward(const Region& r, int threads) {
  return std::make_unique<ForwardStep>(r, *r.graph, r.graph->node(r.nodes[0]), threads);
}

}  // namespace tsr::cpu::attention
