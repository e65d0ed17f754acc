// SPDX-License-Identifier: Apache-2.0
// Pointwise operations: y = f(alpha1 * x, alpha2 * b), element by element, sizes of 1 broadcast.
#include "graph/gradient.hpp"
#include "graph/pointwise_modes.hpp"

#include <array>
#include <cmath>

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

using tessera::PointwiseOptions;
constexpr size_t kModes = static_cast<size_t>(PointwiseMode::select) + 1;

// In the order of the enumeration.
constexpr std::array<PointwiseInfo, kModes> kInfo = {{
    {"add", 2, "x + b"},
    {"mul", 2, "x b"},
    {"min", 2, "the smaller of x and b; NaN wins"},
    {"max", 2, "the larger of x and b; NaN wins"},
    {"sqrt", 1, "square root"},
    {"add_square", 2, "x + b^2"},
    {"div", 2, "x / b; integers truncate, x / 0 is 0"},
    {"mod", 2, "remainder with the sign of x"},
    {"pow", 2, "x^b"},
    {"sub", 2, "x - b"},
    {"abs", 1, "|x|"},
    {"ceil", 1, "smallest whole number not below x"},
    {"cos", 1, "cos x"},
    {"exp", 1, "e^x"},
    {"floor", 1, "largest whole number not above x"},
    {"log", 1, "natural logarithm"},
    {"neg", 1, "-x"},
    {"rsqrt", 1, "1 / sqrt(x)"},
    {"sin", 1, "sin x"},
    {"tan", 1, "tan x"},
    {"erf", 1, "error function"},
    {"identity", 1, "x, converted to the type of y"},
    {"reciprocal", 1, "1 / x"},
    {"atan2", 2, "angle of the point (b, x)"},
    {"floor_mod", 2, "x - floor(x / b) b: remainder with the sign of b"},
    {"relu", 1, "x clipped to lower..upper; below lower: lower + slope (x - lower)"},
    {"tanh", 1, "tanh x"},
    {"sigmoid", 1, "1 / (1 + e^-x)"},
    {"elu", 1, "x where x > 0, else alpha (e^x - 1)"},
    {"gelu", 1, "x Phi(x), Phi the normal distribution"},
    {"softplus", 1, "log(1 + e^(beta x)) / beta"},
    {"swish", 1, "x sigmoid(beta x)"},
    {"gelu_tanh", 1, "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2"},
    {"relu_bwd", 2, "dy times the derivative of relu at x"},
    {"tanh_bwd", 2, "dy times the derivative of tanh at x"},
    {"sigmoid_bwd", 2, "dy times the derivative of sigmoid at x"},
    {"elu_bwd", 2, "dy times the derivative of elu at x"},
    {"gelu_bwd", 2, "dy times the derivative of gelu at x"},
    {"softplus_bwd", 2, "dy times the derivative of softplus at x"},
    {"swish_bwd", 2, "dy times the derivative of swish at x"},
    {"gelu_tanh_bwd", 2, "dy times the derivative of gelu_tanh at x"},
    {"cmp_eq", 2, "x = b", true},
    {"cmp_neq", 2, "x differs from b", true},
    {"cmp_gt", 2, "x > b", true},
    {"cmp_ge", 2, "x >= b", true},
    {"cmp_lt", 2, "x < b", true},
    {"cmp_le", 2, "x <= b", true},
    {"logical_and", 2, "x and b", true},
    {"logical_or", 2, "x or b", true},
    {"logical_not", 1, "not x", true},
    {"gen_index", 1, "index of the element along `axis`"},
    {"select", 3, "x where t holds, else b"},
}};

std::array<std::string_view, kModes> make_names() {
  std::array<std::string_view, kModes> names;
  for (size_t i = 0; i < kModes; ++i) names[i] = kInfo[i].name;
  return names;
}

void fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<PointwiseOptions>(&options);
  v("mode", o.mode, pointwise_names(), "as the name of the operation says");
  v("alpha1", o.alpha1, "factor of x");
  v("alpha2", o.alpha2, "factor of b");
  v("lower", o.lower, "relu: where it begins");
  v("upper", o.upper, "relu: where it ends");
  v("slope", o.slope, "relu: below lower");
  v("alpha", o.alpha, "elu: its limit is -alpha");
  v("beta", o.beta, "softplus, swish: factor of x inside");
  v("axis", o.axis, "gen_index: whose index");
}

void infer(Infer& ctx) {
  const auto& o = ctx.options<PointwiseOptions>();
  const PointwiseInfo& mode = info(o.mode);
  for (int i = 0; i < 3; ++i) {
    if (i < mode.arity)
      (void)ctx.in(i);
    else
      ctx.check(!ctx.has(i), "takes ", mode.arity, mode.arity == 1 ? " input" : " inputs", ", ", i + 1, " given");
  }
  Dims dims = ctx.in(0).dims;
  for (int i = 1; i < mode.arity; ++i) {
    auto b = broadcast(dims, ctx.in(i).dims);
    ctx.check(b.has_value(), ctx.describe(0), " and ", ctx.describe(i),
              " do not broadcast: each size must be equal or 1");
    dims = *b;
  }
  if (o.mode == PointwiseMode::gen_index) (void)normalize_axis(o.axis, dims.size());
  if (is_integer(ctx.node().compute))
    for (double factor : {o.alpha1, o.alpha2})
      ctx.check(std::fabs(factor) < 0x1p62, "multiplies integers by ", factor, ", which is no integer of 64 bits");
  bool complex = false;
  for (int i = 0; i < mode.arity; ++i) complex = complex || is_complex(ctx.in(i).dtype);
  if (complex) {
    using M = PointwiseMode;
    for (M m : {M::add, M::sub, M::mul, M::div, M::neg, M::identity, M::reciprocal, M::add_square, M::exp, M::select})
      complex = complex && o.mode != m;
    ctx.check(!complex,
              "is not defined for complex numbers; allowed: add, sub, mul, div, neg, identity, reciprocal, add_square, "
              "exp, select");
  }
  // The layout follows the first input that has all the elements.
  const Tensor* like = nullptr;
  for (int i = mode.arity - 1; i >= 0; --i)
    if (ctx.in(i).dims == dims) like = &ctx.in(i);
  DType type = ctx.node().compute;
  if (mode.boolean)
    type = DType::boolean;
  else if (o.mode == PointwiseMode::gen_index)
    type = DType::i32;
  else if (o.mode == PointwiseMode::identity)
    type = ctx.in(0).dtype;
  ctx.output(0, dims, type, like);
}

// Gradients of the two operands; kNone for what nobody wants.
struct Pair {
  TensorId x = kNone, b = kNone;
};

TensorId sign(Gradient& g, TensorId x) {
  return g.minus(g.compare(PointwiseMode::cmp_gt, x, 0), g.compare(PointwiseMode::cmp_lt, x, 0));
}

// x^b: 0 where b is 0; the logarithm counts only where x is positive.
Pair pow_backward(Gradient& g, TensorId d, TensorId x, TensorId b) {
  using M = PointwiseMode;
  Pair r;
  if (g.wants(0)) {
    TensorId slope = g.times(g.times(d, b), g.apply(M::pow, x, g.minus(b, g.number(1))));
    r.x = g.select(g.compare(M::cmp_eq, b, 0), g.number(0), slope);
  }
  if (g.wants(1)) {
    TensorId slope = g.times(g.times(d, g.out(0)), g.apply(M::log, x));
    r.b = g.select(g.compare(M::cmp_gt, x, 0), slope, g.number(0));
  }
  return r;
}

// y = f(x, b), with x and b already multiplied by their factors.
Pair two_operands(Gradient& g, PointwiseMode mode, TensorId d, TensorId x, TensorId b) {
  using M = PointwiseMode;
  TensorId y = g.out(0);
  bool dx = g.wants(0), db = g.wants(1);
  switch (mode) {
    case M::add:
      return {d, d};
    case M::sub:
      return {d, db ? g.negative(d) : kNone};
    case M::mul:
      return {dx ? g.times(d, b) : kNone, db ? g.times(d, x) : kNone};
    case M::div:
      return {dx ? g.over(d, b) : kNone, db ? g.negative(g.over(g.times(d, y), b)) : kNone};
    case M::add_square:
      return {d, db ? g.scaled(g.times(d, b), 2) : kNone};
    case M::mod:
    case M::floor_mod:  // y = x - q b with a constant q
      return {d, db ? g.times(d, g.over(g.minus(y, x), b)) : kNone};
    case M::min:
    case M::max: {  // equal operands: x has it
      TensorId is_x = g.apply(mode == M::max ? M::cmp_ge : M::cmp_le, x, b);
      return {dx ? g.select(is_x, d, g.number(0)) : kNone, db ? g.select(is_x, g.number(0), d) : kNone};
    }
    case M::pow:
      return pow_backward(g, d, x, b);
    case M::atan2: {
      TensorId scaled = g.over(d, g.sum(g.times(x, x), g.times(b, b)));
      return {dx ? g.times(scaled, b) : kNone, db ? g.negative(g.times(scaled, x)) : kNone};
    }
    default:
      return {};
  }
}

// y = f(x) with x already multiplied by its factor; kNone for functions that are flat.
TensorId one_operand(Gradient& g, PointwiseMode mode, TensorId d, TensorId x) {
  using M = PointwiseMode;
  TensorId y = g.out(0);
  switch (mode) {
    case M::sqrt:
      return g.over(g.scaled(d, 0.5), y);
    case M::rsqrt:
      return g.times(g.scaled(d, -0.5), g.times(y, g.times(y, y)));
    case M::abs:
      return g.times(d, sign(g, x));
    case M::cos:
      return g.negative(g.times(d, g.apply(M::sin, x)));
    case M::sin:
      return g.times(d, g.apply(M::cos, x));
    case M::tan:
      return g.times(d, g.apply(M::add_square, g.number(1), y));
    case M::exp:
      return g.times(d, y);
    case M::log:
      return g.over(d, x);
    case M::neg:
      return g.negative(d);
    case M::erf:
      return g.times(g.scaled(d, 2 / std::sqrt(std::acos(-1.0))), g.apply(M::exp, g.negative(g.times(x, x))));
    case M::identity:
      return d;
    case M::reciprocal:
      return g.negative(g.times(d, g.times(y, y)));
    default:
      return kNone;
  }
}

// The mode that is the gradient of an activation.
std::optional<PointwiseMode> backward_mode(PointwiseMode m) {
  if (m < PointwiseMode::relu || m > PointwiseMode::gelu_tanh) return std::nullopt;
  int step = static_cast<int>(PointwiseMode::relu_bwd) - static_cast<int>(PointwiseMode::relu);
  return static_cast<PointwiseMode>(static_cast<int>(m) + step);
}

void select_backward(Gradient& g, TensorId d, const PointwiseOptions& o) {
  TensorId zero = g.number(0), t = g.in(2), y = g.out(0);
  if (g.wants(0)) g.add(0, g.scaled(g.select(t, d, zero), o.alpha1), y);
  if (g.wants(1)) g.add(1, g.scaled(g.select(t, zero, d), o.alpha2), y);
}

void backward(Gradient& g) {
  auto o = g.options<PointwiseOptions>();
  PointwiseMode mode = o.mode;
  const PointwiseInfo& facts = info(mode);
  bool derivative = mode >= PointwiseMode::relu_bwd && mode <= PointwiseMode::gelu_tanh_bwd;
  for (int slot : {0, 1})
    if (derivative) g.refuse(slot, kSecondDerivative);
  TensorId d = g.narrow_d(), y = g.out(0);
  if (mode == PointwiseMode::select) return select_backward(g, d, o);
  if (auto m = backward_mode(mode)) {
    o.alpha2 = o.alpha1;  // the inner factor of the chain rule
    return g.add(0, g.apply(*m, g.in(0), d, kNone, o), y);
  }
  TensorId x = g.scaled(g.in(0), o.alpha1);
  Pair r;
  if (facts.arity == 2)
    r = two_operands(g, mode, d, x, g.scaled(g.in(1), o.alpha2));
  else
    r.x = one_operand(g, mode, d, x);
  if (r.x == kNone && r.b == kNone) return g.flat();
  if (g.wants(0)) g.add(0, g.scaled(r.x, o.alpha1), y);
  if (g.wants(1)) g.add(1, g.scaled(r.b, o.alpha2), y);
}

}  // namespace

const PointwiseInfo& info(PointwiseMode m) { return kInfo[static_cast<size_t>(m)]; }

std::span<const PointwiseInfo> pointwise_infos() { return kInfo; }

std::span<const std::string_view> pointwise_names() {
  static const auto names = make_names();
  return names;
}

const OpSpec ops::pointwise = {
    .name = "pointwise",
    .family = Family::pointwise,
    .in = {{"x"}, {"b", Slot::optional}, {"t", Slot::optional}},
    .out = {{"y"}},
    .defaults = PointwiseOptions{},
    .fields = fields,
    .infer = infer,
    .formula = "y = f(alpha1 x, alpha2 b); `_bwd` modes take x and dy; `select x b t` gives t ? x : b",
    .shapes =
        "x, b, t of any sizes that broadcast -> y; any types (complex: add, sub, mul, div, neg, identity, reciprocal, "
        "add_square, exp, select)",
    .example = "x = input f32[2,3]\nb = input f32[1,3]\ny = relu (add x b)\noutput y",
    .modes = pointwise_names(),
    .gradient = backward,
    .aliases = {{"silu", "swish"}},
};

}  // namespace tsr
