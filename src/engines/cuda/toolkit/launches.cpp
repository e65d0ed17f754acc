// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/toolkit/launches.hpp"

#include <algorithm>

#include "graph/op.hpp"

namespace tsr::cuda {
namespace {

Reason check_tensor(const Tensor& t, bool written) {
  if (t.ragged != kNone) return Reason::no("tensor ", describe(t), " is ragged");
  if (is_complex(t.dtype)) return Reason::no("tensor ", describe(t), " is complex");
  if (info(t.dtype).vector > 1)
    return Reason::no("tensor ", describe(t), " holds vectors of ", info(t.dtype).vector, " elements");
  if (written && info(t.dtype).bits < 8)
    return Reason::no("tensor ", describe(t), " packs results into ", info(t.dtype).bits,
                      " bits, at least 8 are needed");
  return Reason::yes();
}

}  // namespace

TensorId wanted(const Region& r, TensorId t) {
  return std::find(r.outputs.begin(), r.outputs.end(), t) == r.outputs.end() ? kNone : t;
}

std::string device_type_of(const Graph& g, TensorId t) { return t == kNone ? "none" : device_type(g.tensor(t).dtype); }

Reason check_elements(const Region& r) {
  for (TensorId t : r.inputs)
    if (Reason why = check_tensor(r.graph->tensor(t), false); !why) return why;
  for (TensorId t : r.outputs)
    if (Reason why = check_tensor(r.graph->tensor(t), true); !why) return why;
  return Reason::yes();
}

std::string lane_of(const Graph& g, const Node& n, std::initializer_list<TensorId> tensors) {
  bool wide = n.compute == DType::f64;
  for (TensorId t : tensors)
    if (t != kNone && info(g.tensor(t).dtype).bits >= 32 && g.tensor(t).dtype != DType::f32) wide = true;
  return wide ? "double" : "float";
}

size_t Sequence::workspace_bytes() const {
  size_t most = 0;
  for (const auto& s : steps_) most = std::max(most, s->workspace_bytes());
  return most;
}

int Sequence::kernels() const {
  int all = 0;
  for (const auto& s : steps_) all += s->kernels();
  return all;
}

void Sequence::run(const StepArgs& a) const {
  for (const auto& s : steps_) s->run(a);
}

}  // namespace tsr::cuda
