// SPDX-License-Identifier: Apache-2.0
// Softmax that is spelled out, of rows that end with their sequences. Beyond the end all scores are what the mask fills
// in, minus infinity, and so are the statistics: what would be computed there is exp(-inf - -inf), which is no number.
// Exponentials, and what they are multiplied with or divided by, are 0 there.
#include "graph/ops/list.hpp"
#include "graph/passes/cone.hpp"
#include "graph/passes/patterns.hpp"

namespace tsr {
namespace {

using M = PointwiseMode;

// Up through masks; the first padding mask on the way is kept.
TensorId above_masks(const GraphView& v, TensorId t, std::optional<PaddingMask>& mask) {
  for (NodeId n = v.producer(t); v.is_pointwise(n, M::select) || v.is(n, ops::band_mask); n = v.producer(t)) {
    if (!mask && v.is_pointwise(n, M::select)) mask = find_padding_mask(v, v.in(n, 2));
    t = v.in(n, 0);
  }
  return t;
}

// The mask of the scores in exp(masks(scores) - one number for each row), with more masks behind the difference.
std::optional<PaddingMask> mask_of(const GraphView& v, NodeId exp) {
  std::optional<PaddingMask> mask;
  NodeId sub = v.producer(above_masks(v, v.in(exp, 0), mask));
  if (!v.is_pointwise(sub, M::sub)) return std::nullopt;
  const Dims &scores = v.tensor(v.out(exp)).dims, &row = v.tensor(v.in(sub, 1)).dims;
  if (scores.size() != 4 || row.size() != 4 || row[3] != 1 || scores[3] == 1) return std::nullopt;
  above_masks(v, v.in(sub, 0), mask);
  return mask;
}

bool is_masked_by(const GraphView& v, TensorId t, TensorId condition) {
  const auto& readers = v.consumers(t);
  return readers.size() == 1 && v.is_pointwise(readers[0], M::select) && v.in(readers[0], 2) == condition;
}

// The result of node `n` becomes 0 where the condition is false.
void mask_result(const GraphView& v, NodeId n, TensorId condition, Rewrite& r) {
  Tensor before = v.tensor(v.out(n));
  before.name.clear();
  before.uid = 0;
  before.stored = false;
  before.ragged = kNone;
  Node compute = v.node(n), select = compute;
  compute.out = {r.add(std::move(before))};
  select.attrs = tessera::PointwiseOptions{.mode = M::select};
  select.in = {compute.out[0], r.add(make_scalar_constant(DType::f32, 0, 4)), condition};
  r.remove({n});
  r.add(std::move(compute));
  r.add(std::move(select));
}

}  // namespace

std::vector<Rewrite> clear_padding(const GraphView& v) {
  std::vector<Rewrite> found;
  for (NodeId n = 0; n < v.graph().node_count(); ++n) {
    if (!v.live(n) || !v.is_pointwise(n, M::exp)) continue;
    auto mask = mask_of(v, n);
    TensorId e = v.out(n);
    if (!mask || is_masked_by(v, e, mask->condition)) continue;
    Rewrite r(v);
    mask_result(v, n, mask->condition, r);
    for (NodeId reader : v.consumers(e))
      if ((v.is_pointwise(reader, M::mul) || v.is_pointwise(reader, M::div)) &&
          v.tensor(v.out(reader)).dims == v.tensor(e).dims)
        mask_result(v, reader, mask->condition, r);
    found.push_back(std::move(r));
  }
  return found;
}

}  // namespace tsr
