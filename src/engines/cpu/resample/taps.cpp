// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/resample/taps.hpp"

#include <algorithm>

namespace tsr::cpu {
namespace {

using tessera::PaddingMode;
using tessera::ResampleMode;

bool is_mean(ResampleMode m) { return m == ResampleMode::avg_pool_include || m == ResampleMode::avg_pool_exclude; }

// Positions that result element `at` looks at, inside x or not; places count them, weights are those of interpolation.
std::vector<Tap> window(const tessera::ResampleOptions& o, int d, int64_t at) {
  Ratio s = resample_position(o, at, d);
  if (o.mode == ResampleMode::nearest) return {{floor_div(2 * s.num + s.den, 2 * s.den), 1, 0}};
  if (o.mode == ResampleMode::bilinear) {
    int64_t low = floor_div(s.num, s.den);
    double fraction = static_cast<double>(s.num - low * s.den) / static_cast<double>(s.den);
    return {{low, 1 - fraction, 0}, {low + 1, fraction, 1}};
  }
  Ratio w = o.window[static_cast<size_t>(d)];
  int64_t first = ceil_div(s.num, s.den), end = ceil_div(s.num * w.den + w.num * s.den, s.den * w.den);
  std::vector<Tap> taps;
  for (int64_t i = first; i < end; ++i) taps.push_back({i, 1, i - first});
  return taps;
}

bool padding_matters(const tessera::ResampleOptions& o) {
  bool largest = o.mode == ResampleMode::max_pool;
  return o.padding == (largest ? PaddingMode::zero : PaddingMode::neg_inf);
}

}  // namespace

Interval sources(const AxisTaps& a, int64_t first_result, int64_t last_result) {
  Interval all;
  for (int64_t i = a.first[static_cast<size_t>(first_result)]; i < a.first[static_cast<size_t>(last_result)]; ++i) {
    int64_t s = a.taps[static_cast<size_t>(i)].source;
    if (s == kPadding) continue;
    all = all.size() == 0 ? Interval{s, s} : Interval{std::min(all.first, s), std::max(all.last, s)};
  }
  return all;
}

AxisTaps identity_taps(int64_t size) {
  AxisTaps a;
  for (int64_t i = 0; i < size; ++i) {
    a.taps.push_back({i, 1, 0});
    a.first.push_back(i + 1);
  }
  return a;
}

AxisTaps forward_taps(const tessera::ResampleOptions& o, int d, int64_t x, int64_t y) {
  int64_t inner = 1;  // places of the axes after this one
  for (int later = d + 1; later < static_cast<int>(o.window.size()); ++later) inner *= window_extent(o, later);
  AxisTaps a;
  for (int64_t at = 0; at < y; ++at) {
    std::vector<Tap> taps = window(o, d, at);
    auto inside = [&](const Tap& t) { return t.source >= 0 && t.source < x; };
    int64_t counted = o.mode == ResampleMode::avg_pool_exclude ? std::count_if(taps.begin(), taps.end(), inside)
                                                               : static_cast<int64_t>(taps.size());
    for (Tap t : taps) {
      t.place *= inner;
      if (t.weight == 0) continue;
      if (is_mean(o.mode)) t.weight = 1 / static_cast<double>(counted);
      if (!inside(t)) {
        if (o.mode == ResampleMode::avg_pool_exclude) continue;
        if (o.padding == PaddingMode::edge)
          t.source = std::clamp<int64_t>(t.source, 0, x - 1);
        else if (padding_matters(o))
          t.source = kPadding;
        else
          continue;
      }
      a.taps.push_back(t);
    }
    a.first.push_back(static_cast<int64_t>(a.taps.size()));
  }
  return a;
}

AxisTaps backward_taps(const AxisTaps& forward, int64_t x) {
  AxisTaps a;
  a.first.assign(static_cast<size_t>(x) + 1, 0);
  for (const Tap& t : forward.taps)
    if (t.source != kPadding) ++a.first[static_cast<size_t>(t.source) + 1];
  for (size_t i = 1; i < a.first.size(); ++i) a.first[i] += a.first[i - 1];
  a.taps.resize(static_cast<size_t>(a.first.back()));
  std::vector<int64_t> next(a.first.begin(), a.first.end());
  for (int64_t y = 0; y < forward.size(); ++y)
    for (int64_t i = forward.first[static_cast<size_t>(y)]; i < forward.first[static_cast<size_t>(y) + 1]; ++i) {
      Tap t = forward.taps[static_cast<size_t>(i)];
      if (t.source == kPadding) continue;
      int64_t& at = next[static_cast<size_t>(t.source)];
      t.source = y;
      a.taps[static_cast<size_t>(at++)] = t;
    }
  return a;
}

}  // namespace tsr::cpu
