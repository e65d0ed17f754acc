// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/chain.hpp"

#include <algorithm>
#include <limits>

#include "engines/cpu/onednn/readiness.hpp"
#include "graph/op.hpp"
#include "graph/pointwise_modes.hpp"
#include "planner/machine.hpp"

namespace tsr::onednn {
namespace {

using dnnl::algorithm;
using tessera::PointwiseOptions;
using M = PointwiseMode;

constexpr size_t kMaxOps = 8;

PostOp linear(double factor, double offset = 0) {
  return {algorithm::eltwise_linear, static_cast<float>(factor), static_cast<float>(offset)};
}

// Functions of one value. A NaN that meets oneDNN's relu becomes 0.
std::optional<PostOp> unary(const PointwiseOptions& o) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  auto alpha = static_cast<float>(o.alpha), beta = static_cast<float>(o.beta);
  switch (o.mode) {
    case M::relu:
      if (!(o.lower <= o.upper)) return std::nullopt;
      if (o.slope == 0 && o.upper < kInfinity)
        return PostOp{algorithm::eltwise_clip, static_cast<float>(o.lower), static_cast<float>(o.upper)};
      if (o.lower != 0 || o.upper < kInfinity) return std::nullopt;
      return PostOp{algorithm::eltwise_relu, static_cast<float>(o.slope)};
    case M::tanh:
      return PostOp{algorithm::eltwise_tanh};
    case M::sigmoid:
      return PostOp{algorithm::eltwise_logistic};
    case M::elu:
      return PostOp{algorithm::eltwise_elu, alpha};
    case M::gelu:
      return PostOp{algorithm::eltwise_gelu_erf};
    case M::gelu_tanh:
      return PostOp{algorithm::eltwise_gelu_tanh};
    case M::swish:
      return PostOp{algorithm::eltwise_swish, beta};
    case M::abs:
      return PostOp{algorithm::eltwise_abs};
    case M::sqrt:
      return PostOp{algorithm::eltwise_sqrt};
    case M::neg:
      return linear(-1);
    case M::identity:
      return linear(1);
    default:
      return std::nullopt;
  }
}

bool is_linear(const PostOp& p) { return p.what == algorithm::eltwise_linear; }
bool is_nothing(const PostOp& p) { return is_linear(p) && p.alpha == 1 && p.beta == 0; }

class Reader {
 public:
  Reader(const Region& r, int channel, Chain& c) : r_(r), g_(*r.graph), channel_(channel), c_(c) {}

  Reason read(const std::vector<PostOp>& first) {
    c_.anchor = &g_.node(r_.nodes[0]);
    c_.result = c_.anchor->out[0];
    for (const PostOp& p : first) push(p);
    for (size_t i = 1; i < r_.nodes.size(); ++i)
      if (Reason why = node(g_.node(r_.nodes[i])); !why) return why;
    if (r_.outputs.size() != 1 || r_.outputs[0] != c_.result)
      return Reason::no("the region has another result than ", describe(g_.tensor(c_.result)));
    if (c_.ops.size() > kMaxOps)
      return Reason::no("the chain needs ", c_.ops.size(), " post-ops, the most are ", kMaxOps);
    // oneDNN 2.6 keeps one set of parameters for each function: a second linear post-op computes as the first does.
    for (const PostOp& p : c_.ops)
      for (const PostOp& q : c_.ops)
        if (p.operand == kNone && p.what == q.what && (p.alpha != q.alpha || p.beta != q.beta))
          return Reason::no("the chain needs the same post-op twice with different parameters");
    return Reason::yes();
  }

 private:
  void push(const PostOp& p) {
    if (is_nothing(p)) return;
    if (is_linear(p) && !c_.ops.empty() && is_linear(c_.ops.back())) {
      PostOp& last = c_.ops.back();
      last.beta = last.beta * p.alpha + p.beta;
      last.alpha *= p.alpha;
    } else {
      c_.ops.push_back(p);
    }
  }

  Reason node(const Node& n) {
    if (n.op->family != Family::pointwise) return Reason::no(spelling(n), " is not pointwise work behind the anchor");
    if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", allowed: f32");
    if (Reason why = check_internal(n); !why) return why;
    int at = static_cast<int>(std::find(n.in.begin(), n.in.end(), c_.result) - n.in.begin());
    if (at == static_cast<int>(n.in.size())) return Reason::no(spelling(n), " does not read the anchor's chain");
    if (std::count(n.in.begin(), n.in.end(), c_.result) > 1) return Reason::no(spelling(n), " reads the chain twice");
    const Tensor& out = g_.tensor(n.out[0]);
    if (out.dims != g_.tensor(c_.result).dims)
      return Reason::no(spelling(n), " gives ", describe(out), ", other sizes than the chain's");
    const auto& o = attrs<PointwiseOptions>(n);
    int arity = info(o.mode).arity;
    Reason why = arity == 1 ? one(n, o) : arity == 2 ? two(n, o, at) : Reason::no(spelling(n), " is no post-op");
    c_.result = n.out[0];
    return why;
  }

  // The value so far is not stored, and is kept in f32: that is as wide as declared.
  Reason check_internal(const Node& n) const {
    const Tensor& t = g_.tensor(c_.result);
    if (std::find(r_.internals.begin(), r_.internals.end(), c_.result) == r_.internals.end())
      return Reason::no("tensor ", describe(t), " is needed outside the region");
    bool sum = c_.result == c_.anchor->out[0] && c_.ops.empty() && is_integer(c_.anchor->compute);
    bool wide = t.dtype == DType::f32 || t.dtype == DType::bf16 || t.dtype == DType::f16;
    if (!wide && !(sum && t.dtype == DType::i32))
      return Reason::no("tensor ", describe(t), " would have to be rounded before ", spelling(n));
    return Reason::yes();
  }

  Reason one(const Node& n, const PointwiseOptions& o) {
    auto p = unary(o);
    if (!p) return Reason::no(spelling(n), " is no post-op");
    push(linear(o.alpha1));
    push(*p);
    return Reason::yes();
  }

  Reason two(const Node& n, const PointwiseOptions& o, int at) {
    TensorId other = n.in[at == 0 ? 1 : 0];
    const Tensor& t = g_.tensor(other);
    if (std::find(r_.internals.begin(), r_.internals.end(), other) != r_.internals.end())
      return Reason::no(spelling(n), " reads an earlier value of the chain, ", describe(t));
    double mine = at == 0 ? o.alpha1 : o.alpha2, theirs = at == 0 ? o.alpha2 : o.alpha1;
    if (t.is_constant() && t.numel() == 1) return with_constant(n, o.mode, at, mine, theirs * constant(t));
    auto how = spread(t, g_.tensor(c_.result).dims, channel_);
    if (!how) return Reason::no(spelling(n), " spreads ", describe(t), " in a way that is no post-op");
    if (Reason why = check_tensor(t); !why) return why;
    if (!is_real(t.dtype) || !is_convertible(t.dtype))
      return Reason::no("operand ", describe(t), " is not a narrow float");
    if (theirs != 1) return Reason::no(spelling(n), " multiplies ", describe(t), " with ", theirs, ", allowed: 1");
    if (o.mode == M::sub && at == 1) mine = -mine;
    if (o.mode == M::div && at == 1) return Reason::no(spelling(n), " divides by the chain");
    algorithm what = binary(o.mode, at);
    if (what == algorithm::undef) return Reason::no(spelling(n), " is no post-op");
    push(linear(mine));
    bool first = c_.ops.empty() && c_.bias == kNone;
    if (what == algorithm::binary_add && first && *how == Spread::channel)
      c_.bias = other;
    else
      c_.ops.push_back({what, 0, 0, other});
    return Reason::yes();
  }

  static algorithm binary(M mode, int at) {
    if (mode == M::add) return algorithm::binary_add;
    if (mode == M::mul) return algorithm::binary_mul;
    if (mode == M::sub) return at == 0 ? algorithm::binary_sub : algorithm::binary_add;
    if (mode == M::div) return algorithm::binary_div;
    return algorithm::undef;
  }

  static double constant(const Tensor& t) { return tsr::load<double>(t.dtype, t.constant.data(), 0); }

  Reason with_constant(const Node& n, M mode, int at, double mine, double value) {
    if (mode == M::add)
      push(linear(mine, value));
    else if (mode == M::mul)
      push(linear(mine * value));
    else if (mode == M::sub)
      push(at == 0 ? linear(mine, -value) : linear(-mine, value));
    else
      return Reason::no(spelling(n), " with a constant is no post-op");
    return Reason::yes();
  }

  const Region& r_;
  const Graph& g_;
  int channel_;
  Chain& c_;
};

}  // namespace

Reason read_chain(const Region& r, int channel, const std::vector<PostOp>& first, Chain& out) {
  return Reader(r, channel, out).read(first);
}

Reason check_product(const Node& n, const Tensor& a, const Tensor& b, int64_t terms) {
  constexpr int64_t kMaxIntegerTerms = 65536;  // 8-bit products whose sum stays within 32 bits
  if (n.compute == DType::i32) {
    if (!has_exact_int8()) return Reason::no("the processor has no exact 8-bit products");
    if (a.dtype != DType::i8 && a.dtype != DType::u8) return Reason::no("input ", describe(a), " is neither i8 nor u8");
    if (b.dtype != DType::i8) return Reason::no("input ", describe(b), " is not i8");
    if (terms > kMaxIntegerTerms)
      return Reason::no(spelling(n), " sums ", terms, " integer products, the most are ", kMaxIntegerTerms);
    return Reason::yes();
  }
  if (n.compute != DType::f32) return Reason::no(spelling(n), " computes in ", n.compute, ", allowed: f32 or i32");
  for (const Tensor* t : {&a, &b})
    if (!is_convertible(t->dtype)) return Reason::no("input ", describe(*t), " has no exact f32 value");
  return Reason::yes();
}

ProductTypes product_types(const Node& n, const Tensor& a, const Tensor& b, const Tensor& result, bool has_ops) {
  DType type = result.dtype;
  if (n.compute == DType::i32) {
    // Sums stay exact; what post-ops made of them is a float that is rounded as it is stored.
    if (!has_ops) return {a.dtype, b.dtype, DType::i32};
    bool native = type == DType::i32 || type == DType::i8 || type == DType::u8;
    return {a.dtype, b.dtype, native ? type : DType::f32};
  }
  bool bf16 = a.dtype == DType::bf16 && b.dtype == DType::bf16 && has_bf16();
  DType input = bf16 ? DType::bf16 : DType::f32;
  return {input, input, bf16 && type == DType::bf16 ? DType::bf16 : DType::f32};
}

std::optional<Spread> spread(const Tensor& operand, const Dims& result, int channel) {
  if (operand.numel() == 1) return Spread::scalar;
  if (operand.dims == result) return Spread::full;
  int missing = result.size() - operand.rank();
  if (missing < 0) return std::nullopt;
  for (int i = 0; i < operand.rank(); ++i)
    if (operand.dims[i] != (i + missing == channel ? result[channel] : 1)) return std::nullopt;
  return Spread::channel;
}

double product_seconds(const Region& r, const Device& d, double bytes) {
  // Measured fractions of the processor's peak (8-bit integers: of the peak of 16-bit numbers).
  constexpr double kFloat = 0.95, kBf16 = 0.95, kInt8 = 1.8;
  const Node& n = r.graph->node(r.nodes[0]);
  const Tensor &a = r.graph->tensor(n.in[0]), &b = r.graph->tensor(n.in[1]);
  // Without AMX, it multiplies 16-bit numbers by vectors.
  bool tiles = readiness().isa.find("amx") != std::string::npos;
  double narrow = tiles ? d.rates.bits16 : std::min(d.rates.bits16, this_machine().narrow_flops_one * d.units);
  double peak = kFloat * d.rates.f32;
  if (n.compute == DType::i32)
    peak = kInt8 * narrow;
  else if (product_types(n, a, b, r.graph->tensor(n.out[0]), false).a == DType::bf16)
    peak = kBf16 * narrow;
  return std::max(region_flops(r) / peak, bytes / d.bytes_per_second);
}

Attached attach(const Chain& c, const std::function<Arg(TensorId)>& place) {
  Attached a;
  for (size_t i = 0; i < c.ops.size(); ++i) {
    const PostOp& p = c.ops[i];
    if (p.operand == kNone) {
      append_eltwise(a.ops, p.what, p.alpha, p.beta);
      continue;
    }
    Arg arg = place(p.operand);
    arg.index = DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1;
    a.ops.append_binary(p.what, arg.desc);
    a.args.push_back(arg);
  }
  return a;
}

}  // namespace tsr::onednn
