// SPDX-License-Identifier: Apache-2.0
// Normalisation by the energy in a box around each element, along any dimensions.
#pragma once

#include <cmath>

#include "engines/reference/ops/list.hpp"
#include "graph/ops/lrn.hpp"

namespace tsr::ref {

struct Box {
  int first_dim = 1, last_dim = 1;  // dimensions that the box extends over
  int64_t before = 0, after = 0;    // elements before and after the centre in each of them
  double count = 1;                 // what sums are divided by
};

inline Box channel_box(const tessera::LrnOptions& o) {
  return {1, 1, lrn_before(o.n), lrn_after(o.n), static_cast<double>(o.n)};
}

inline Box spatial_box(const tessera::LrnOptions& o, int rank) {
  return {2, rank - 1, lrn_before(o.n), lrn_before(o.n), std::pow(static_cast<double>(o.n), rank - 2)};
}

// sum[p] = sum of values[q] over the box around p, as far as it is inside. `swapped` sums over the q whose box holds p.
template <class R>
Array<R> box_sums(const Array<R>& values, const Box& box, bool swapped = false) {
  int64_t before = swapped ? box.after : box.before, after = swapped ? box.before : box.after;
  Array<R> current = values;
  // A box is a product of intervals: one dimension after the other.
  for (int d = box.first_dim; d <= box.last_dim; ++d) {
    Array<R> next(values.dims);
    Dims at = Dims::filled(values.rank(), 0);
    for (int64_t i = 0; i < next.size(); ++i, next_index(at, values.dims)) {
      Dims q = at;
      for (q[d] = std::max<int64_t>(0, at[d] - before); q[d] <= std::min(values.dims[d] - 1, at[d] + after); ++q[d])
        next[i] += current.at(q);
    }
    current = std::move(next);
  }
  return current;
}

// s = k + alpha / count sum v^2
template <class R>
Array<R> energies(const Array<R>& v, const Box& box, const tessera::LrnOptions& o) {
  Array<R> squares = v;
  for (R& s : squares.data) s *= s;
  Array<R> sums = box_sums(squares, box);
  for (R& s : sums.data) s = static_cast<R>(o.k) + static_cast<R>(o.alpha / box.count) * s;
  return sums;
}

// y = v s^-beta
template <class R>
Array<R> divided(const Array<R>& v, const Box& box, const tessera::LrnOptions& o) {
  Array<R> y = v, s = energies(v, box, o);
  for (int64_t i = 0; i < y.size(); ++i) y[i] *= std::pow(s[i], static_cast<R>(-o.beta));
  return y;
}

// dv[p] = dy[p] s[p]^-beta - 2 alpha beta / count v[p] sum of dy[q] v[q] s[q]^(-beta - 1) over the q whose box holds p
template <class R>
Array<R> divided_gradient(const Array<R>& v, const Array<R>& dy, const Box& box, const tessera::LrnOptions& o) {
  Array<R> s = energies(v, box, o), pulls(v.dims), dv(v.dims);
  for (int64_t i = 0; i < v.size(); ++i) pulls[i] = dy[i] * v[i] * std::pow(s[i], static_cast<R>(-o.beta - 1));
  Array<R> sums = box_sums(pulls, box, true);
  auto factor = static_cast<R>(2 * o.alpha * o.beta / box.count);
  for (int64_t i = 0; i < v.size(); ++i)
    dv[i] = dy[i] * std::pow(s[i], static_cast<R>(-o.beta)) - factor * v[i] * sums[i];
  return dv;
}

}  // namespace tsr::ref
