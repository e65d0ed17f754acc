// SPDX-License-Identifier: Apache-2.0
// Softmax is one operation since cuDNN 9.21, for the last of four dimensions. Everything else is spelled out.
#include <algorithm>
#include <cmath>

#include "cudnn/translations.hpp"
#include "graph/op.hpp"

namespace cudnn {
namespace {

using P = PointwiseMode;

Ints rows_of(const Writer& w, const tsr::Node& n, const tsr::Tensor& x, int64_t uid) {
  Ints rows = w.tensor(uid).dims;
  for (int64_t a : tsr::attrs<tessera::SoftmaxOptions>(n).axes) rows[static_cast<size_t>(w.axis(x, a))] = 1;
  return rows;
}

void spell_out(Writer& w, const Softmax& s) {
  int64_t top = w.reduce(ReduceMode::max, s.x, s.rows, s.sink == kAbsent ? s.max : kAbsent);
  if (s.sink != kAbsent) top = w.pointwise({.mode = P::max, .x = top, .b = s.sink, .y = s.max});
  int64_t distance = w.pointwise(P::sub, s.x, top);
  int64_t e = w.pointwise(P::exp, distance);
  int64_t sum = w.reduce(ReduceMode::add, e, s.rows, s.sink == kAbsent ? s.sum_exp : kAbsent);
  if (s.sink != kAbsent) {
    int64_t of_sink = w.pointwise(P::exp, w.pointwise(P::sub, s.sink, top));
    sum = w.pointwise({.mode = P::add, .x = sum, .b = of_sink, .y = s.sum_exp});
  }
  int64_t log = kAbsent;
  if (s.stats != kAbsent || s.log) log = w.pointwise(P::log, sum);
  if (s.stats != kAbsent) {
    int64_t natural = w.pointwise({.mode = P::add, .x = top, .b = log, .y = s.stats_log2 ? kAbsent : s.stats});
    if (s.stats_log2)
      w.pointwise({.mode = P::mul, .x = natural, .b = w.scalar(DataType::float_, 1 / std::log(2.0)), .y = s.stats});
  }
  if (s.log) w.caveat = "log_softmax is spelled out: rows of -inf give NaN";
  if (s.log)
    w.pointwise({.mode = P::sub, .x = distance, .b = log, .y = s.y});
  else
    w.pointwise({.mode = P::div, .x = e, .b = sum, .y = s.y});
}

}  // namespace

bool softmax_is_operation(const Writer& w, const Softmax& s) {
  const Ints& dims = w.tensor(s.x).dims;
  bool last = dims.size() == 4 && std::equal(dims.begin(), dims.end() - 1, s.rows.begin()) && s.rows[3] == 1;
  return last && !s.log && w.version() >= (s.stats_log2 ? 92700 : 92100);
}

void add_softmax(Writer& w, const Softmax& s) {
  if (!softmax_is_operation(w, s)) return spell_out(w, s);
  Node& node = w.add(Kind::operation_softmax);
  set_tensor(node, Attr::operation_softmax_xdesc, s.x);
  set_tensor(node, Attr::operation_softmax_ydesc, s.y);
  set_tensor(node, Attr::operation_softmax_sink_desc, s.sink);
  set_tensor(node, Attr::operation_softmax_stats_desc, s.stats);
  set_tensor(node, Attr::operation_softmax_max_desc, s.max);
  set_tensor(node, Attr::operation_softmax_sum_exp_desc, s.sum_exp);
  if (s.stats_log2) node.set(Attr::operation_softmax_stats_log2, true);
}

void softmax(Writer& w, const tsr::Node& n) {
  const auto& o = tsr::attrs<tessera::SoftmaxOptions>(n);
  int64_t x = w.in(n, 0);
  add_softmax(w, {.x = x,
                  .rows = rows_of(w, n, w.source().tensor(n.in[0]), x),
                  .sink = w.in(n, 1),
                  .y = w.out(n, 0),
                  .stats = w.out(n, 1),
                  .max = w.out(n, 2),
                  .sum_exp = w.out(n, 3),
                  .stats_log2 = o.stats_log2,
                  .log = o.mode == tessera::SoftmaxMode::log_softmax});
}

void softmax_bwd(Writer& w, const tsr::Node& n) {
  int64_t y = w.in(n, 0), dy = w.in(n, 1), dx = w.out(n, 0);
  Ints rows = rows_of(w, n, w.source().tensor(n.in[0]), y);
  if (tsr::attrs<tessera::SoftmaxOptions>(n).mode == tessera::SoftmaxMode::log_softmax) {
    int64_t sum = w.reduce(ReduceMode::add, dy, rows);
    w.pointwise({.mode = P::sub, .x = dy, .b = w.pointwise(P::mul, w.pointwise(P::exp, y), sum), .y = dx});
  } else {
    int64_t sum = w.reduce(ReduceMode::add, w.pointwise(P::mul, y, dy), rows);
    w.pointwise({.mode = P::mul, .x = w.pointwise(P::sub, dy, sum), .b = y, .y = dx});
  }
}

}  // namespace cudnn
