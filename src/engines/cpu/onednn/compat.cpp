// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/compat.hpp"

#include "engines/cpu/onednn/readiness.hpp"
#include "engines/cpu/onednn/sequence.hpp"

namespace tsr::onednn {
namespace {

constexpr bool kAllowEmpty = true;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

template <class Pd>
bool is_there(const Pd& pd) {
  return pd.get(true) != nullptr;
}
bool is_there(const RnnDescription& d) { return d.pd.get(true) != nullptr; }

// Both ways of refusing, an exception and an empty description, become an empty optional.
template <class F>
auto attempt(const F& make) -> std::optional<decltype(make())> {
  try {
    auto pd = make();
    if (is_there(pd)) return pd;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

// The first implementation that is not refused, or an empty description. oneDNN looks again at all that `pd` was made
// of, which therefore has to be alive.
template <class Pd>
Pd accepted(Pd pd, const Refuse& refuse) {
  while (refuse && is_there(pd) && refuse(pd.impl_info_str()))
    if (!pd.next_impl()) return {};
  return pd;
}

// Backward primitives want a forward one as a hint; only its sizes matter.
std::optional<dnnl::convolution_forward::primitive_desc> hint(const ConvShape& s, const Desc& x, const Desc& w,
                                                              const Desc& y) {
  auto any = [](const Desc& d) { return Desc(dims_of(d), Type::f32, memory::format_tag::any); };
  return describe_fprop(s, any(x), any(w), {}, any(y), {});
}

template <class Pd>
RnnDescription rnn_description(const Pd& pd) {
  if (!pd.get(true)) return {};
  return {pd, pd.weights_layer_desc(), pd.weights_iter_desc()};
}

dnnl::algorithm activation(Cell cell) {
  return cell == Cell::relu ? dnnl::algorithm::eltwise_relu : dnnl::algorithm::eltwise_tanh;
}

dnnl::rnn_direction direction(bool bidirectional) {
  return bidirectional ? dnnl::rnn_direction::bidirectional_concat : dnnl::rnn_direction::unidirectional_left2right;
}

constexpr auto kInference = dnnl::prop_kind::forward_inference;

}  // namespace

#if DNNL_VERSION_MAJOR >= 3

std::optional<dnnl::matmul::primitive_desc> describe_matmul(const Desc& a, const Desc& b, const Desc& bias,
                                                            const Desc& c, const dnnl::primitive_attr& attr) {
  using P = dnnl::matmul::primitive_desc;
  return attempt([&] {
    return is_empty(bias) ? P(device(), a, b, c, attr, kAllowEmpty) : P(device(), a, b, bias, c, attr, kAllowEmpty);
  });
}

std::optional<dnnl::convolution_forward::primitive_desc> describe_fprop(const ConvShape& s, const Desc& x,
                                                                        const Desc& w, const Desc& bias, const Desc& y,
                                                                        const dnnl::primitive_attr& attr,
                                                                        const Refuse& refuse) {
  using P = dnnl::convolution_forward::primitive_desc;
  return attempt([&] {
    return accepted(
        P(device(), kInference, kDirect, x, w, bias, y, s.stride, s.dilation, s.pad, s.post_pad, attr, kAllowEmpty),
        refuse);
  });
}

std::optional<dnnl::convolution_backward_data::primitive_desc> describe_dgrad(const ConvShape& s, const Desc& dx,
                                                                              const Desc& w, const Desc& dy,
                                                                              const dnnl::primitive_attr& attr,
                                                                              const Refuse& refuse) {
  using P = dnnl::convolution_backward_data::primitive_desc;
  return attempt([&] {
    return accepted(P(device(), kDirect, dx, w, dy, s.stride, s.dilation, s.pad, s.post_pad, hint(s, dx, w, dy).value(),
                      attr, kAllowEmpty),
                    refuse);
  });
}

std::optional<dnnl::convolution_backward_weights::primitive_desc> describe_wgrad(const ConvShape& s, const Desc& x,
                                                                                 const Desc& dw, const Desc& dy,
                                                                                 const dnnl::primitive_attr& attr,
                                                                                 const Refuse& refuse) {
  using P = dnnl::convolution_backward_weights::primitive_desc;
  return attempt([&] {
    return accepted(P(device(), kDirect, x, dw, dy, s.stride, s.dilation, s.pad, s.post_pad, hint(s, x, dw, dy).value(),
                      attr, kAllowEmpty),
                    refuse);
  });
}

std::optional<dnnl::pooling_forward::primitive_desc> describe_pool(const PoolShape& s, const Desc& x, const Desc& y,
                                                                   const dnnl::primitive_attr& attr) {
  using P = dnnl::pooling_forward::primitive_desc;
  memory::dims none(s.window.size(), 0);
  return attempt([&] {
    return P(device(), kInference, s.what, x, y, s.stride, s.window, none, s.pad, s.post_pad, attr, kAllowEmpty);
  });
}

std::optional<dnnl::pooling_backward::primitive_desc> describe_pool_bwd(const PoolShape& s, const Desc& dx,
                                                                        const Desc& dy,
                                                                        const dnnl::primitive_attr& attr) {
  using P = dnnl::pooling_backward::primitive_desc;
  memory::dims none(s.window.size(), 0);
  return attempt([&] {
    auto hint = describe_pool(s, dx, dy, {}).value();
    return P(device(), s.what, dx, dy, s.stride, s.window, none, s.pad, s.post_pad, hint, attr, kAllowEmpty);
  });
}

std::optional<RnnDescription> describe_rnn(Cell cell, bool bidirectional, const RnnDescs& d,
                                           const dnnl::primitive_attr& attr) {
  auto way = direction(bidirectional);
  return attempt([&] {
    if (cell == Cell::lstm)
      return rnn_description(dnnl::lstm_forward::primitive_desc(device(), kInference, way, d.x, d.h0, d.c0, d.w, d.r,
                                                                d.bias, d.y, d.hn, d.cn, attr, kAllowEmpty));
    if (cell == Cell::gru)
      return rnn_description(dnnl::lbr_gru_forward::primitive_desc(device(), kInference, way, d.x, d.h0, d.w, d.r,
                                                                   d.bias, d.y, d.hn, attr, kAllowEmpty));
    return rnn_description(dnnl::vanilla_rnn_forward::primitive_desc(
        device(), kInference, activation(cell), way, d.x, d.h0, d.w, d.r, d.bias, d.y, d.hn, attr, kAllowEmpty));
  });
}

void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(what, alpha, beta);
}

memory::dims dims_of(const Desc& d) { return d.get_dims(); }

#else

std::optional<dnnl::matmul::primitive_desc> describe_matmul(const Desc& a, const Desc& b, const Desc& bias,
                                                            const Desc& c, const dnnl::primitive_attr& attr) {
  using P = dnnl::matmul;
  return attempt([&] {
    auto what = is_empty(bias) ? P::desc(a, b, c) : P::desc(a, b, bias, c);
    return P::primitive_desc(what, attr, device(), kAllowEmpty);
  });
}

std::optional<dnnl::convolution_forward::primitive_desc> describe_fprop(const ConvShape& s, const Desc& x,
                                                                        const Desc& w, const Desc& bias, const Desc& y,
                                                                        const dnnl::primitive_attr& attr,
                                                                        const Refuse& refuse) {
  using P = dnnl::convolution_forward;
  return attempt([&] {
    P::desc what(kInference, kDirect, x, w, bias, y, s.stride, s.dilation, s.pad, s.post_pad);
    return accepted(P::primitive_desc(what, attr, device(), kAllowEmpty), refuse);
  });
}

std::optional<dnnl::convolution_backward_data::primitive_desc> describe_dgrad(const ConvShape& s, const Desc& dx,
                                                                              const Desc& w, const Desc& dy,
                                                                              const dnnl::primitive_attr& attr,
                                                                              const Refuse& refuse) {
  using P = dnnl::convolution_backward_data;
  return attempt([&] {
    P::desc what(kDirect, dx, w, dy, s.stride, s.dilation, s.pad, s.post_pad);
    return accepted(P::primitive_desc(what, attr, device(), hint(s, dx, w, dy).value(), kAllowEmpty), refuse);
  });
}

std::optional<dnnl::convolution_backward_weights::primitive_desc> describe_wgrad(const ConvShape& s, const Desc& x,
                                                                                 const Desc& dw, const Desc& dy,
                                                                                 const dnnl::primitive_attr& attr,
                                                                                 const Refuse& refuse) {
  using P = dnnl::convolution_backward_weights;
  return attempt([&] {
    P::desc what(kDirect, x, dw, dy, s.stride, s.dilation, s.pad, s.post_pad);
    return accepted(P::primitive_desc(what, attr, device(), hint(s, x, dw, dy).value(), kAllowEmpty), refuse);
  });
}

std::optional<dnnl::pooling_forward::primitive_desc> describe_pool(const PoolShape& s, const Desc& x, const Desc& y,
                                                                   const dnnl::primitive_attr& attr) {
  using P = dnnl::pooling_forward;
  return attempt([&] {
    P::desc what(kInference, s.what, x, y, s.stride, s.window, s.pad, s.post_pad);
    return P::primitive_desc(what, attr, device(), kAllowEmpty);
  });
}

std::optional<dnnl::pooling_backward::primitive_desc> describe_pool_bwd(const PoolShape& s, const Desc& dx,
                                                                        const Desc& dy,
                                                                        const dnnl::primitive_attr& attr) {
  using P = dnnl::pooling_backward;
  return attempt([&] {
    P::desc what(s.what, dx, dy, s.stride, s.window, s.pad, s.post_pad);
    return P::primitive_desc(what, attr, device(), describe_pool(s, dx, dy, {}).value(), kAllowEmpty);
  });
}

std::optional<RnnDescription> describe_rnn(Cell cell, bool bidirectional, const RnnDescs& d,
                                           const dnnl::primitive_attr& attr) {
  auto way = direction(bidirectional);
  auto describe = [&](auto primitive, const auto& what) {
    using Pd = typename decltype(primitive)::primitive_desc;
    return rnn_description(Pd(what, attr, device(), kAllowEmpty));
  };
  return attempt([&] {
    if (cell == Cell::lstm)
      return describe(dnnl::lstm_forward(),
                      dnnl::lstm_forward::desc(kInference, way, d.x, d.h0, d.c0, d.w, d.r, d.bias, d.y, d.hn, d.cn));
    if (cell == Cell::gru)
      return describe(dnnl::lbr_gru_forward(),
                      dnnl::lbr_gru_forward::desc(kInference, way, d.x, d.h0, d.w, d.r, d.bias, d.y, d.hn));
    return describe(dnnl::vanilla_rnn_forward(), dnnl::vanilla_rnn_forward::desc(kInference, activation(cell), way, d.x,
                                                                                 d.h0, d.w, d.r, d.bias, d.y, d.hn));
  });
}

void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(1.0f, what, alpha, beta);
}

memory::dims dims_of(const Desc& d) { return d.dims(); }

#endif

bool is_empty(const Desc& d) { return d.is_zero(); }

namespace {

bool at_least(dnnl::cpu_isa isa) {
  static const auto have = (hold_isa(), static_cast<unsigned>(dnnl::get_effective_cpu_isa()));
  auto wanted = static_cast<unsigned>(isa);
  return (have & wanted) == wanted;  // each set of instructions is a set of bits
}

}  // namespace

bool has_bf16() { return at_least(dnnl::cpu_isa::avx512_core); }
bool has_exact_int8() { return at_least(dnnl::cpu_isa::avx512_core_vnni) || at_least(dnnl::cpu_isa::avx2_vnni); }

}  // namespace tsr::onednn
