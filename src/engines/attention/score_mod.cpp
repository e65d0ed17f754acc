// SPDX-License-Identifier: Apache-2.0
#include "engines/attention/score_mod.hpp"

#include <algorithm>

namespace tsr::attention {
Reason check_score_mod(const Subgraph& s, const Dims& scores) {
  if (s.graph.producer(s.results[0]) == kNone) return Reason::no("a sub-graph on scores that computes nothing");
  Expr e;
  if (Reason why = lower(s, &e); !why) return Reason::no("the sub-graph on scores: ", why.text());
  if (e.has_reduction) return Reason::no("the sub-graph on scores reduces");
  for (const Instr& i : e.code)
    if (i.kind == Instr::random) return Reason::no("the sub-graph on scores draws random numbers");
  if (!(e.space == scores)) return Reason::no("the sub-graph on scores of sizes ", scores, " has sizes ", e.space);
  return Reason::yes();
}

ScoreCode::ScoreCode(const Graph& g, const Node& n, const Subgraph& s, size_t first_capture)
    : sub(std::make_shared<Subgraph>(s)) {
  if (Reason why = lower(*sub, &expr); !why) fail(Status::internal_error, why.text());
  auto position = [](const std::vector<TensorId>& v, TensorId t) {
    return static_cast<size_t>(std::find(v.begin(), v.end(), t) - v.begin());
  };
  for (const Instr& i : expr.code) {
    Source& from = sources.emplace_back();
    if (i.kind != Instr::load) continue;
    const Tensor& t = sub->graph.tensor(i.tensor);
    size_t param = position(sub->params, i.tensor), capture = position(sub->captures, i.tensor);
    if (param < sub->params.size()) {
      from.param = static_cast<int>(param);
    } else if (capture < sub->captures.size()) {
      TensorId outer = n.captures[first_capture + capture];
      from.memory = make_broadcast(g.tensor(outer), outer);
    } else {
      from.memory = make_broadcast(t, i.tensor);
      from.constant = t.constant.data();
    }
  }
}

}  // namespace tsr::attention
