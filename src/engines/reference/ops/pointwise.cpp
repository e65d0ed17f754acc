// SPDX-License-Identifier: Apache-2.0
// The mathematics of every pointwise mode. Integer compute types are exact (64-bit, wrapping); complex ones use complex
// arithmetic; everything else is real.
#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr::ref {
namespace {

using tessera::PointwiseOptions;
using M = PointwiseMode;

template <class R>
R sigmoid(R x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
template <class R>
R normal_cdf(R x) {
  return R(0.5) * std::erfc(-x * R(M_SQRT1_2));
}
template <class R>
R normal_pdf(R x) {
  return std::exp(-x * x / 2) * R(0.3989422804014326779399461);
}
template <class R>
R gelu_tanh_inner(R x) {
  return R(0.7978845608028653558798921) * (x + R(0.044715) * x * x * x);
}
template <class R>
R softplus(R x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}
template <class R>
R nan_max(R a, R b) {
  return std::isnan(a) || a > b ? a : b;
}
template <class R>
R nan_min(R a, R b) {
  return std::isnan(a) || a < b ? a : b;
}

// x - floor(x / b) b, without the rounding and overflow of the quotient.
template <class R>
R floor_mod(R x, R b) {
  R r = std::fmod(x, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

template <class R>
R activation(const PointwiseOptions& o, R x) {
  auto lower = static_cast<R>(o.lower), upper = static_cast<R>(o.upper), slope = static_cast<R>(o.slope);
  auto alpha = static_cast<R>(o.alpha), beta = static_cast<R>(o.beta);
  switch (o.mode) {
    case M::relu:
      // Without a slope -inf is clipped, not multiplied by 0.
      if (x < lower) return slope == 0 ? lower : lower + slope * (x - lower);
      return x > upper ? upper : x;
    case M::tanh:
      return std::tanh(x);
    case M::sigmoid:
      return sigmoid(x);
    case M::elu:
      return x > 0 ? x : alpha * std::expm1(x);
    case M::gelu:
      return x * normal_cdf(x);
    case M::softplus:
      return softplus(beta * x) / beta;
    case M::swish:
      return x * sigmoid(beta * x);
    case M::gelu_tanh:
      return R(0.5) * x * (1 + std::tanh(gelu_tanh_inner(x)));
    default:
      return x;
  }
}

// Derivative of the activation at x. At the kinks of relu the flat side counts.
template <class R>
R slope_at(const PointwiseOptions& o, R x) {
  auto lower = static_cast<R>(o.lower), upper = static_cast<R>(o.upper), slope = static_cast<R>(o.slope);
  auto alpha = static_cast<R>(o.alpha), beta = static_cast<R>(o.beta);
  switch (o.mode) {
    case M::relu_bwd:
      return std::isnan(x) ? x : x <= lower ? slope : x >= upper ? R(0) : R(1);
    case M::tanh_bwd: {
      R t = std::tanh(x);
      return 1 - t * t;
    }
    case M::sigmoid_bwd: {
      R s = sigmoid(x);
      return s * (1 - s);
    }
    case M::elu_bwd:
      return x > 0 ? R(1) : alpha * std::exp(x);
    case M::gelu_bwd:
      return normal_cdf(x) + x * normal_pdf(x);
    case M::softplus_bwd:
      return sigmoid(beta * x);
    case M::swish_bwd: {
      R s = sigmoid(beta * x);
      return s + beta * x * s * (1 - s);
    }
    case M::gelu_tanh_bwd: {
      R t = std::tanh(gelu_tanh_inner(x));
      R inner = R(0.7978845608028653558798921) * (1 + 3 * R(0.044715) * x * x);
      return R(0.5) * (1 + t) + R(0.5) * x * (1 - t * t) * inner;
    }
    default:
      return 1;
  }
}

template <class R>
R real_value(const PointwiseOptions& o, R x, R b, R t) {
  switch (o.mode) {
    case M::add:
      return x + b;
    case M::mul:
      return x * b;
    case M::min:
      return nan_min(x, b);
    case M::max:
      return nan_max(x, b);
    case M::sqrt:
      return std::sqrt(x);
    case M::add_square:
      return x + b * b;
    case M::div:
      return x / b;
    case M::mod:
      return std::fmod(x, b);
    case M::pow:
      return std::pow(x, b);
    case M::sub:
      return x - b;
    case M::abs:
      return std::fabs(x);
    case M::ceil:
      return std::ceil(x);
    case M::cos:
      return std::cos(x);
    case M::exp:
      return std::exp(x);
    case M::floor:
      return std::floor(x);
    case M::log:
      return std::log(x);
    case M::neg:
      return -x;
    case M::rsqrt:
      return 1 / std::sqrt(x);
    case M::sin:
      return std::sin(x);
    case M::tan:
      return std::tan(x);
    case M::erf:
      return std::erf(x);
    case M::identity:
      return x;
    case M::reciprocal:
      return 1 / x;
    case M::atan2:
      return std::atan2(x, b);
    case M::floor_mod:
      return floor_mod(x, b);
    case M::cmp_eq:
      return x == b;
    case M::cmp_neq:
      return x != b;
    case M::cmp_gt:
      return x > b;
    case M::cmp_ge:
      return x >= b;
    case M::cmp_lt:
      return x < b;
    case M::cmp_le:
      return x <= b;
    case M::logical_and:
      return x != 0 && b != 0;
    case M::logical_or:
      return x != 0 || b != 0;
    case M::logical_not:
      return x == 0;
    case M::select:
      return t != 0 ? x : b;
    default:
      return o.mode >= M::relu_bwd && o.mode <= M::gelu_tanh_bwd ? b * slope_at(o, x) : activation(o, x);
  }
}

// Two's complement wrap-around instead of undefined overflow.
int64_t wrap(uint64_t v) { return static_cast<int64_t>(v); }

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t r = 1, b = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1, b *= b)
    if (exponent & 1) r *= b;
  return wrap(r);
}

int64_t integer_value(const PointwiseOptions& o, int64_t x, int64_t b, int64_t t) {
  auto ux = static_cast<uint64_t>(x), ub = static_cast<uint64_t>(b);
  switch (o.mode) {
    case M::add:
      return wrap(ux + ub);
    case M::sub:
      return wrap(ux - ub);
    case M::mul:
      return wrap(ux * ub);
    case M::add_square:
      return wrap(ux + ub * ub);
    case M::min:
      return std::min(x, b);
    case M::max:
      return std::max(x, b);
    case M::div:
      return b == 0 ? 0 : b == -1 ? wrap(0 - ux) : x / b;  // truncates; x/0 is 0
    case M::mod:
      return b == 0 || b == -1 ? 0 : x % b;
    case M::floor_mod:
      return b == 0 || b == -1 ? 0 : (x % b + b) % b;
    case M::pow:
      return integer_power(x, b);
    case M::abs:
      return x < 0 ? wrap(0 - ux) : x;
    case M::neg:
      return wrap(0 - ux);
    case M::identity:
      return x;
    case M::select:
      return t != 0 ? x : b;
    case M::relu:
      return x < 0 ? 0 : x;
    case M::cmp_eq:
      return x == b;
    case M::cmp_neq:
      return x != b;
    case M::cmp_gt:
      return x > b;
    case M::cmp_ge:
      return x >= b;
    case M::cmp_lt:
      return x < b;
    case M::cmp_le:
      return x <= b;
    case M::logical_and:
      return x && b;
    case M::logical_or:
      return x || b;
    case M::logical_not:
      return !x;
    default:
      return static_cast<int64_t>(
          std::llrint(real_value(o, static_cast<double>(x), static_cast<double>(b), static_cast<double>(t))));
  }
}

std::complex<double> complex_value(const PointwiseOptions& o, std::complex<double> x, std::complex<double> b,
                                   std::complex<double> t) {
  switch (o.mode) {
    case M::add:
      return x + b;
    case M::sub:
      return x - b;
    case M::mul:
      return x * b;
    case M::div:
      return x / b;
    case M::add_square:
      return x + b * b;
    case M::neg:
      return -x;
    case M::reciprocal:
      return 1.0 / x;
    case M::exp:
      return std::exp(x);
    case M::select:
      return t != 0.0 ? x : b;
    default:
      return x;
  }
}

template <class T, class R, class F>
void apply(const Context<R>& c, const F& f) {
  const auto& o = c.template options<PointwiseOptions>();
  Array<T> y(c.out_tensor(0).dims), x = c.template in<T>(0), b, t;
  if (c.has(1)) b = c.template in<T>(1);
  if (c.has(2)) t = c.template in<T>(2);
  auto scaled = [](T v, double alpha) {
    if (alpha == 1) return v;
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)  // products of integers wrap around
      return static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(static_cast<int64_t>(alpha)));
    else
      return static_cast<T>(v * static_cast<T>(alpha));
  };
  Dims index = Dims::filled(y.rank(), 0);
  for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims)) {
    if (o.mode == M::gen_index) {
      y[i] = static_cast<T>(index[static_cast<int>(normalize_axis(o.axis, y.rank()))]);
      continue;
    }
    T xv = scaled(x.broadcast_at(index), o.alpha1);
    T bv = c.has(1) ? scaled(b.broadcast_at(index), o.alpha2) : T{};
    y[i] = f(o, xv, bv, c.has(2) ? t.broadcast_at(index) : T{});
  }
  c.out(0, y);
}

}  // namespace

template <class R>
void pointwise(const Context<R>& c) {
  bool integers = is_integer(c.node().compute), booleans = is_boolean(c.node().compute);
  // Comparisons of integers with a boolean compute type are exact too; a mask or a real operand makes them real.
  if (booleans)
    for (int s = 0; s < 3; ++s)
      if (c.has(s)) integers = (s == 0 || integers) && !is_real(c.in_tensor(s).dtype);
  if (is_complex(c.node().compute)) return apply<std::complex<double>>(c, complex_value);
  if (integers) return apply<int64_t>(c, integer_value);
  apply<R>(c, real_value<R>);
}

TESSERA_REFERENCE(pointwise);

}  // namespace tsr::ref
