// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding in either direction: `sign` is +1 for the forward turn, -1 for the gradient.
#pragma once

#include <cmath>

#include "engines/reference/context.hpp"
#include "graph/ops/rope.hpp"

namespace tsr::ref {

template <class R>
void rotate(const Context<R>& c, R sign) {
  const auto& o = c.template options<tessera::RopeOptions>();
  Array<R> x = c.in(0), freqs = c.in(1), y(x.dims);
  int64_t r = rope_dim(o, c.in_tensor(0)), half = r / 2, first = x.dims[3] - r;
  bool positions_first = rope_positions(c.in_tensor(1)) == 0;
  R scale = static_cast<R>(o.scale);
  for (int64_t b = 0; b < x.dims[0]; ++b)
    for (int64_t h = 0; h < x.dims[1]; ++h)
      for (int64_t s = 0; s < x.dims[2]; ++s) {
        for (int64_t k = 0; k < first; ++k) y.at(b, h, s, k) = scale * x.at(b, h, s, k);
        for (int64_t k = 0; k < half; ++k) {
          R theta = positions_first ? freqs.at(s, 0, 0, k) : freqs.at(0, 0, s, k);
          R cosine = std::cos(theta), sine = sign * std::sin(theta);
          R low = x.at(b, h, s, first + k), high = x.at(b, h, s, first + half + k);
          y.at(b, h, s, first + k) = scale * (low * cosine - high * sine);
          y.at(b, h, s, first + half + k) = scale * (high * cosine + low * sine);
        }
      }
  c.out(0, y);
}

}  // namespace tsr::ref
