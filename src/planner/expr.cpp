// SPDX-License-Identifier: Apache-2.0
#include "planner/expr.hpp"

#include "graph/pointwise_modes.hpp"
#include "graph/text.hpp"
#include "planner/lowering.hpp"

namespace tsr {

int64_t Expr::row_length() const {
  int64_t n = 1;
  for (int i = 0; i < space.size(); ++i)
    if (row_axis[static_cast<size_t>(i)]) n *= space[i];
  return n;
}

int64_t Expr::rows() const {
  int64_t n = 1;
  for (int i = 0; i < space.size(); ++i)
    if (!row_axis[static_cast<size_t>(i)]) n *= space[i];
  return n;
}

Dims Expr::sizes_of(const Dims& dims) const {
  Dims sizes;
  for (int i = 0, shift = tensor_rank() - dims.size(); i < tensor_rank(); ++i) {
    int64_t n = i < shift ? 1 : dims[i - shift];
    bool whole = i == split_axis && n == space[i] * space[i + 1];
    sizes.push_back(whole ? space[i] : n);
    if (i == split_axis) sizes.push_back(whole ? space[i + 1] : 1);
  }
  return sizes;
}

Dims Expr::strides_of(const Tensor& t) const {
  Dims strides;
  for (int i = 0, shift = tensor_rank() - t.rank(); i < tensor_rank(); ++i) {
    int64_t n = i < shift ? 1 : t.dims[i - shift], stride = n == 1 ? 0 : t.strides[i - shift];
    bool whole = i == split_axis && n == space[i] * space[i + 1];
    strides.push_back(whole ? stride * space[i + 1] : stride);
    if (i == split_axis) strides.push_back(whole ? stride : 0);
  }
  return strides;
}

Reason lower(const Region& r, Expr* out, bool gpu) {
  Expr scratch;
  Expr& e = out ? *out : scratch;
  e = {};
  try {
    Lowering(r, e, gpu).run();
    return Reason::yes();
  } catch (const Declined& d) {
    return d.reason;
  }
}

Reason lower(const Subgraph& s, Expr* out) {
  Region r;
  r.graph = &s.graph;
  for (NodeId i = 0; i < s.graph.node_count(); ++i) r.nodes.push_back(i);
  for (TensorId i = 0; i < s.graph.tensor_count(); ++i) {
    if (s.graph.producer(i) == kNone)
      r.inputs.push_back(i);
    else
      (i == s.results[0] ? r.outputs : r.internals).push_back(i);
  }
  return lower(r, out);
}

std::string to_string(const Expr& e, const Graph& g) {
  std::string s = cat("space ", e.space, ", ", e.rows(), " rows of ", e.row_length(), "\n");
  static constexpr const char* kKind[] = {"load",   "constant", "index", "random", "apply",
                                          "reduce", "convert",  "round", "store",  "across"};
  static constexpr const char* kLane[] = {"f32", "f64", "i64"};
  for (size_t i = 0; i < e.code.size(); ++i) {
    const Instr& c = e.code[i];
    s += cat("  %", i,
             c.row     ? " row "
             : c.block ? " block "
                       : " ",
             kLane[static_cast<int>(c.lane)], " ", kKind[c.kind]);
    if (c.kind == Instr::apply) s += cat(" ", info(c.options.mode).name);
    if (c.kind == Instr::constant) s += " " + print_number(c.value);
    if (c.tensor != kNone) s += " " + g.tensor(c.tensor).name;
    for (int k : {c.a, c.b, c.c})
      if (k >= 0) s += cat(" %", k);
    s += "\n";
  }
  return s;
}

}  // namespace tsr
