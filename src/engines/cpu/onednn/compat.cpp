// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/compat.hpp"

#include "engines/cpu/onednn/sequence.hpp"

namespace tsr::onednn {
namespace {

constexpr bool kAllowEmpty = true;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Both ways of refusing, an exception and an empty description, become an empty optional.
template <class F>
auto attempt(const F& make) -> std::optional<decltype(make())> {
  try {
    auto pd = make();
    if (pd.get(true)) return pd;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

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
                                                                        const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_forward::primitive_desc;
  constexpr auto kKind = dnnl::prop_kind::forward_inference;
  return attempt([&] {
    return P(device(), kKind, kDirect, x, w, bias, y, s.stride, s.dilation, s.pad, s.post_pad, attr, kAllowEmpty);
  });
}

std::optional<dnnl::convolution_backward_data::primitive_desc> describe_dgrad(const ConvShape& s, const Desc& dx,
                                                                              const Desc& w, const Desc& dy,
                                                                              const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_backward_data::primitive_desc;
  return attempt(
      [&] { return P(device(), kDirect, dx, w, dy, s.stride, s.dilation, s.pad, s.post_pad, {}, attr, kAllowEmpty); });
}

std::optional<dnnl::convolution_backward_weights::primitive_desc> describe_wgrad(const ConvShape& s, const Desc& x,
                                                                                 const Desc& dw, const Desc& dy,
                                                                                 const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_backward_weights::primitive_desc;
  return attempt(
      [&] { return P(device(), kDirect, x, dw, dy, s.stride, s.dilation, s.pad, s.post_pad, {}, attr, kAllowEmpty); });
}

void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(what, alpha, beta);
}

bool is_empty(const Desc& d) { return d.is_zero(); }
memory::dims dims_of(const Desc& d) { return d.get_dims(); }
bool is_any(const Desc& d) { return d.get_format_kind() == memory::format_kind::any; }

#else

namespace {

using dnnl::prop_kind;

}  // namespace

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
                                                                        const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_forward;
  return attempt([&] {
    P::desc what(prop_kind::forward_inference, kDirect, x, w, bias, y, s.stride, s.dilation, s.pad, s.post_pad);
    return P::primitive_desc(what, attr, device(), kAllowEmpty);
  });
}

namespace {

// Backward primitives want a forward one as a hint; only its sizes matter.
std::optional<dnnl::convolution_forward::primitive_desc> hint(const ConvShape& s, const Desc& x, const Desc& w,
                                                              const Desc& y) {
  auto any = [](const Desc& d) { return Desc(d.dims(), Type::f32, memory::format_tag::any); };
  return describe_fprop(s, any(x), any(w), {}, any(y), {});
}

}  // namespace

std::optional<dnnl::convolution_backward_data::primitive_desc> describe_dgrad(const ConvShape& s, const Desc& dx,
                                                                              const Desc& w, const Desc& dy,
                                                                              const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_backward_data;
  return attempt([&] {
    P::desc what(kDirect, dx, w, dy, s.stride, s.dilation, s.pad, s.post_pad);
    return P::primitive_desc(what, attr, device(), hint(s, dx, w, dy).value(), kAllowEmpty);
  });
}

std::optional<dnnl::convolution_backward_weights::primitive_desc> describe_wgrad(const ConvShape& s, const Desc& x,
                                                                                 const Desc& dw, const Desc& dy,
                                                                                 const dnnl::primitive_attr& attr) {
  using P = dnnl::convolution_backward_weights;
  return attempt([&] {
    P::desc what(kDirect, x, dw, dy, s.stride, s.dilation, s.pad, s.post_pad);
    return P::primitive_desc(what, attr, device(), hint(s, x, dw, dy).value(), kAllowEmpty);
  });
}

void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta) {
  ops.append_eltwise(1.0f, what, alpha, beta);
}

bool is_empty(const Desc& d) { return d.is_zero(); }
memory::dims dims_of(const Desc& d) { return d.dims(); }
bool is_any(const Desc& d) { return d.data.format_kind == dnnl_format_kind_any; }

#endif

namespace {

bool at_least(dnnl::cpu_isa isa) {
  static const auto have = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  auto wanted = static_cast<unsigned>(isa);
  return (have & wanted) == wanted;  // each set of instructions is a set of bits
}

}  // namespace

bool has_bf16() { return at_least(dnnl::cpu_isa::avx512_core); }
bool has_exact_int8() { return at_least(dnnl::cpu_isa::avx512_core_vnni) || at_least(dnnl::cpu_isa::avx2_vnni); }

}  // namespace tsr::onednn
