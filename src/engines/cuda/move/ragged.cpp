// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/move/ragged.hpp"

#include <algorithm>
#include <numeric>

#include "engines/cuda/move/copy.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "graph/layouts.hpp"
#include "graph/op.hpp"
#include "graph/ops/list.hpp"
#include "graph/ragged.hpp"

namespace tsr::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kWideIndex = 2000000000;  // elements from which 32 bits do not count them

// A loop over a dimension: index = start + scale * number.
struct Loop {
  int dimension;
  int64_t size, start = 0, scale = 1;
};

// Complex numbers are two parts, vectorised types hold plain elements.
DType part_type(const Tensor& t) {
  return t.dtype == DType::c64 ? DType::f32 : t.dtype == DType::c128 ? DType::f64 : plain_type(t);
}

// One side of a copy while its loops are put in order.
struct Side {
  struct Axis {
    int64_t size, step;
    bool batch = false, time = false;  // of packed sequences
    bool plain() const { return !batch && !time; }
  };
  std::vector<Axis> axes;  // slowest first
  dev::RaggedSide args{};
};

Side make_side(const Graph& g, const Tensor& t, const std::vector<Loop>& loops) {
  Side s;
  int64_t parts = is_complex(t.dtype) ? 2 : 1, vector = info(t.dtype).vector;
  bool ragged = t.ragged != kNone;
  s.args.ragged = ragged_arg(g, t);
  s.args.ragged.multiplier *= parts, s.args.ragged.step *= parts;
  for (const Loop& loop : loops) {
    int d = loop.dimension;
    bool batch = ragged && d == 0, time = ragged && d == ragged_axis(t), groups = vector > 1 && d == 1;
    int64_t stride = t.strides[d] * vector * parts;
    if (batch)
      s.args.batch_start = loop.start, s.args.batch_scale = loop.scale;
    else
      s.args.first += loop.start * stride;
    if (time) s.args.time_start = loop.start, s.args.time_scale = loop.scale;
    s.axes.push_back({groups ? loop.size / vector : loop.size, batch ? 0 : loop.scale * stride, batch, time});
    if (groups) s.axes.push_back({vector, 1});
  }
  if (parts > 1) s.axes.push_back({parts, 1});
  return s;
}

dev::RaggedSide finish(const Side& s) {
  dev::RaggedSide y = s.args;
  y.loops = static_cast<int>(s.axes.size());
  y.batch_loop = y.time_loop = -1;
  for (int l = 0; l < y.loops; ++l) {
    const Side::Axis& a = s.axes[static_cast<size_t>(l)];
    y.size[l] = dev::make_divisor(a.size);
    y.step[l] = a.step;
    if (a.batch) y.batch_loop = l;
    if (a.time) y.time_loop = l;
  }
  return y;
}

bool same_loops(const Side& a, const Side& b) {
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    [](const Side::Axis& x, const Side::Axis& y) { return x.size == y.size; });
}

// Puts the loops of both sides in the order of the target's memory, and makes one of two where both sides lie without
// gaps.
void sort_loops(Side& from, Side& to) {
  std::vector<size_t> order(to.axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](size_t i) { return to.axes[i].size == 1; });
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Side::Axis &x = to.axes[a], &y = to.axes[b];
    return x.batch != y.batch ? x.batch : x.step > y.step;
  });
  std::vector<Side::Axis> source, target;
  auto joins = [](const Side::Axis& outer, const Side::Axis& inner) {
    return outer.plain() && inner.plain() && outer.step == inner.step * inner.size;
  };
  for (size_t i : order) {
    Side::Axis x = from.axes[i], y = to.axes[i];
    if (!source.empty() && joins(source.back(), x) && joins(target.back(), y)) {
      x.size = y.size = source.back().size * x.size;
      source.pop_back(), target.pop_back();
    }
    source.push_back(x), target.push_back(y);
  }
  from.axes = std::move(source), to.axes = std::move(target);
}

// Lets the innermost loop count words, as long as both sides allow if their sequences start at words; the number of
// elements in one.
int64_t take_words(Side& from, Side& to, int64_t bytes) {
  int64_t word = 16 / bytes;
  if (from.axes.empty()) return 1;
  for (Side* s : {&from, &to}) {
    const Side::Axis& inner = s->axes.back();
    if (!inner.plain() || inner.step != 1) return 1;
    word = common_power(word, {inner.size, s->args.first});
    for (size_t i = 0; i + 1 < s->axes.size(); ++i) word = common_power(word, {s->axes[i].step});
  }
  for (Side* s : {&from, &to}) s->axes.back().size /= word, s->axes.back().step = word;
  return word;
}

// All dimensions of a tensor, or those of more than one element in the order of its memory.
std::vector<Loop> loops_over(const Tensor& t, bool by_memory = false) {
  std::vector<Loop> loops;
  if (by_memory)
    for (int d : memory_order(t.dims, t.strides)) loops.push_back({d, t.dims[d]});
  else
    for (int d = 0; d < t.rank(); ++d) loops.push_back({d, t.dims[d]});
  return loops;
}

// The loops that walk through both sides of each copy of a node.
struct Walk {
  TensorId source;
  std::vector<Loop> from, to;
};

std::vector<Walk> walks_of(const Graph& g, const Node& n) {
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  std::vector<Walk> walks;
  if (n.op == &ops::reshape) {
    bool view = attrs<tessera::ReshapeOptions>(n).mode == tessera::ReshapeMode::view;
    return {{n.in[0], loops_over(x, view), loops_over(y, view)}};
  }
  if (n.op == &ops::concat) {
    auto axis = static_cast<size_t>(normalize_axis(attrs<tessera::ConcatOptions>(n).axis, y.rank()));
    int64_t start = 0;
    for (TensorId t : n.in) {
      Walk w{t, loops_over(g.tensor(t)), loops_over(g.tensor(t))};
      w.to[axis].start = start;
      start += w.to[axis].size;
      walks.push_back(std::move(w));
    }
    return walks;
  }
  Walk w{n.in[0], loops_over(y), loops_over(y)};
  for (size_t i = 0; i < w.from.size(); ++i) {
    if (n.op == &ops::transpose) w.from[i].dimension = static_cast<int>(attrs<tessera::TransposeOptions>(n).perm[i]);
    if (n.op == &ops::slice) {
      const auto& o = attrs<tessera::SliceOptions>(n);
      if (!o.start.empty()) w.from[i].start = o.start[i];
      if (!o.stride.empty()) w.from[i].scale = o.stride[i];
    }
  }
  return {std::move(w)};
}

struct Choice {
  std::string body;
  int64_t word = 1, unroll = 1;  // elements to a word, words to a thread
};

// The kernel of `count` elements. Makes loops fewer, and the innermost one of words, where that is possible.
Choice choose(DType x, DType y, Side& from, Side& to, int64_t count) {
  int bits = info(y).bits;
  const char* index = count > kWideIndex ? "i64" : "i32";
  bool same = same_loops(from, to);
  if (same) sort_loops(from, to);
  if (x != y) return {cat("convert_ragged<", device_type(x), ", ", device_type(y), ", ", index, ">")};
  if (bits < 8) return {cat("copy_ragged_bits<", bits, ", ", index, ">")};
  int64_t word = same ? take_words(from, to, bits / 8) : 1;
  return {cat("copy_ragged<", word_type(bits / 8), ", ", word, ", ", index, ">"), word, dev::kRaggedUnroll};
}

class RaggedStep : public LaunchList {
 public:
  RaggedStep(const Graph& g, const Node& n, const Device& d) {
    const Tensor& y = g.tensor(n.out[0]);
    for (const Walk& w : walks_of(g, n)) {
      const Tensor& x = g.tensor(w.source);
      int64_t count = is_complex(x.dtype) ? 2 : 1;
      for (const Loop& loop : w.to) count *= loop.size;
      if (count == 0) continue;
      Side from = make_side(g, x, w.from), to = make_side(g, y, w.to);
      Choice c = choose(part_type(x), part_type(y), from, to, count);
      KernelArgs<dev::RaggedArgs> bound;
      dev::RaggedArgs& a = bound.args;
      a = {count / c.word, finish(from), finish(to)};
      bound.pointer(a.from.data, w.source);
      bound.pointer(a.to.data, n.out[0]);
      bound.pointer(a.from.ragged.offsets, x.ragged);
      bound.pointer(a.to.ragged.offsets, y.ragged);
      Program p;
      p.body = c.body;
      p.include = "engines/cuda/move/ragged.cuh";
      p.generated = "using namespace tsr::dev;";
      p.args = "RaggedArgs";
      p.threads = kThreads;
      add(get_kernel(p, d), {ceil_div(a.count, kThreads * c.unroll), kThreads}, std::move(bound));
    }
  }
};

}  // namespace

bool has_ragged(const Graph& g, const Node& n) {
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list)
      if (t != kNone && g.tensor(t).ragged != kNone) return true;
  return false;
}

Reason check_ragged(const Graph& g, const Node& n) {
  const Tensor& y = g.tensor(n.out[0]);
  bool whole = n.op != &ops::slice && n.op != &ops::concat;
  for (TensorId id : n.in) {
    if (id == kNone) continue;
    const Tensor& x = g.tensor(id);
    if (x.on_host()) return Reason::no("tensor ", describe(x), " is a number that travels with the launch");
    for (const Tensor* t : {&x, &y}) {
      if (info(t->dtype).vector > 1 && !whole)
        return Reason::no("tensor ", describe(*t), " is vectorised; of packed sequences it is copied whole only");
      if (part_type(x) != part_type(y) && info(t->dtype).bits < 8)
        return Reason::no("tensor ", describe(*t), " has another type than its copy, and elements of ", t->dtype,
                          " are not converted on the way");
    }
    if (is_complex(x.dtype) != is_complex(y.dtype))
      return Reason::no("tensor ", describe(x), " is copied to ", describe(y), "; both are complex or none is");
  }
  return Reason::yes();
}

std::unique_ptr<Step> make_ragged_step(const Graph& g, const Node& n, const Device& d) {
  return std::make_unique<RaggedStep>(g, n, d);
}

}  // namespace tsr::cuda
