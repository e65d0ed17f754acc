// SPDX-License-Identifier: Apache-2.0
// Pooling and interpolation, forward and backward. oneDNN interpolates between the centres of elements: that is our
// operation when the stride is size of x / size of y and the padding (1 - stride) / 2. It computes positions in f32,
// which is exact for powers of two.
#include "graph/ops/resample.hpp"

#include <bit>

#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/operands.hpp"

namespace tsr::onednn {
namespace {

using dnnl::algorithm;
using tessera::PaddingMode;
using tessera::ResampleMode;
using tessera::ResampleOptions;

bool handles(const Node& n) { return n.op->name.starts_with("resample"); }
bool is_forward(const Node& n) { return n.op->name == "resample"; }
bool is_pool(ResampleMode m) { return m != ResampleMode::nearest && m != ResampleMode::bilinear; }

algorithm algorithm_of(ResampleMode m) {
  switch (m) {
    case ResampleMode::nearest:
      return algorithm::resampling_nearest;
    case ResampleMode::bilinear:
      return algorithm::resampling_linear;
    case ResampleMode::avg_pool_include:
      return algorithm::pooling_avg_include_padding;
    case ResampleMode::avg_pool_exclude:
      return algorithm::pooling_avg_exclude_padding;
    default:
      return algorithm::pooling_max;
  }
}

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

Reason check_pool(const ResampleOptions& o, const Sides& s) {
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

Reason check_interpolation(const ResampleOptions& o, const Sides& s) {
  if (o.padding != PaddingMode::edge) return Reason::no("padding of an interpolation is not by the edge");
  for (int d = 0; d + 2 < s.x.size(); ++d) {
    Ratio stride = o.stride[static_cast<size_t>(d)], pad = o.pad[static_cast<size_t>(d)];
    bool by_sizes = stride.num * s.y[2 + d] == stride.den * s.x[2 + d];
    bool centred = 2 * pad.num * stride.den == pad.den * (stride.den - stride.num);
    if (!by_sizes || !centred) return Reason::no("spatial dimension ", d, " does not map centres to centres");
    bool exact = std::has_single_bit(static_cast<uint64_t>(stride.num)) &&
                 std::has_single_bit(static_cast<uint64_t>(stride.den));
    if (!exact || stride.num == stride.den)
      return Reason::no("stride ", stride.num, "/", stride.den, ", allowed: powers of two other than 1");
  }
  return Reason::yes();
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (r.nodes.size() > 1) return Reason::no("oneDNN fuses nothing with ", n.op->name);
  if (n.compute != DType::f32) return Reason::no(n.op->name, " computes in ", n.compute, ", allowed: f32");
  auto o = options(g, n);
  // oneDNN's maximum ignores NaN, ours does not.
  if (o.mode == ResampleMode::max_pool) return Reason::no("oneDNN's maximum leaves out NaN");
  if (o.alpha != 1) return Reason::no("alpha=", o.alpha, ", allowed: 1");
  for (TensorId t : {n.in[0], n.out[0]}) {
    if (Reason why = check_tensor(g.tensor(t)); !why) return why;
    if (!is_convertible(g.tensor(t).dtype))
      return Reason::no("tensor ", describe(g.tensor(t)), " has no exact f32 value");
  }
  Sides s = sides(g, n);
  return is_pool(o.mode) ? check_pool(o, s) : check_interpolation(o, s);
}

double seconds(const Region& r, const Device& d) {
  constexpr double kEfficiency = 0.1;  // of the f32 peak
  return std::max(region_bytes(r) / d.bytes_per_second, region_flops(r) / (kEfficiency * d.flops_per_second));
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
  PoolShape pool{algorithm_of(o.mode), {}, {}, {}, {}};
  for (int d = 0; d + 2 < size.x.size(); ++d) {
    auto k = static_cast<size_t>(d);
    pool.window.push_back(o.window[k].num);
    pool.stride.push_back(o.stride[k].num);
    pool.pad.push_back(o.pad[k].num);
    pool.post_pad.push_back(post_pad(o, size, d));
  }
  const Desc &a = in.desc(), &b = out.desc();
  auto attr = attributes();
  if (is_pool(o.mode) && is_forward(n))
    call(*s, in, out, DNNL_ARG_SRC, DNNL_ARG_DST, [&] { return describe_pool(pool, a, b, attr); });
  else if (is_pool(o.mode))
    call(*s, in, out, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC, [&] { return describe_pool_bwd(pool, b, a, attr); });
  else if (is_forward(n))
    call(*s, in, out, DNNL_ARG_SRC, DNNL_ARG_DST, [&] { return describe_resample(pool.what, a, b, attr); });
  else
    call(*s, in, out, DNNL_ARG_DIFF_DST, DNNL_ARG_DIFF_SRC,
         [&] { return describe_resample_bwd(pool.what, b, a, attr); });
  store(*s, g, out_id, out);
  return s;
}

}  // namespace

const FamilyEntry kResample = {handles, check, seconds, build};

}  // namespace tsr::onednn
