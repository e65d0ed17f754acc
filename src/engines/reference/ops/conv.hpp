// SPDX-License-Identifier: Apache-2.0
// The relation behind the three convolutions: which elements of x and w are multiplied for which element of y.
#pragma once

#include <vector>

#include "engines/reference/ops/product.hpp"
#include "graph/ops/conv.hpp"

namespace tsr::ref {

// Calls f(ix, iw, iy), row-major positions, for every product x[ix] * w[iw] that y[iy] sums.
template <class F>
void each_product(const Dims& x, const Dims& w, const Dims& y, const tessera::ConvOptions& options, const F& f) {
  int spatial = x.size() - 2;
  auto o = with_defaults(options, spatial);
  Dims window = w, picture = x;  // of one channel
  window[0] = window[1] = picture[0] = picture[1] = 1;
  int64_t filters_per_group = w[0] / conv_groups(x, w), outputs = volume(y), window_size = volume(window);
  int64_t picture_size = volume(picture);
  struct Tap {
    int64_t x, w;  // in a channel's picture and in its window
  };
  std::vector<Tap> taps;
  Dims at_y = Dims::filled(y.size(), 0);
  for (int64_t iy = 0; iy < outputs; ++iy, next_index(at_y, y)) {
    taps.clear();
    Dims at_w = Dims::filled(w.size(), 0);
    for (int64_t t = 0; t < window_size; ++t, next_index(at_w, window)) {
      int64_t ix = 0;
      bool inside = true;
      for (int i = 0; i < spatial; ++i) {
        auto d = static_cast<size_t>(i);
        bool flipped = o.mode == tessera::ConvMode::convolution;
        int64_t tap = flipped ? w[2 + i] - 1 - at_w[2 + i] : at_w[2 + i];
        int64_t place = at_y[2 + i] * o.stride[d] - o.pad[d] + tap * o.dilation[d];
        inside = inside && place >= 0 && place < x[2 + i];
        ix = ix * x[2 + i] + place;
      }
      if (inside) taps.push_back({ix, t});
    }
    int64_t first_channel = at_y[0] * x[1] + at_y[1] / filters_per_group * w[1];
    for (int64_t c = 0; c < w[1]; ++c)
      for (const Tap& t : taps)
        f((first_channel + c) * picture_size + t.x, (at_y[1] * w[1] + c) * window_size + t.w, iy);
  }
}

// Writes alpha * sum + beta * c. Integer sums stay exact unless a factor makes them real.
template <class T, class R>
void scaled_output(const Context<R>& ctx, Array<T> sum, int c_slot) {
  move_products(ctx, sum);
  const auto& o = ctx.template options<tessera::ConvOptions>();
  if (o.alpha == 1 && o.beta == 0) return ctx.out(0, sum);
  using S = std::conditional_t<std::is_same_v<T, int64_t>, double, T>;
  Array<S> y(sum.dims), c;
  if (ctx.has(c_slot)) c = ctx.template in<S>(c_slot);
  for (int64_t i = 0; i < y.size(); ++i) {
    y[i] = static_cast<S>(o.alpha) * static_cast<S>(sum[i]);
    if (ctx.has(c_slot)) y[i] += static_cast<S>(o.beta) * c[i];
  }
  ctx.out(0, y);
}

}  // namespace tsr::ref
