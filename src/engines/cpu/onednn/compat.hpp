// SPDX-License-Identifier: Apache-2.0
// The one place that knows which oneDNN is there: versions 2.6 to 3.x differ in how primitives are described.
// Everything else is written against these functions. A primitive that oneDNN does not have is an empty optional.
#pragma once

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <string>

namespace tsr::onednn {

using dnnl::memory;
using Desc = memory::desc;
using Type = memory::data_type;

struct ConvShape {
  memory::dims stride, dilation, pad, post_pad;  // dilation as oneDNN counts it: 0 is none
};

// Says of an implementation, by its name, that it is not to be taken; oneDNN's next one is asked then.
using Refuse = std::function<bool(const std::string& implementation)>;

// An empty bias means none.
std::optional<dnnl::matmul::primitive_desc> describe_matmul(const Desc& a, const Desc& b, const Desc& bias,
                                                            const Desc& c, const dnnl::primitive_attr& attr);
std::optional<dnnl::convolution_forward::primitive_desc> describe_fprop(const ConvShape& s, const Desc& x,
                                                                        const Desc& w, const Desc& bias, const Desc& y,
                                                                        const dnnl::primitive_attr& attr,
                                                                        const Refuse& refuse = {});
std::optional<dnnl::convolution_backward_data::primitive_desc> describe_dgrad(const ConvShape& s, const Desc& dx,
                                                                              const Desc& w, const Desc& dy,
                                                                              const dnnl::primitive_attr& attr,
                                                                              const Refuse& refuse = {});
std::optional<dnnl::convolution_backward_weights::primitive_desc> describe_wgrad(const ConvShape& s, const Desc& x,
                                                                                 const Desc& dw, const Desc& dy,
                                                                                 const dnnl::primitive_attr& attr,
                                                                                 const Refuse& refuse = {});

struct PoolShape {
  dnnl::algorithm what;
  memory::dims window, stride, pad, post_pad;
};
std::optional<dnnl::pooling_forward::primitive_desc> describe_pool(const PoolShape& s, const Desc& x, const Desc& y,
                                                                   const dnnl::primitive_attr& attr);
std::optional<dnnl::pooling_backward::primitive_desc> describe_pool_bwd(const PoolShape& s, const Desc& dx,
                                                                        const Desc& dy,
                                                                        const dnnl::primitive_attr& attr);

// One layer of a recurrent network, in one or both directions. Descriptions of states may be empty.
enum class Cell : uint8_t { relu, tanh, lstm, gru };  // gru: the reset gate acts behind the recurrent product
struct RnnDescs {
  Desc x, h0, c0, w, r, bias, y, hn, cn;
};
struct RnnDescription {
  dnnl::primitive_desc_base pd;
  Desc w, r;  // as chosen
  dnnl_primitive_desc_t get() const { return pd.get(); }
  const char* impl_info_str() const { return pd.impl_info_str(); }
  Desc scratchpad_desc() const { return pd.scratchpad_desc(); }
};
std::optional<RnnDescription> describe_rnn(Cell cell, bool bidirectional, const RnnDescs& d,
                                           const dnnl::primitive_attr& attr);

void append_eltwise(dnnl::post_ops& ops, dnnl::algorithm what, float alpha, float beta);
bool is_empty(const Desc& d);
memory::dims dims_of(const Desc& d);

// What the processor offers, as oneDNN may use it.
bool has_bf16();        // bf16 products without conversion
bool has_exact_int8();  // 8-bit products that do not saturate on the way

}  // namespace tsr::onednn
