// SPDX-License-Identifier: Apache-2.0
#include "cudnn/from_graph.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include "cudnn/translations.hpp"
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/norm_shape.hpp"
#include "graph/ops/resample.hpp"

namespace cudnn {
namespace {

using tsr::attrs;
using Mode = tessera::PointwiseMode;

// In the order of tessera::PointwiseMode.
constexpr std::array kPointwiseModes = {
    PointwiseMode::add,
    PointwiseMode::mul,
    PointwiseMode::min,
    PointwiseMode::max,
    PointwiseMode::sqrt,
    PointwiseMode::add_square,
    PointwiseMode::div,
    PointwiseMode::mod,
    PointwiseMode::pow,
    PointwiseMode::sub,
    PointwiseMode::abs,
    PointwiseMode::ceil,
    PointwiseMode::cos,
    PointwiseMode::exp,
    PointwiseMode::floor,
    PointwiseMode::log,
    PointwiseMode::neg,
    PointwiseMode::rsqrt,
    PointwiseMode::sin,
    PointwiseMode::tan,
    PointwiseMode::erf,
    PointwiseMode::identity,
    PointwiseMode::reciprocal,
    PointwiseMode::atan2,
    PointwiseMode::floor_mod,
    PointwiseMode::relu_fwd,
    PointwiseMode::tanh_fwd,
    PointwiseMode::sigmoid_fwd,
    PointwiseMode::elu_fwd,
    PointwiseMode::gelu_fwd,
    PointwiseMode::softplus_fwd,
    PointwiseMode::swish_fwd,
    PointwiseMode::gelu_approx_tanh_fwd,
    PointwiseMode::relu_bwd,
    PointwiseMode::tanh_bwd,
    PointwiseMode::sigmoid_bwd,
    PointwiseMode::elu_bwd,
    PointwiseMode::gelu_bwd,
    PointwiseMode::softplus_bwd,
    PointwiseMode::swish_bwd,
    PointwiseMode::gelu_approx_tanh_bwd,
    PointwiseMode::cmp_eq,
    PointwiseMode::cmp_neq,
    PointwiseMode::cmp_gt,
    PointwiseMode::cmp_ge,
    PointwiseMode::cmp_lt,
    PointwiseMode::cmp_le,
    PointwiseMode::logical_and,
    PointwiseMode::logical_or,
    PointwiseMode::logical_not,
    PointwiseMode::gen_index,
    PointwiseMode::binary_select,
};
static_assert(kPointwiseModes.size() == static_cast<size_t>(Mode::select) + 1);

// Factors are single precision unless the computation is double.
Value factor(const tsr::Node& n, double value) {
  if (n.compute == tsr::DType::f64) return value;
  return static_cast<float>(value);
}

Node pointwise_mode(const Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::PointwiseOptions>(n);
  bool logical = o.mode == Mode::logical_and || o.mode == Mode::logical_or || o.mode == Mode::logical_not;
  Node part{Kind::pointwise, {{Attr::pointwise_mode, kPointwiseModes[static_cast<size_t>(o.mode)]}}};
  part.set(Attr::pointwise_math_prec, logical ? DataType::boolean : data_type(n.compute));
  if (o.mode == Mode::relu || o.mode == Mode::relu_bwd) {
    part.set(Attr::pointwise_nan_propagation, NanPropagation::propagate_nan)
        .set(Attr::pointwise_relu_lower_clip, o.lower)
        .set(Attr::pointwise_relu_upper_clip, std::min<double>(o.upper, std::numeric_limits<float>::max()))
        .set(Attr::pointwise_relu_lower_clip_slope, o.slope);
  }
  if (o.mode == Mode::elu || o.mode == Mode::elu_bwd) part.set(Attr::pointwise_elu_alpha, o.alpha);
  if (o.mode == Mode::softplus || o.mode == Mode::softplus_bwd) part.set(Attr::pointwise_softplus_beta, o.beta);
  if (o.mode == Mode::swish || o.mode == Mode::swish_bwd) part.set(Attr::pointwise_swish_beta, o.beta);
  if (o.mode == Mode::gen_index) part.set(Attr::pointwise_axis, Ints{w.axis(w.source().tensor(n.in[0]), o.axis)});
  return part;
}

void pointwise(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::PointwiseOptions>(n);
  if (o.mode == Mode::floor_mod) w.need(92700, "floor_mod");
  bool backward = o.mode >= Mode::relu_bwd && o.mode <= Mode::gelu_tanh_bwd;
  int64_t x = w.in(n, 0), b = w.in(n, 1), t = w.in(n, 2), y = w.out(n, 0);
  Node& node = w.add(Kind::operation_pointwise)
                   .set(Attr::operation_pointwise_pw_descriptor, std::vector{pointwise_mode(w, n)})
                   .set(Attr::operation_pointwise_alpha1, factor(n, o.alpha1))
                   .set(Attr::operation_pointwise_alpha2, factor(n, o.alpha2));
  set_tensor(node, Attr::operation_pointwise_xdesc, x);
  set_tensor(node, backward ? Attr::operation_pointwise_dydesc : Attr::operation_pointwise_bdesc, b);
  set_tensor(node, Attr::operation_pointwise_tdesc, t);
  set_tensor(node, backward ? Attr::operation_pointwise_dxdesc : Attr::operation_pointwise_ydesc, y);
}

// The node that computes an input, if it is this pointwise operation; null otherwise.
const tsr::Node* made_by(const tsr::Graph& g, const tsr::Node* n, Mode mode) {
  tsr::NodeId p = n ? g.producer(n->in[0]) : tsr::kNone;
  if (p == tsr::kNone || g.node(p).op != &tsr::ops::pointwise) return nullptr;
  return attrs<tessera::PointwiseOptions>(g.node(p)).mode == mode ? &g.node(p) : nullptr;
}

// Sums of exp(sink - statistics) * ..: front ends spell the gradient of attention's sink so, and mean its negative.
bool is_sink_gradient(const tsr::Graph& g, const tsr::Node& sum) {
  const tsr::Node* sub = made_by(g, made_by(g, made_by(g, &sum, Mode::mul), Mode::exp), Mode::sub);
  if (!sub || attrs<tessera::ReduceOptions>(sum).mode != tessera::ReduceMode::add) return false;
  const tsr::Dims &sink = g.tensor(sub->in[0]).dims, &stats = g.tensor(sub->in[1]).dims;
  return sink.size() == 4 && stats.size() == 4 && sink == tsr::Dims{1, stats[1], 1, 1} && stats[3] == 1;
}

void reduce(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::ReduceOptions>(n);
  if (is_sink_gradient(w.source(), n)) refuse("the gradient of a sink, spelled out: cuDNN takes it for its negative");
  if (Writer::has(n, 1)) w.need(92400, "a reduction by groups");
  int64_t x = w.in(n, 0), offset = w.in(n, 1), y = w.out(n, 0);
  ReduceMode mode = static_cast<ReduceMode>(o.mode);
  // Engines take no means, and nothing behind a sum: its terms are divided.
  if (o.mode == tessera::ReduceMode::avg && offset == kAbsent && !tsr::is_complex(n.compute)) {
    double count = static_cast<double>(w.source().tensor(n.in[0]).numel()) /
                   static_cast<double>(w.source().tensor(n.out[0]).numel());
    x = w.pointwise(PointwiseMode::mul, x, w.scalar(DataType::float_, 1 / count));
    mode = ReduceMode::add;
  }
  Node part{Kind::reduction, {{Attr::reduction_operator, mode}}};
  part.set(Attr::reduction_comp_type, data_type(n.compute));
  if (w.version() >= 91100) part.set(Attr::reduction_is_deterministic, o.deterministic);
  Node& node = w.add(Kind::operation_reduction).set(Attr::operation_reduction_desc, std::vector{std::move(part)});
  set_tensor(node, Attr::operation_reduction_xdesc, x);
  set_tensor(node, Attr::operation_reduction_ydesc, y);
  set_tensor(node, Attr::operation_reduction_group_offset_desc, offset);
}

// The run of axes that a reduction or a norm sums over; nothing for other operations and where they are no run.
struct Run {
  int begin, end;
  bool operator==(const Run&) const = default;
};
std::optional<Run> summed_axes(const tsr::Graph& g, const tsr::Node& n) {
  const tsr::Dims& x = g.tensor(n.in[0]).dims;
  tsr::Dims y;
  if (n.op == &tsr::ops::reduce && !Writer::has(n, 1)) y = g.tensor(n.out[0]).dims;
  if (n.op == &tsr::ops::norm_fwd || n.op == &tsr::ops::norm_bwd) {
    auto mode = attrs<tessera::NormOptions>(n).mode;
    if (mode == tessera::NormMode::layer || mode == tessera::NormMode::rms) y = tsr::norm_shape(g, n).stats;
  }
  if (y.empty()) return std::nullopt;
  Run r{x.size(), 0};
  for (int d = 0; d < x.size(); ++d)
    if (x[d] != y[d]) r = {std::min(r.begin, d), d + 1};
  for (int d = r.begin; d < r.end; ++d)
    if (y[d] != 1) return std::nullopt;
  if (n.op == &tsr::ops::reduce && r == Run{0, x.size()}) r.begin = r.end - 1;  // everything: as rows
  return r;
}

// Pointwise work around sums over the same run of axes: engines want those as channels-last, or as rows.
void fold_sums(Writer& w, const tsr::Graph& g) {
  std::optional<Run> run;
  for (tsr::NodeId i = 0; i < g.node_count(); ++i) {
    const tsr::Node& n = g.node(i);
    if (n.op == &tsr::ops::pointwise && attrs<tessera::PointwiseOptions>(n).mode != Mode::gen_index) continue;
    auto axes = summed_axes(g, n);
    if (!axes || (run && *axes != *run)) return;
    run = axes;
  }
  if (run && run->begin < run->end) w.fold(run->begin, run->end);
}

void matmul(Writer& w, const tsr::Node& n) {
  Product p{w.in(n, 0), w.in(n, 1), w.out(n, 0), w.per_batch(n.in[2]), w.per_batch(n.in[3]), w.per_batch(n.in[4])};
  add_matmul(w, p, data_type(n.compute), attrs<tessera::MatmulOptions>(n).padding_value);
}

void moe_matmul(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::MoeOptions>(n);
  w.need(91500, "moe_matmul");
  if (w.rank() != 3) refuse("moe_matmul: cuDNN's has three dimensions, other operations of the graph need more");
  int64_t slots[] = {w.in(n, 0), w.in(n, 1), w.in(n, 2), w.in(n, 3), w.in(n, 4), w.out(n, 0)};
  constexpr Attr kNames[] = {Attr::operation_moe_grouped_matmul_token_desc,
                             Attr::operation_moe_grouped_matmul_weight_desc,
                             Attr::operation_moe_grouped_matmul_first_token_offset_desc,
                             Attr::operation_moe_grouped_matmul_token_index_desc,
                             Attr::operation_moe_grouped_matmul_token_ks_desc,
                             Attr::operation_moe_grouped_matmul_output_desc};
  Node& node = w.add(Kind::operation_moe_grouped_matmul)
                   .set(Attr::operation_moe_grouped_matmul_mode, static_cast<MoeMode>(o.mode))
                   .set(Attr::operation_moe_grouped_matmul_math_prec, data_type(n.compute));
  for (size_t i = 0; i < std::size(slots); ++i) set_tensor(node, kNames[i], slots[i]);
  if (o.mode == tessera::MoeMode::scatter)
    node.set(Attr::operation_moe_grouped_matmul_top_k, std::vector{static_cast<int32_t>(o.top_k)});
}

void moe_matmul_bwd(Writer& w, const tsr::Node& n) {
  w.need(92200, "moe_matmul_bwd");
  int64_t doutput = w.in(n, 0), token = w.in(n, 1), offset = w.in(n, 2), dweight = w.out(n, 0);
  Node& node = w.add(Kind::operation_moe_grouped_matmul_bwd)
                   .set(Attr::operation_moe_grouped_matmul_bwd_math_prec, data_type(n.compute));
  set_tensor(node, Attr::operation_moe_grouped_matmul_bwd_token_desc, token);
  set_tensor(node, Attr::operation_moe_grouped_matmul_bwd_dweight_desc, dweight);
  set_tensor(node, Attr::operation_moe_grouped_matmul_bwd_first_token_offset_desc, offset);
  set_tensor(node, Attr::operation_moe_grouped_matmul_bwd_doutput_desc, doutput);
}

// Nothing happens along the dimensions that were put before the others.
template <class T>
std::vector<T> spatial(const Writer& w, std::vector<T> values, T idle) {
  values.insert(values.begin(), static_cast<size_t>(w.inserted()), idle);
  return values;
}

// Which attributes hold the roles of a convolution.
struct ConvNames {
  Kind kind;
  Attr conv, alpha, beta, x, w, y;
};
constexpr ConvNames kFprop = {Kind::operation_convolution_forward,       Attr::operation_convolution_forward_conv_desc,
                              Attr::operation_convolution_forward_alpha, Attr::operation_convolution_forward_beta,
                              Attr::operation_convolution_forward_x,     Attr::operation_convolution_forward_w,
                              Attr::operation_convolution_forward_y};
constexpr ConvNames kDgrad = {
    Kind::operation_convolution_backward_data,  Attr::operation_convolution_bwd_data_conv_desc,
    Attr::operation_convolution_bwd_data_alpha, Attr::operation_convolution_bwd_data_beta,
    Attr::operation_convolution_bwd_data_dx,    Attr::operation_convolution_bwd_data_w,
    Attr::operation_convolution_bwd_data_dy};
constexpr ConvNames kWgrad = {
    Kind::operation_convolution_backward_filter,  Attr::operation_convolution_bwd_filter_conv_desc,
    Attr::operation_convolution_bwd_filter_alpha, Attr::operation_convolution_bwd_filter_beta,
    Attr::operation_convolution_bwd_filter_x,     Attr::operation_convolution_bwd_filter_dw,
    Attr::operation_convolution_bwd_filter_dy};

void convolution(Writer& w, const tsr::Node& n, const ConvNames& names, int64_t x, int64_t filter, int64_t y) {
  int dims = w.source().tensor(n.out[0]).rank() - 2;
  auto o = tsr::with_defaults(attrs<tessera::ConvOptions>(n), dims);
  if (o.beta != 0) refuse("beta: cuDNN adds what the result held before, not another tensor");
  Ints stride = spatial<int64_t>(w, o.stride, 1);
  Node part{Kind::convolution, {{Attr::convolution_comp_type, data_type(n.compute)}}};
  part.set(Attr::convolution_conv_mode,
           o.mode == tessera::ConvMode::convolution ? ConvMode::convolution : ConvMode::cross_correlation)
      .set(Attr::convolution_spatial_dims, Ints{static_cast<int64_t>(stride.size())})
      .set(Attr::convolution_pre_paddings, spatial<int64_t>(w, o.pad, 0))
      .set(Attr::convolution_post_paddings, spatial<int64_t>(w, o.post_pad, 0))
      .set(Attr::convolution_dilations, spatial<int64_t>(w, o.dilation, 1))
      .set(Attr::convolution_filter_strides, stride);
  Node& node = w.add(names.kind)
                   .set(names.conv, std::vector{std::move(part)})
                   .set(names.alpha, factor(n, o.alpha))
                   .set(names.beta, factor(n, 0));
  set_tensor(node, names.x, x);
  set_tensor(node, names.w, filter);
  set_tensor(node, names.y, y);
}

void conv_fprop(Writer& w, const tsr::Node& n) { convolution(w, n, kFprop, w.in(n, 0), w.in(n, 1), w.out(n, 0)); }
void conv_dgrad(Writer& w, const tsr::Node& n) { convolution(w, n, kDgrad, w.out(n, 0), w.in(n, 1), w.in(n, 0)); }
void conv_wgrad(Writer& w, const tsr::Node& n) { convolution(w, n, kWgrad, w.in(n, 1), w.out(n, 0), w.in(n, 0)); }

// In the order of tessera::ResampleMode and tessera::PaddingMode.
constexpr ResampleMode kResampleModes[] = {ResampleMode::nearest, ResampleMode::bilinear,
                                           ResampleMode::avgpool_include_padding, ResampleMode::avgpool_exclude_padding,
                                           ResampleMode::maxpool};
constexpr PaddingMode kPaddingModes[] = {PaddingMode::zero_pad, PaddingMode::zero_pad, PaddingMode::neg_inf_pad,
                                         PaddingMode::edge_val_pad};

Node resample_part(const Writer& w, const tsr::Node& n, const tessera::ResampleOptions& o) {
  auto fractions = [&](const std::vector<tessera::Ratio>& ratios, Fraction idle) {
    std::vector<Fraction> f;
    for (const tessera::Ratio& r : ratios) f.push_back({r.num, r.den});
    return spatial(w, f, idle);
  };
  std::vector<Fraction> window = fractions(o.window, {1, 1});
  Node part{Kind::resample, {{Attr::resample_mode, kResampleModes[static_cast<size_t>(o.mode)]}}};
  part.set(Attr::resample_comp_type, data_type(n.compute))
      .set(Attr::resample_nan_propagation, NanPropagation::propagate_nan)
      .set(Attr::resample_padding_mode, kPaddingModes[static_cast<size_t>(o.padding)])
      .set(Attr::resample_spatial_dims, Ints{static_cast<int64_t>(window.size())})
      .set(Attr::resample_window_dims, window)
      .set(Attr::resample_pre_paddings, fractions(o.pad, {0, 1}))
      .set(Attr::resample_post_paddings, fractions(o.post_pad, {0, 1}))
      .set(Attr::resample_strides, fractions(o.stride, {1, 1}));
  return part;
}

void add_resample(Writer& w, Node part, double alpha, int64_t x, int64_t y, int64_t index) {
  Node& node = w.add(Kind::operation_resample_fwd)
                   .set(Attr::operation_resample_fwd_desc, std::vector{std::move(part)})
                   .set(Attr::operation_resample_fwd_alpha, alpha)
                   .set(Attr::operation_resample_fwd_beta, 0.0);
  set_tensor(node, Attr::operation_resample_fwd_xdesc, x);
  set_tensor(node, Attr::operation_resample_fwd_ydesc, y);
  set_tensor(node, Attr::operation_resample_fwd_idxdesc, index);
}

void resample(Writer& w, const tsr::Node& n) {
  auto o = tsr::with_defaults(attrs<tessera::ResampleOptions>(n), w.source().tensor(n.in[0]).rank() - 2);
  add_resample(w, resample_part(w, n, o), o.alpha, w.in(n, 0), w.out(n, 0), w.out(n, 1));
}

void resample_bwd(Writer& w, const tsr::Node& n) {
  auto o = tsr::with_defaults(attrs<tessera::ResampleOptions>(n), w.source().tensor(n.in[0]).rank() - 2);
  int64_t dy = w.in(n, 0), x = w.in(n, 1), y = w.in(n, 2), index = w.in(n, 3), dx = w.out(n, 0);
  if (o.mode == tessera::ResampleMode::max_pool && index == kAbsent && y == kAbsent) {
    // cuDNN needs the index, or both x and y: the forward pass again.
    y = w.scratch(w.tensor(dy).dims, w.tensor(x).type);
    add_resample(w, resample_part(w, n, o), 1, x, y, kAbsent);
  }
  Node& node = w.add(Kind::operation_resample_bwd)
                   .set(Attr::operation_resample_bwd_desc, std::vector{resample_part(w, n, o)})
                   .set(Attr::operation_resample_bwd_alpha, o.alpha)
                   .set(Attr::operation_resample_bwd_beta, 0.0);
  set_tensor(node, Attr::operation_resample_bwd_dxdesc, dx);
  set_tensor(node, Attr::operation_resample_bwd_dydesc, dy);
  set_tensor(node, Attr::operation_resample_bwd_idxdesc, index);
  set_tensor(node, Attr::operation_resample_bwd_xdesc, x);
  set_tensor(node, Attr::operation_resample_bwd_ydesc, y);
}

void rope(Writer& w, const tsr::Node& n) {
  w.need(92400, "rope");
  const auto& o = attrs<tessera::RopeOptions>(n);
  bool forward = n.op == &tsr::ops::rope;
  int64_t x = w.in(n, 0), freqs = w.in(n, 1), to = w.out(n, 0);
  // cuDNN keeps the type: where the graph does not, in that of the computation, so that results are rounded once.
  int64_t wide = x;
  if (w.tensor(x).type != w.tensor(to).type) wide = w.pointwise(PointwiseMode::identity, x);
  w.converted(w.tensor(wide).type, to, [&](int64_t y) {
    Node& node = w.add(forward ? Kind::operation_rope_fwd : Kind::operation_rope_bwd);
    set_tensor(node, forward ? Attr::operation_rope_fwd_xdesc : Attr::operation_rope_bwd_dydesc, wide);
    set_tensor(node, forward ? Attr::operation_rope_fwd_freqsdesc : Attr::operation_rope_bwd_freqsdesc, freqs);
    set_tensor(node, forward ? Attr::operation_rope_fwd_ydesc : Attr::operation_rope_bwd_dxdesc, y);
    node.set(forward ? Attr::operation_rope_fwd_output_scale : Attr::operation_rope_bwd_output_scale,
             static_cast<float>(o.scale));
    node.set(forward ? Attr::operation_rope_fwd_rope_dim : Attr::operation_rope_bwd_rope_dim, Ints{o.rope_dim});
  });
}

}  // namespace

void add_matmul(Writer& w, const Product& p, DataType compute, double padding) {
  Node part{Kind::matmul, {{Attr::matmul_comp_type, w.real(compute)}}};
  if (padding != 0) part.set(Attr::matmul_padding_value, padding);
  Node& node = w.add(Kind::operation_matmul).set(Attr::operation_matmul_desc, std::vector{std::move(part)});
  set_tensor(node, Attr::operation_matmul_adesc, p.a);
  set_tensor(node, Attr::operation_matmul_bdesc, p.b);
  set_tensor(node, Attr::operation_matmul_cdesc, p.c);
  set_tensor(node, Attr::operation_matmul_gemm_m_override_desc, p.m);
  set_tensor(node, Attr::operation_matmul_gemm_n_override_desc, p.n);
  set_tensor(node, Attr::operation_matmul_gemm_k_override_desc, p.k);
}

void translate(Writer& w, const tsr::Node& n) {
  namespace ops = tsr::ops;
  static const std::unordered_map<const tsr::OpSpec*, void (*)(Writer&, const tsr::Node&)> known = {
      {&ops::pointwise, pointwise},
      {&ops::reduce, reduce},
      {&ops::matmul, matmul},
      {&ops::moe_matmul, moe_matmul},
      {&ops::moe_matmul_bwd, moe_matmul_bwd},
      {&ops::conv_fprop, conv_fprop},
      {&ops::conv_dgrad, conv_dgrad},
      {&ops::conv_wgrad, conv_wgrad},
      {&ops::norm_fwd, norm_fwd},
      {&ops::norm_bwd, norm_bwd},
      {&ops::gen_stats, gen_stats},
      {&ops::bn_finalize, bn_finalize},
      {&ops::bn_bwd_weights, bn_bwd_weights},
      {&ops::softmax, softmax},
      {&ops::softmax_bwd, softmax_bwd},
      {&ops::sdpa_fwd, sdpa_fwd},
      {&ops::sdpa_bwd, sdpa_bwd},
      {&ops::band_mask, band_mask},
      {&ops::rope, rope},
      {&ops::rope_bwd, rope},
      {&ops::paged_load, paged_load},
      {&ops::resample, resample},
      {&ops::resample_bwd, resample_bwd},
      {&ops::rng, rng},
      {&ops::dropout, dropout},
      {&ops::dropout_bwd, dropout_bwd},
      {&ops::reshape, reshape},
      {&ops::transpose, transpose},
      {&ops::slice, slice},
      {&ops::concat, concat},
      {&ops::block_scale_quantize, block_scale_quantize},
      {&ops::block_scale_dequantize, block_scale_dequantize},
  };
  auto f = known.find(n.op);
  if (f == known.end()) refuse("cuDNN's graph interface has no ", n.op->name);
  f->second(w, n);
}

Description from_graph(const tsr::Graph& g, int64_t version) {
  Description d;
  try {
    Writer w(g, version);
    fold_sums(w, g);
    for (tsr::NodeId i = 0; i < g.node_count(); ++i) translate(w, g.node(i));
    d.caveat = w.caveat;
    d.graph = w.take();
  } catch (const Refusal& r) {
    d.peer_reason = r.text;
  }
  return d;
}

}  // namespace cudnn
