// SPDX-License-Identifier: Apache-2.0
// Means over windows, forward and backward. Maxima are left out because oneDNN's ignore NaN, interpolation because its
// code (2.6) ends in a segmentation fault on images of 20 channels and 56 x 56 elements.
#include "graph/ops/resample.hpp"
#include "graph/ops/list.hpp"

#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/operands.hpp"

namespace tsr::onednn {
namespace {

using dnnl::algorithm;
using tessera::PaddingMode;
using tessera::ResampleMode;
using tessera::ResampleOptions;

bool handles(const Node& n) { return n.op->name.starts_with("resample"); }
bool is_forward(const Node& n) { return n.op == &ops::resample; }
bool is_mean(ResampleMode m) { return m == ResampleMode::avg_pool_include || m == ResampleMode::avg_pool_exclude; }

// The spatial sizes on both sides.
struct Sides {
  Dims x, y;
};
Sides sides(const Graph& g, const Node& n) {
  const Dims &in = g.tensor(n.in[0]).dims, &out = g.tensor(n.out[0]).dims;
  return is_forward(n) ? Sides{in, out} : Sides{out, in};
}

ResampleOptions options(const Graph& g, const Node& n) {
  return with_defaults(attrs<ResampleOptions>(n), g.tensor(n.in[0]).rank() - 2);
}

// Padding behind x that makes oneDNN's count of windows equal to the size of y.
int64_t post_pad(const ResampleOptions& o, const Sides& s, int d) {
  auto k = static_cast<size_t>(d);
  int64_t last = (s.y[2 + d] - 1) * o.stride[k].num - o.pad[k].num + o.window[k].num;
  return std::max<int64_t>(0, last - s.x[2 + d]);
}

Reason check_windows(const ResampleOptions& o, const Sides& s) {
  if (o.padding != PaddingMode::zero) return Reason::no("padding of a mean is not zero");
  for (int d = 0; d + 2 < s.x.size(); ++d) {
    auto k = static_cast<size_t>(d);
    for (Ratio r : {o.window[k], o.stride[k], o.pad[k]})
      if (r.den != 1) return Reason::no("window, stride or pad holds ", r.num, "/", r.den, ", allowed: whole numbers");
    if (o.pad[k].num >= o.window[k].num || post_pad(o, s, d) >= o.window[k].num)
      return Reason::no("windows of spatial dimension ", d, " lie in the padding alone");
  }
  return Reason::yes();
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (r.nodes.size() > 1) return Reason::no("oneDNN fuses nothing with ", n.op->name);
  if (n.compute != DType::f32) return Reason::no(n.op->name, " computes in ", n.compute, ", allowed: f32");
  auto o = options(g, n);
  if (!is_mean(o.mode)) return Reason::no("oneDNN computes means over windows only");
  if (o.alpha != 1) return Reason::no("alpha=", o.alpha, ", allowed: 1");
  for (TensorId t : {n.in[0], n.out[0]}) {
    if (Reason why = check_tensor(g.tensor(t)); !why) return why;
    if (!is_convertible(g.tensor(t).dtype))
      return Reason::no("tensor ", describe(g.tensor(t)), " has no exact f32 value");
  }
  return check_windows(o, sides(g, n));
}

// oneDNN's fast code wants channels side by side, or at least two spatial dimensions with several results.
bool runs_plain_code(const Graph& g, const Node& n) {
  const Dims y = sides(g, n).y;
  bool one_result = true;
  for (int d = 2; d < y.size(); ++d) one_result &= y[d] == 1;
  bool side_by_side = g.tensor(n.in[0]).strides[1] == 1 && g.tensor(n.out[0]).strides[1] == 1;
  return !side_by_side && (y.size() == 3 || one_result);
}

double seconds(const Region& r, const Device& d) {
  constexpr double kForward = 0.2, kBackward = 0.1;  // elements of windows, as part of the f32 peak
  constexpr double kPlainSeconds = 10e-9;            // for each element of a window
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  auto taps = static_cast<double>(volume(sides(g, n).y));
  for (Ratio w : options(g, n).window) taps *= static_cast<double>(w.num);
  if (runs_plain_code(g, n)) return taps * kPlainSeconds;
  double efficiency = is_forward(n) ? kForward : kBackward;
  return std::max(region_bytes(r) / d.bytes_per_second, taps / (efficiency * d.rates.f32));
}

template <class Describe>
void call(Sequence& s, const Operand& in, const Operand& out, int in_arg, int out_arg, const Describe& describe) {
  auto p = make_primitives(s.threads(), [&](bool) { return describe(); });
  if (!p.team.get(true)) fail(Status::internal_error, "oneDNN refused to resample ", tsr::describe(in.tensor));
  s.call(p, {{in_arg, in.desc(), in.place}, {out_arg, out.desc(), out.place}});
}

std::unique_ptr<Step> build(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  auto o = options(g, n);
  auto s = std::make_unique<Sequence>(r);
  TensorId in_id = n.in[0], out_id = n.out[0];
  // Its gradients of overlapping windows would add up in bf16.
  bool bf16 =
      is_forward(n) && g.tensor(in_id).dtype == DType::bf16 && g.tensor(out_id).dtype == DType::bf16 && has_bf16();
  Operand in = load(*s, g, in_id, bf16 ? DType::bf16 : DType::f32, true);
  settle_channels(in.tensor);
  Operand out = target_like(*s, g, out_id, in.tensor);
  Sides size = sides(g, n);
  bool include = o.mode == ResampleMode::avg_pool_include;
  PoolShape pool{
      include ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding, {}, {}, {}, {}};
  for (int d = 0; d + 2 < size.x.size(); ++d) {
    auto k = static_cast<size_t>(d);
    pool.window.push_back(o.window[k].num);
    pool.stride.push_back(o.stride[k].num);
    pool.pad.push_back(o.pad[k].num);
    pool.post_pad.push_back(post_pad(o, size, d));
  }
  const Desc &a = in.desc(), &b = out.desc();
  auto attr = attributes();
  if (is_forward(n))
    call(*s, in, out, DNNL_ARG_SRC, DNNL_ARG_DST, [&] { return describe_pool(pool, a, b, attr); });
  else
    call(*s, in, out, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, [&] { return describe_pool_bwd(pool, b, a, attr); });
  store(*s, g, out_id, out);
  return s;
}

}  // namespace

const FamilyEntry kResample = {handles, check, seconds, build};

}  // namespace tsr::onednn
