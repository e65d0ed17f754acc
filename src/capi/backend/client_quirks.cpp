// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/client_quirks.hpp"

#include <algorithm>
#include <limits>

#include "capi/log.hpp"
#include "capi/status.hpp"
#include "graph/ops/list.hpp"

namespace tsr::capi {
namespace {

using Mode = tessera::PointwiseMode;

size_t at(TensorId t) { return static_cast<size_t>(t); }

bool is_pointwise(const Node* n, Mode mode) {
  return n && n->op == &ops::pointwise && attrs<tessera::PointwiseOptions>(*n).mode == mode;
}

Node* producer(Draft& d, TensorId t) {
  for (Node& n : d.nodes)
    if (std::count(n.out.begin(), n.out.end(), t) > 0) return &n;
  return nullptr;
}

// exp(sink - stats), with a sink for each head.
bool is_share_of_sink(Draft& d, TensorId t) {
  Node* exp = producer(d, t);
  Node* sub = is_pointwise(exp, Mode::exp) ? producer(d, exp->in[0]) : nullptr;
  if (!is_pointwise(sub, Mode::sub)) return false;
  const Dims &sink = d.tensors[at(sub->in[0])].dims, &stats = d.tensors[at(sub->in[1])].dims;
  if (sink.size() != 4 || stats.size() != 4 || !(sink == Dims{1, stats[1], 1, 1}) || stats[3] != 1) return false;
  // Scores of the same attention are compared with these statistics, too.
  return std::any_of(d.nodes.begin(), d.nodes.end(), [&](const Node& n) {
    return &n != sub && is_pointwise(&n, Mode::sub) && n.in[1] == sub->in[1] &&
           d.tensors[at(n.out[0])].dims.size() == 4 && producer(d, n.in[0]) != nullptr;
  });
}

// Whether each axis steps over all that the axes with smaller strides reach.
bool is_nested(const Tensor& t) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, size
  for (int i = 0; i < t.rank(); ++i)
    if (t.dims[i] > 1) axes.emplace_back(t.strides[i], t.dims[i]);
  std::sort(axes.begin(), axes.end());
  int64_t reach = 0;
  for (auto [stride, size] : axes) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

}  // namespace

void narrow_unreduced(Draft& d) {
  for (const Node& n : d.nodes) {
    if (n.op != &ops::reduce) continue;
    Tensor& y = d.tensors[at(n.out[0])];
    if (y.stored || !(y.dims == d.tensors[at(n.in[0])].dims)) continue;
    Dims narrow = y.dims;
    for (const Node& reader : d.nodes) {
      if (reader.op != &ops::pointwise || std::count(reader.in.begin(), reader.in.end(), n.out[0]) == 0) continue;
      const Dims& result = d.tensors[at(reader.out[0])].dims;
      for (int i = 0; result.size() == narrow.size() && i < narrow.size(); ++i)
        if (result[i] == 1) narrow[i] = 1;
    }
    if (!(narrow == y.dims)) y.dims = narrow, y.strides = packed_strides(narrow);
  }
}

void correct_sink_gradient(Draft& d) {
  auto keep = [&](Tensor t, DType type) {
    t.uid = 0, t.uid_given = t.stored = false;
    t.ragged = kNone;
    t.name.clear();
    t.dtype = type;
    d.tensors.push_back(std::move(t));
    return static_cast<TensorId>(d.tensors.size()) - 1;
  };
  for (size_t i = 0, count = d.nodes.size(); i < count; ++i) {
    if (d.nodes[i].op != &ops::reduce) continue;
    if (attrs<tessera::ReduceOptions>(d.nodes[i]).mode != tessera::ReduceMode::add) continue;
    TensorId sum = d.nodes[i].in[0];
    Node* product = producer(d, sum);
    if (!is_pointwise(product, Mode::mul) || !is_share_of_sink(d, product->in[0])) continue;
    std::any_cast<tessera::PointwiseOptions>(&product->attrs)->alpha1 *= -1;
    // Rows without statistics attended to nothing, and what lies there may be no number.
    TensorId stats = producer(d, producer(d, product->in[0])->in[0])->in[1];
    Node compare = *product, select = *product;
    compare.attrs = tessera::PointwiseOptions{.mode = Mode::cmp_gt};
    compare.in = {stats,
                  keep(make_scalar_constant(DType::f32, -std::numeric_limits<double>::infinity(), 4), DType::f32)};
    compare.out = {keep(d.tensors[at(stats)], DType::boolean)};
    select.attrs = tessera::PointwiseOptions{.mode = Mode::select};
    select.in = {sum, keep(make_scalar_constant(DType::f32, 0, 4), DType::f32), compare.out[0]};
    select.out = {d.nodes[i].in[0] = keep(d.tensors[at(sum)], d.tensors[at(sum)].dtype)};
    d.nodes.push_back(std::move(compare));
    d.nodes.push_back(std::move(select));
  }
}

void separate_elements(Draft& d) {
  for (const Node& n : d.nodes) {
    // Another view of elements that repeat in memory repeats them too.
    if (n.op == &ops::reshape && !is_nested(d.tensors[at(n.in[0])])) continue;
    for (TensorId id : n.out) {
      if (id == kNone) continue;
      Tensor& t = d.tensors[at(id)];
      if (!t.stored && t.strides_given && !is_nested(t)) t.strides = packed_strides(t.dims);
    }
  }
}

void hide_all_heads(Draft& d) {
  constexpr int kHeads = 1, kRows = 2;
  for (const Node& n : d.nodes) {
    if (n.op != &ops::reduce) continue;
    Tensor& x = d.tensors[at(n.in[0])];
    const Tensor& y = d.tensors[at(n.out[0])];
    if (x.ragged == kNone || x.ragged != y.ragged || x.rank() != 4 || y.rank() != 4) continue;
    int64_t more = x.dims[kHeads] / y.dims[kHeads];
    if (more == 1 || x.strides[kRows] != more * y.strides[kRows] || !producer(d, n.in[0])) continue;
    x.stored = false;
    x.ragged = kNone;
    x.strides = packed_strides(x.dims);
  }
}

void widen_statistics(Draft& d) {
  constexpr int kChannels = 1;
  for (const Node& n : d.nodes) {
    if (n.op != &ops::gen_stats) continue;
    const Dims& x = d.tensors[at(n.in[0])].dims;
    for (TensorId id : n.out) {
      Tensor& sums = d.tensors[at(id)];
      if (sums.dims.size() != x.size() || sums.dims[kChannels] >= x[kChannels]) continue;
      if (logs(CUDNN_SEV_WARNING))
        log_message(CUDNN_SEV_WARNING, CUDNN_STATUS_SUCCESS,
                    cat("tensor '", sums.name, "' has ", sums.dims[kChannels], " channels, its sums are over ",
                        x[kChannels], ": all of them are written"));
      sums.dims[kChannels] = x[kChannels];
    }
  }
}

}  // namespace tsr::capi
