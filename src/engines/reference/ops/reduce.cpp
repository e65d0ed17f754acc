// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engines/reference/exact.hpp"
#include "engines/reference/ops/list.hpp"

namespace tsr::ref {
namespace {

using tessera::ReduceMode;
using tessera::ReduceOptions;

template <class T>
auto magnitude(T v) {
  if constexpr (std::is_same_v<T, int64_t>)
    return v < 0 ? -v : v;
  else
    return std::abs(v);
}

template <class T>
T start(ReduceMode m) {
  if constexpr (std::is_floating_point_v<T> || std::is_integral_v<T>) {
    constexpr bool real = std::is_floating_point_v<T>;
    if (m == ReduceMode::min) return real ? std::numeric_limits<T>::infinity() : std::numeric_limits<T>::max();
    if (m == ReduceMode::max) return real ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  }
  return m == ReduceMode::mul || m == ReduceMode::mul_no_zeros ? T(1) : T(0);
}

template <class T>
T combine(ReduceMode m, T a, T v) {
  switch (m) {
    case ReduceMode::mul:
      return a * v;
    case ReduceMode::mul_no_zeros:
      return v == T(0) ? a : a * v;
    case ReduceMode::norm1:
      return a + T(magnitude(v));
    case ReduceMode::norm2:
      return a + v * v;
    case ReduceMode::amax:
      v = T(magnitude(v));
      [[fallthrough]];
    case ReduceMode::max:
      if constexpr (!std::is_same_v<T, std::complex<double>>) return is_nan(a) || (!is_nan(v) && a >= v) ? a : v;
      return a;
    case ReduceMode::min:
      if constexpr (!std::is_same_v<T, std::complex<double>>) return is_nan(a) || (!is_nan(v) && a <= v) ? a : v;
      return a;
    default:
      return a + v;
  }
}

template <class T, class R>
void apply(const Context<R>& c) {
  ReduceMode mode = c.template options<ReduceOptions>().mode;
  Array<T> x = c.template in<T>(0), y(c.out_tensor(0).dims, start<T>(mode));
  Ints offsets;
  if (c.has(1)) offsets = c.integers(1);
  std::vector<int64_t> count(y.data.size(), 0);
  Dims index = Dims::filled(x.rank(), 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) {
    Dims target = index;
    for (int d = 0; d < x.rank(); ++d)
      if (y.dims[d] != x.dims[d] && offsets.empty())
        target[d] = index[d] / (x.dims[d] / y.dims[d]);
      else if (y.dims[d] == 1)
        target[d] = 0;
    if (!offsets.empty()) {
      int64_t group = -1;  // the last group that starts at or before this row
      for (size_t g = 0; g < offsets.size(); ++g)
        if (offsets[g] <= index[1]) group = static_cast<int64_t>(g);
      if (group < 0) continue;
      target[0] = group;
      target[1] = 0;
    }
    int64_t o = y.flat(target);
    y[o] = combine(mode, y[o], x[i]);
    ++count[static_cast<size_t>(o)];
  }
  for (int64_t o = 0; o < y.size(); ++o) {
    int64_t n = count[static_cast<size_t>(o)];
    if (mode == ReduceMode::avg) y[o] = n == 0 && std::is_same_v<T, int64_t> ? T(0) : y[o] / T(static_cast<R>(n));
    if (mode == ReduceMode::norm2) y[o] = T(std::sqrt(y[o]));
  }
  c.out(0, y);
}

}  // namespace

template <class R>
void reduce(const Context<R>& c) {
  if (is_complex(c.node().compute)) return apply<std::complex<double>>(c);
  if (is_integer(c.node().compute)) return apply<int64_t>(c);
  apply<R>(c);
}

TESSERA_REFERENCE(reduce);

}  // namespace tsr::ref
