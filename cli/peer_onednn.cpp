// SPDX-License-Identifier: Apache-2.0
#include "peer_onednn.hpp"

#ifdef TESSERA_HAS_ONEDNN
#include <algorithm>
#include <cstring>

#include "engines/cpu/onednn/operands.hpp"
#include "engines/cpu/onednn/readiness.hpp"

namespace tsr::cli {
namespace {

using namespace onednn;
using Tag = memory::format_tag;

// Ones in every type: no denormals, no NaN.
void fill(dnnl::memory& m, Type type) {
  size_t bytes = m.get_desc().get_size();
  void* data = m.get_data_handle();
  if (type == Type::f32)
    std::fill_n(static_cast<float*>(data), bytes / sizeof(float), 1.0f);
  else if (type == Type::bf16)
    std::fill_n(static_cast<uint16_t*>(data), bytes / sizeof(uint16_t), to_bf16_bits(1));
  else
    std::memset(data, 1, bytes);
}

struct PeerArg {
  int index;
  Desc desc;
  Type type;
};

template <class Pd>
PeerWork execution(const Pd& pd, const std::vector<PeerArg>& list) {
  std::unordered_map<int, dnnl::memory> args;
  for (const PeerArg& a : list) {
    dnnl::memory m(a.desc, device());
    fill(m, a.type);
    args.emplace(a.index, m);
  }
  if (size_t scratch = pd.scratchpad_desc().get_size(); scratch > 0)
    args.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(Desc({static_cast<int64_t>(scratch)}, Type::u8, Tag::a), device()));
  return [p = dnnl::primitive(pd.get()), args = std::move(args), stream = dnnl::stream(device())]() mutable {
    TeamSize size(thread_count());
    p.execute(stream, args);
    stream.wait();
  };
}

}  // namespace

std::optional<LinkedOneDnn> linked_onednn() {
  const auto* v = dnnl::version();
  return LinkedOneDnn{cat(v->major, ".", v->minor, ".", v->patch),
                      v->cpu_runtime == DNNL_RUNTIME_OMP ? "OpenMP, shared with Tessera's own loops" : "unknown",
                      readiness().isa, hold_isa(), readiness().works.text()};
}

PeerWork peer_matmul(int64_t m, int64_t n, int64_t k, DType type) {
  auto t = native_type(type);
  if (!t) return {};
  Type sum = *t == Type::s8 || *t == Type::u8 ? Type::s32 : *t;
  TeamSize size(thread_count());
  auto pd = describe_matmul(Desc({m, k}, *t, Tag::ab), Desc({k, n}, *t, Tag::any), {}, Desc({m, n}, sum, Tag::ab),
                            attributes());
  if (!pd) return {};
  return execution(*pd, {{DNNL_ARG_SRC, pd->src_desc(), *t},
                         {DNNL_ARG_WEIGHTS, pd->weights_desc(), *t},
                         {DNNL_ARG_DST, pd->dst_desc(), sum}});
}

PeerWork peer_conv(PeerConv what, const PeerConvSizes& z, DType type) {
  auto t = native_type(type);
  if (!t) return {};
  auto out = [&](int64_t size, int64_t taps) { return (size + 2 * z.pad - taps) / z.stride + 1; };
  ConvShape shape{{z.stride, z.stride}, {0, 0}, {z.pad, z.pad}, {z.pad, z.pad}};
  Desc x({z.n, z.c, z.h, z.w}, *t, Tag::any), w({z.k, z.c, z.r, z.s}, *t, Tag::any);
  Desc y({z.n, z.k, out(z.h, z.r), out(z.w, z.s)}, *t, Tag::any);
  TeamSize size(thread_count());
  if (what == PeerConv::fprop) {
    auto pd = describe_fprop(shape, x, w, {}, y, attributes());
    if (!pd) return {};
    return execution(*pd, {{DNNL_ARG_SRC, pd->src_desc(), *t},
                           {DNNL_ARG_WEIGHTS, pd->weights_desc(), *t},
                           {DNNL_ARG_DST, pd->dst_desc(), *t}});
  }
  if (what == PeerConv::dgrad) {
    auto pd = describe_dgrad(shape, x, w, y, attributes());
    if (!pd) return {};
    return execution(*pd, {{DNNL_ARG_DIFF_SRC, pd->diff_src_desc(), *t},
                           {DNNL_ARG_WEIGHTS, pd->weights_desc(), *t},
                           {DNNL_ARG_DIFF_DST, pd->diff_dst_desc(), *t}});
  }
  auto pd = describe_wgrad(shape, x, w, y, attributes());
  if (!pd) return {};
  return execution(*pd, {{DNNL_ARG_SRC, pd->src_desc(), *t},
                         {DNNL_ARG_DIFF_WEIGHTS, pd->diff_weights_desc(), *t},
                         {DNNL_ARG_DIFF_DST, pd->diff_dst_desc(), *t}});
}

PeerWork peer_lstm(int64_t steps, int64_t batch, int64_t inputs, int64_t hidden) {
  constexpr int64_t kGates = 4;
  RnnDescs d;
  d.x = Desc({steps, batch, inputs}, Type::f32, Tag::tnc);
  d.y = Desc({steps, batch, hidden}, Type::f32, Tag::tnc);
  d.w = Desc({1, 1, inputs, kGates, hidden}, Type::f32, Tag::any);
  d.r = Desc({1, 1, hidden, kGates, hidden}, Type::f32, Tag::any);
  d.bias = Desc({1, 1, kGates, hidden}, Type::f32, Tag::ldgo);
  TeamSize size(thread_count());
  auto pd = describe_rnn(Cell::lstm, false, d, attributes());
  if (!pd) return {};
  return execution(*pd, {{DNNL_ARG_SRC_LAYER, d.x, Type::f32},
                         {DNNL_ARG_WEIGHTS_LAYER, pd->w, Type::f32},
                         {DNNL_ARG_WEIGHTS_ITER, pd->r, Type::f32},
                         {DNNL_ARG_BIAS, d.bias, Type::f32},
                         {DNNL_ARG_DST_LAYER, d.y, Type::f32}});
}

}  // namespace tsr::cli

#else

namespace tsr::cli {

std::optional<LinkedOneDnn> linked_onednn() { return std::nullopt; }
PeerWork peer_matmul(int64_t, int64_t, int64_t, DType) { return {}; }
PeerWork peer_conv(PeerConv, const PeerConvSizes&, DType) { return {}; }
PeerWork peer_lstm(int64_t, int64_t, int64_t, int64_t) { return {}; }

}  // namespace tsr::cli

#endif
