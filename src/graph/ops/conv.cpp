// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/conv.hpp"

namespace tsr {
namespace {

constexpr std::string_view kModes[] = {"cross_correlation", "convolution"};
constexpr int64_t kLargest = (int64_t{1} << 31) - 1;  // of options and filter sizes: their products stay within 64 bits

Ints filled(const Ints& v, int spatial, int64_t fallback) {
  return v.empty() ? Ints(static_cast<size_t>(spatial), fallback) : v;
}

}  // namespace

tessera::ConvOptions with_defaults(const tessera::ConvOptions& o, int spatial) {
  tessera::ConvOptions r = o;
  r.stride = filled(o.stride, spatial, 1);
  r.dilation = filled(o.dilation, spatial, 1);
  r.pad = filled(o.pad, spatial, 0);
  r.post_pad = o.post_pad.empty() ? r.pad : o.post_pad;
  return r;
}

int64_t conv_groups(const Dims& x, const Dims& w) { return w[1] == 0 ? 1 : x[1] / w[1]; }

void conv_fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<tessera::ConvOptions>(&options);
  v("stride", o.stride, "steps between windows; one number for all dimensions; left out: 1");
  v("pad", o.pad, "zeros in front of x");
  v("post_pad", o.post_pad, "zeros behind x; left out: pad");
  v("dilation", o.dilation, "steps between taps of the filter; left out: 1");
  v("mode", o.mode, kModes, "convolution: the filter is flipped");
  v("alpha", o.alpha, "factor of the result");
  v("beta", o.beta, "factor of c, which is added");
  v("size", o.size, "spatial sizes of dx or dw, where the others leave them open");
  v("groups", o.groups, "of channels, each with filters of its own; 0: as the sizes say, else 1");
  v("tf32", o.tf32, "f32 operands may be rounded to 10 bits of mantissa, as tensor cores take them");
  v("fast_sums", o.fast_sums, "sums of products of 8-bit floats may have the 14 bits that tensor cores keep");
}

void check_conv_options(Infer& ctx, int spatial, int c_slot) {
  auto& o = ctx.edit_options<tessera::ConvOptions>();
  for (auto* values : {&o.stride, &o.pad, &o.post_pad, &o.dilation}) fill_spatial(*values, spatial);
  auto check_list = [&](std::string_view name, const Ints& v, int64_t least) {
    ctx.check(v.empty() || static_cast<int>(v.size()) == spatial, "option ", name, " has ", v.size(),
              " values, it needs one for each of the ", spatial, " spatial dimensions, or one for all");
    for (int64_t value : v)
      ctx.check(value >= least && value <= kLargest, "option ", name, " holds ", value, ", it must be in ", least, "..",
                kLargest);
  };
  check_list("stride", o.stride, 1);
  check_list("dilation", o.dilation, 1);
  check_list("pad", o.pad, 0);
  check_list("post_pad", o.post_pad, 0);
  check_list("size", o.size, 0);
  ctx.check(o.groups >= 0 && o.groups <= kLargest, "option groups is ", o.groups,
            ", it must be positive, or 0 to follow the sizes");
  ctx.check(ctx.has(c_slot) == (o.beta != 0), "option beta is ", o.beta,
            "; input c is needed when beta is not 0, and only then");
}

int64_t filter_reach(const Infer& ctx, int64_t taps, int64_t dilation, int i) {
  ctx.check(taps >= 1 && taps <= kLargest, "size ", taps, " of the filter in spatial dimension ", i, " must be in 1..",
            kLargest);
  return (taps - 1) * dilation + 1;
}

Dims conv_output(const Infer& ctx, const Dims& x, const Dims& w) {
  int spatial = x.size() - 2;
  auto o = with_defaults(ctx.options<tessera::ConvOptions>(), spatial);
  ctx.check(w[1] == 0 ? x[1] == 0 : x[1] % w[1] == 0, "the ", x[1],
            " channels of x must be a multiple of dimension 1 of w, which is ", w[1]);
  int64_t groups = conv_groups(x, w);
  ctx.check(groups > 0 && w[0] % groups == 0, "the ", w[0], " filters of w must be a multiple of the ", groups,
            " groups");
  ctx.check(o.groups == 0 || o.groups == groups, "option groups is ", o.groups, ", the sizes of x and w mean ", groups);
  Dims y{x[0], w[0]};
  for (int i = 0; i < spatial; ++i) {
    auto d = static_cast<size_t>(i);
    ctx.check(x[2 + i] < int64_t{1} << 62, "size ", x[2 + i], " of spatial dimension ", i, " of x is too large");
    int64_t padded = x[2 + i] + o.pad[d] + o.post_pad[d], reach = filter_reach(ctx, w[2 + i], o.dilation[d], i);
    ctx.check(reach <= padded, "the filter spans ", reach, " elements of spatial dimension ", i,
              ", the padded input has only ", padded);
    y.push_back((padded - reach) / o.stride[d] + 1);
  }
  return y;
}

int64_t open_groups(const Infer& ctx, std::optional<int64_t> declared) {
  int64_t option = ctx.options<tessera::ConvOptions>().groups;
  ctx.check(!declared || option == 0 || option == *declared, "option groups is ", option,
            ", the sizes of the output mean ", declared.value_or(0));
  return declared ? *declared : option == 0 ? 1 : option;
}

tessera::ConvOptions conv_gradient(Gradient& g, TensorId d, int c_slot) {
  auto o = g.options<tessera::ConvOptions>();
  if (g.wants(c_slot)) g.add(c_slot, g.scaled(d, o.beta));
  o.beta = 0;
  o.size = {};
  return o;
}

double conv_flops(const Dims& y, const Dims& w) {
  double per_element = 1;
  for (int i = 1; i < w.size(); ++i) per_element *= static_cast<double>(w[i]);
  return 2 * static_cast<double>(volume(y)) * per_element;
}

}  // namespace tsr
