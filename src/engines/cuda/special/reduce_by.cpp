// SPDX-License-Identifier: Apache-2.0
// Reductions by a sub-graph, which becomes a function of the kernel.
#include <algorithm>

#include "engines/cuda/special/reduce_by_args.cuh"
#include "engines/cuda/special/special.hpp"
#include "engines/cuda/toolkit/apply_text.hpp"
#include "engines/cuda/toolkit/launches.hpp"
#include "planner/expr.hpp"

namespace tsr::cuda {
namespace {

using Args = dev::ReduceByArgs;
constexpr int kThreads = 64;

// The sub-graph as a function of device code, with the numbers and tensors that it reads.
class Combination {
 public:
  explicit Combination(const Node& n) : n_(n), sub_(*attrs<tessera::ReduceByOptions>(n).combine) {}

  Reason print() {
    if (sub_.graph.producer(sub_.results[0]) == kNone) return Reason::no("the combination computes nothing");
    if (Reason why = lower(sub_, &e_); !why) return Reason::no("the combination: ", why.text());
    if (e_.has_reduction) return Reason::no("the combination reduces");
    std::string lines;
    for (size_t i = 0; i < e_.code.size(); ++i) {
      const Instr& c = e_.code[i];
      if (c.kind == Instr::random) return Reason::no("the combination draws random numbers");
      if (c.kind == Instr::round && info(c.type).bits < 8) return Reason::no("the combination rounds to ", c.type);
      lines += c.kind == Instr::store ? cat("    return convert_lane<L>(v", c.a, ");\n")
                                      : cat("    ", lane_name(c.lane), " v", i, " = ", line(c), ";\n");
    }
    if (numbers.size() > dev::kMaxCombineNumbers)
      return Reason::no("the combination has ", numbers.size(), " numbers, the limit is ", dev::kMaxCombineNumbers);
    if (captures.size() > dev::kMaxCombineCaptures)
      return Reason::no("the combination reads ", captures.size(), " tensors, the limit is ", dev::kMaxCombineCaptures);
    text = cat("namespace tsr::dev {\nstruct Combine {\n  template <class L>\n",
               "  static L apply(const ReduceByArgs& a, L p0, L p1) {\n", lines, "  }\n};\n}\n");
    return Reason::yes();
  }

  std::string text;
  std::vector<double> numbers;
  std::vector<TensorId> captures;  // of the graph around

 private:
  std::string number(Lane lane, double v) {
    numbers.push_back(v);
    return cat(lane_name(lane), "(a.numbers[", numbers.size() - 1, "])");
  }

  std::string load(const Instr& c) {
    auto position = [&](const std::vector<TensorId>& v) {
      return static_cast<size_t>(std::find(v.begin(), v.end(), c.tensor) - v.begin());
    };
    const Tensor& t = sub_.graph.tensor(c.tensor);
    if (size_t p = position(sub_.params); p < sub_.params.size())
      return cat("convert_lane<", lane_name(c.lane), ">(p", p, ")");
    size_t k = position(sub_.captures);
    if (k == sub_.captures.size()) return number(c.lane, tsr::load<double>(t.dtype, t.constant.data(), 0));
    captures.push_back(n_.captures[k]);
    return cat("read<", lane_name(c.lane), ", ", device_type(t.dtype), ">(a.captures[", captures.size() - 1, "], 0)");
  }

  std::string line(const Instr& c) {
    switch (c.kind) {
      case Instr::load:
        return load(c);
      case Instr::constant:
        return number(c.lane, c.value);
      case Instr::apply:
        return apply_text(
            e_.code, c, [](int v) { return cat("v", v); }, [&](Lane l, double v) { return number(l, v); });
      case Instr::convert:
        return cat("convert_lane<", lane_name(c.lane), ">(v", c.a, ")");
      case Instr::round:
        return cat("round_as<", device_type(c.type), ">(v", c.a, ")");
      default:  // an index: everything has one element
        return cat(lane_name(c.lane), "(0)");
    }
  }

  const Node& n_;
  const Subgraph& sub_;
  Expr e_;
};

}  // namespace

Reason check_reduce_by(const Region& r) { return Combination(r.graph->node(r.nodes[0])).print(); }

std::unique_ptr<Step> build_reduce_by(const Region& r, const Device& d) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  Combination combination(n);
  if (Reason why = combination.print(); !why)
    fail(Status::internal_error, "special_cuda built a reduction that it declines: ", why.text());
  auto step = std::make_unique<Launches<Args>>();
  Args& a = step->args;
  const Tensor &x = g.tensor(n.in[0]), &y = g.tensor(n.out[0]);
  step->bind(a.x, g, n.in[0]), step->bind(a.y, g, n.out[0]);
  for (size_t i = 0; i < combination.captures.size(); ++i) step->bind(a.captures[i], g, combination.captures[i]);
  std::copy(combination.numbers.begin(), combination.numbers.end(), a.numbers);
  a.rows = a.length = 1;
  a.init = attrs<tessera::ReduceByOptions>(n).init;
  for (int i = 0; i < x.rank(); ++i) {
    bool kept = y.dims[i] == x.dims[i];
    dev::Divisor size = dev::make_divisor(std::max<int64_t>(1, x.dims[i]));
    if (kept) {
      a.kept[a.kept_axes] = size, a.kept_x[a.kept_axes] = x.strides[i], a.kept_y[a.kept_axes++] = y.strides[i];
      a.rows *= x.dims[i];
    } else {
      a.reduced[a.reduced_axes] = size, a.reduced_x[a.reduced_axes++] = x.strides[i];
      a.length *= x.dims[i];
    }
  }
  std::string lane = n.compute == DType::f64 ? "double" : "float";
  step->add("engines/cuda/special/reduce_by.cuh", "ReduceByArgs",
            instance("reduce_by", "Combine", lane, device_type_of(g, n.in[0]), device_type_of(g, n.out[0])),
            {ceil_div(a.rows, kThreads), kThreads, 0}, d, combination.text);
  return step;
}

}  // namespace tsr::cuda
