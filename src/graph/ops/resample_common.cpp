// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/resample.hpp"

namespace tsr {
namespace {

using tessera::PaddingMode;
using tessera::ResampleMode;
using tessera::ResampleOptions;
using Ratios = std::vector<Ratio>;

constexpr std::string_view kModes[] = {"nearest", "bilinear", "avg_pool_include", "avg_pool_exclude", "max_pool"};
constexpr std::string_view kPaddings[] = {"automatic", "zero", "neg_inf", "edge"};

Ratios filled(const Ratios& v, int spatial, Ratio fallback) {
  return v.empty() ? Ratios(static_cast<size_t>(spatial), fallback) : v;
}

}  // namespace

ResampleOptions with_defaults(const ResampleOptions& o, int spatial) {
  ResampleOptions r = o;
  bool interpolates = o.mode == ResampleMode::nearest || o.mode == ResampleMode::bilinear;
  r.window = filled(o.window, spatial, o.mode == ResampleMode::bilinear ? 2 : 1);
  r.stride = o.stride.empty() && !interpolates ? r.window : filled(o.stride, spatial, 1);
  r.pad = filled(o.pad, spatial, 0);
  r.post_pad = o.post_pad.empty() ? r.pad : o.post_pad;
  if (o.padding == PaddingMode::automatic)
    r.padding = o.mode == ResampleMode::max_pool ? PaddingMode::neg_inf
                : interpolates                   ? PaddingMode::edge
                                                 : PaddingMode::zero;
  return r;
}

Ratio resample_position(const ResampleOptions& o, int64_t element, int d) {
  Ratio stride = o.stride[static_cast<size_t>(d)], pad = o.pad[static_cast<size_t>(d)];
  return {element * stride.num * pad.den - pad.num * stride.den, stride.den * pad.den};
}

int64_t window_extent(const ResampleOptions& o, int d) {
  Ratio w = o.window[static_cast<size_t>(d)];
  return ceil_div(w.num, w.den);
}

void resample_fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<ResampleOptions>(&options);
  v("mode", o.mode, kModes, "how elements of a window become one");
  v("window", o.window, "its size in each spatial dimension; one number for all");
  v("stride", o.stride, "steps between windows; left out: the window where that pools");
  v("pad", o.pad, "elements in front of x");
  v("post_pad", o.post_pad, "elements behind x; left out: pad");
  v("padding", o.padding, kPaddings,
    "what they hold; automatic: neg_inf for max_pool, edge for nearest and bilinear, else zero");
  v("size", o.size, "spatial sizes of the result, where windows do not tell");
  v("alpha", o.alpha, "factor of the result");
}

void check_resample_options(Infer& ctx, int spatial) {
  auto& o = ctx.edit_options<ResampleOptions>();
  for (auto* values : {&o.window, &o.stride, &o.pad, &o.post_pad}) fill_spatial(*values, spatial);
  auto check_list = [&](std::string_view name, const Ratios& v, bool positive) {
    ctx.check(v.empty() || static_cast<int>(v.size()) == spatial, "option ", name, " has ", v.size(),
              " values, it needs one for each of the ", spatial, " spatial dimensions, or one for all");
    for (Ratio r : v)
      ctx.check(r.num >= (positive ? 1 : 0) && r.den >= 1, "option ", name, " holds ", r.num, "/", r.den,
                ", it must be ", positive ? "positive" : "at least 0");
  };
  check_list("window", o.window, true);
  check_list("stride", o.stride, true);
  check_list("pad", o.pad, false);
  check_list("post_pad", o.post_pad, false);
  ctx.check(o.size.empty() || static_cast<int>(o.size.size()) == spatial, "option size has ", o.size.size(),
            " values, it needs one for each of the ", spatial, " spatial dimensions");
  for (int64_t s : o.size) ctx.check(s >= 0, "option size holds ", s, ", it must be at least 0");
  bool needs_window = o.mode != ResampleMode::nearest && o.mode != ResampleMode::bilinear;
  ctx.check(!needs_window || !o.window.empty(), "pooling needs option window");
}

void check_resample_range(const Infer& ctx, const ResampleOptions& o, int64_t size, int d) {
  auto k = static_cast<size_t>(d);
  double most = static_cast<double>(size) + 1, common = 2;
  for (Ratio r : {o.window[k], o.stride[k], o.pad[k], o.post_pad[k]}) {
    most = std::max(most, (static_cast<double>(size) + 1) * static_cast<double>(r.num));
    common *= static_cast<double>(r.den);
  }
  ctx.check(most * common < 0x1p60, "the ratios of spatial dimension ", d, " and its size ", size,
            " are too large to compute with exactly");
}

}  // namespace tsr
