// SPDX-License-Identifier: Apache-2.0
// The window of an output element: which elements of x it reads with which weight.
#pragma once

#include <cmath>
#include <limits>

#include "engines/reference/ops/list.hpp"
#include "graph/ops/resample.hpp"

namespace tsr::ref {

struct Tap {
  int64_t element = 0;  // row-major among the spatial positions of x; -1: padding without an element
  bool inside = true;   // not padding; padding by the nearest element has an element all the same
  double weight = 1;
  int64_t position = 0;  // row-major within the window
};

// Taps of one spatial output element `at`, row-major; `o` has its defaults filled in, `x` are the spatial sizes.
inline std::vector<Tap> window_taps(const tessera::ResampleOptions& o, const Dims& x, const Dims& at) {
  using tessera::ResampleMode;
  std::vector<Tap> taps = {Tap{}};
  for (int d = 0; d < x.size(); ++d) {
    Ratio s = resample_position(o, at[d], d);
    struct Place {
      int64_t at;
      double weight;
    };
    std::vector<Place> places;
    if (o.mode == ResampleMode::nearest) {
      places = {{floor_div(2 * s.num + s.den, 2 * s.den), 1}};
    } else if (o.mode == ResampleMode::bilinear) {
      int64_t low = floor_div(s.num, s.den);
      double fraction = static_cast<double>(s.num - low * s.den) / static_cast<double>(s.den);
      places = {{low, 1 - fraction}, {low + 1, fraction}};
    } else {
      Ratio w = o.window[static_cast<size_t>(d)];
      int64_t end = ceil_div(s.num * w.den + w.num * s.den, s.den * w.den);
      for (int64_t i = ceil_div(s.num, s.den); i < end; ++i) places.push_back({i, 1});
    }
    std::vector<Tap> longer;
    for (const Tap& t : taps)
      for (size_t k = 0; k < places.size(); ++k) {
        Tap next = t;
        int64_t place = places[k].at;
        bool inside = place >= 0 && place < x[d];
        if (!inside) place = std::clamp<int64_t>(place, 0, x[d] - 1);
        next.inside = t.inside && inside;
        bool exists = t.element >= 0 && (inside || o.padding == tessera::PaddingMode::edge);
        next.element = exists ? t.element * x[d] + place : -1;
        next.weight = t.weight * places[k].weight;
        next.position = t.position * window_extent(o, d) + static_cast<int64_t>(k);
        longer.push_back(next);
      }
    taps = std::move(longer);
  }
  // Means are sums with equal weights.
  int64_t counted = 0;
  for (const Tap& t : taps) counted += o.mode == ResampleMode::avg_pool_include || t.inside;
  for (Tap& t : taps) {
    if (o.mode == ResampleMode::avg_pool_exclude && !t.inside)
      t.weight = 0;
    else if (o.mode == ResampleMode::avg_pool_include || o.mode == ResampleMode::avg_pool_exclude)
      t.weight = 1 / static_cast<double>(counted);
  }
  return taps;
}

// The value that a tap reads from the plane of x that starts at `plane`.
template <class R>
R tap_value(const tessera::ResampleOptions& o, const R* plane, const Tap& t) {
  if (t.element >= 0) return plane[t.element];
  return o.padding == tessera::PaddingMode::neg_inf ? -std::numeric_limits<R>::infinity() : R(0);
}

// The first tap with the largest value; NaN counts as larger than everything. Null for an empty window.
template <class R>
const Tap* largest_tap(const tessera::ResampleOptions& o, const R* plane, const std::vector<Tap>& taps) {
  const Tap* best = nullptr;
  for (const Tap& t : taps) {
    if (!best) {
      best = &t;
      continue;
    }
    R value = tap_value(o, plane, t), most = tap_value(o, plane, *best);
    // Padding with -infinity never beats an element, not even one that is -infinity itself.
    bool first_element =
        best->element < 0 && t.element >= 0 && value == most && o.padding == tessera::PaddingMode::neg_inf;
    if (!std::isnan(most) && (std::isnan(value) || value > most || first_element)) best = &t;
  }
  return best;
}

// Calls f(plane, element, taps, options) for every output element: where its plane of x starts, its own row-major
// position, its window, and the options with their defaults filled in.
template <class F>
void each_window(const tessera::ResampleOptions& options, const Dims& x, const Dims& y, const F& f) {
  int spatial = x.size() - 2;
  auto o = with_defaults(options, spatial);
  Dims x_spatial, y_spatial;
  for (int d = 0; d < spatial; ++d) x_spatial.push_back(x[2 + d]), y_spatial.push_back(y[2 + d]);
  Dims at = Dims::filled(spatial, 0);
  int64_t elements = volume(y_spatial);
  for (int64_t e = 0; e < elements; ++e, next_index(at, y_spatial)) {
    std::vector<Tap> taps = window_taps(o, x_spatial, at);
    for (int64_t plane = 0; plane < y[0] * y[1]; ++plane) f(plane * volume(x_spatial), plane * elements + e, taps, o);
  }
}

}  // namespace tsr::ref
