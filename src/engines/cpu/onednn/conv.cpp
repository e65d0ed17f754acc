// SPDX-License-Identifier: Apache-2.0
// Convolutions and their two gradients. The filter always has the layout that oneDNN likes best; x and y have the
// caller's layout where oneDNN is fast with it (channels last), otherwise they are brought into another one and back.
#include "graph/ops/conv.hpp"
#include "graph/ops/list.hpp"

#include <algorithm>
#include <set>

#include "engines/cpu/onednn/chain.hpp"
#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/faults.hpp"
#include "planner/conv_shape.hpp"

namespace tsr::onednn {
namespace {

using tessera::ConvMode;
using tessera::ConvOptions;
constexpr int kChannel = 1;
constexpr int kC = 2;  // slot of the addend

// Products per byte of a change of layout above which it pays.
constexpr double kFlopsPerByte = 5;

// The three directions use the same three tensors; one of them is the result.
struct Roles {
  TensorId x, w, y;
  int output;  // 0, 1, 2: x, w or y
};

bool handles(const Node& n) { return n.op->family == Family::conv && n.op->name.starts_with("conv_"); }
bool is_fprop(const Node& n) { return n.op == &ops::conv_fprop; }

Roles roles(const Node& n, TensorId result) {
  if (is_fprop(n)) return {n.in[0], n.in[1], result, 2};
  if (n.op == &ops::conv_dgrad) return {result, n.in[1], n.in[0], 0};
  return {n.in[1], result, n.in[0], 1};
}

// y = alpha * conv + beta * c
std::vector<PostOp> own_ops(const Node& n) {
  const auto& o = attrs<ConvOptions>(n);
  std::vector<PostOp> ops;
  if (o.alpha != 1) ops.push_back({dnnl::algorithm::eltwise_linear, static_cast<float>(o.alpha), 0});
  if (o.beta != 0) ops.push_back({dnnl::algorithm::binary_add, 0, 0, n.in[kC]});
  return ops;
}

Reason check_options(const Graph& g, const Node& n) {
  const auto& o = attrs<ConvOptions>(n);
  const Tensor& x = g.tensor(roles(n, n.out[0]).x);
  if (o.mode == ConvMode::convolution) return Reason::no("mode=convolution flips the filter");
  if (o.beta != 0 && o.beta != 1) return Reason::no("beta=", o.beta, ", allowed: 0 or 1");
  bool plain = o.alpha == 1 && o.beta == 0;
  if (!plain && !is_fprop(n)) return Reason::no(n.op->name, " with alpha or beta");
  if (!plain && n.compute == DType::i32) return Reason::no("alpha or beta make integer sums real");
  if (o.beta != 0 && !is_convertible(g.tensor(n.in[kC]).dtype))
    return Reason::no("c ", describe(g.tensor(n.in[kC])), " has no exact f32 value");
  for (const Ints* list : {&o.pad, &o.post_pad, &o.stride, &o.dilation})
    for (int64_t v : *list)
      if (v > 1 << 20) return Reason::no("convolution of ", describe(x), " with an option of ", v);
  return Reason::yes();
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  if (!is_fprop(n) && r.nodes.size() > 1) return Reason::no("oneDNN fuses nothing behind ", n.op->name);
  if (Reason why = check_options(g, n); !why) return why;
  Chain c;
  if (Reason why = read_chain(r, kChannel, own_ops(n), c); !why) return why;
  for (TensorId t : {n.in[0], n.in[1], c.result})
    if (Reason why = check_tensor(g.tensor(t)); !why) return why;
  if (n.compute == DType::i32 && !is_fprop(n)) return Reason::no(n.op->name, " of integers");
  return check_product(n, g.tensor(n.in[0]), g.tensor(n.in[1]), static_cast<int64_t>(n.op->terms(g, n)));
}

// Channels that do not come last cost a change of layout on both sides.
double seconds(const Region& r, const Device& d) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  Roles t = roles(n, n.out[0]);
  double bytes = region_bytes(r);
  for (TensorId id : {t.x, t.y})
    if (g.tensor(id).strides[kChannel] != 1) bytes += 2 * static_cast<double>(g.tensor(id).bytes());
  // Measured: of lines alone, layouts cost more and gradients of filters are slow; and fractions of the peak where each
  // channel is for itself: lines are products with one row then, or with as many channels as a vector has.
  constexpr double kLines = 1.8, kPlanesApart = 0.35, kGradientApart = 0.05, kLinesApart = 0.02;
  tsr::ConvShape c = tsr::conv_shape(g, n);
  double seconds = product_seconds(r, d, bytes);
  bool lines = c.axes.size() == 1, apart = g.tensor(t.x).strides[kChannel] != 1;
  if (c.groups > 1 && c.channels == 1) {
    double part = lines || (c.wgrad && apart) ? kLinesApart : c.wgrad ? kGradientApart : kPlanesApart;
    return std::max(seconds, region_flops(r) / (part * d.rates.f32));
  }
  return lines && (c.wgrad || (apart && !c.dgrad)) ? kLines * seconds : seconds;
}

// --- descriptions of the three directions in terms of x, w and y
using Fprop = dnnl::convolution_forward::primitive_desc;
using Dgrad = dnnl::convolution_backward_data::primitive_desc;
using Wgrad = dnnl::convolution_backward_weights::primitive_desc;

struct Descs {
  Desc x, w, y;
  bool operator==(const Descs& o) const { return x == o.x && w == o.w && y == o.y; }
};
Descs descs(const Fprop& p) { return {p.src_desc(), p.weights_desc(), p.dst_desc()}; }
Descs descs(const Dgrad& p) { return {p.diff_src_desc(), p.weights_desc(), p.diff_dst_desc()}; }
Descs descs(const Wgrad& p) { return {p.src_desc(), p.diff_weights_desc(), p.diff_dst_desc()}; }

constexpr int kArgs[3][3] = {{DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
                             {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
                             {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}};

// A filter as oneDNN counts its dimensions: groups come first.
Desc filter_desc(const Tensor& w, int64_t groups) {
  memory::dims dims = w.dims.to_vector(), strides = w.strides.to_vector();
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    strides.insert(strides.begin(), dims[1] * strides[0]);
  }
  return Desc(dims, *native_type(w.dtype), strides);
}

Desc any_layout(const Desc& d, DType type) { return Desc(dims_of(d), *native_type(type), memory::format_tag::any); }

bool is_slow(const std::string& implementation) {
  return implementation.find("gemm") != std::string::npos || implementation.find("ref") != std::string::npos;
}

class Builder {
 public:
  explicit Builder(const Region& r) : r_(r), g_(*r.graph), step_(std::make_unique<Sequence>(r)) {
    read_chain(r, kChannel, own_ops(g_.node(r.nodes[0])), chain_);
    roles_ = roles(*chain_.anchor, chain_.result);
  }

  std::unique_ptr<Step> build() {
    load_all();
    const Node& n = *chain_.anchor;
    if (is_fprop(n))
      make_call<Fprop>([&](const Descs& d, const dnnl::primitive_attr& attr) {
        return describe_fprop(shape_, d.x, d.w, bias_desc_, d.y, attr, without_faults());
      });
    else if (roles_.output == 0)
      make_call<Dgrad>([&](const Descs& d, const dnnl::primitive_attr& attr) {
        return describe_dgrad(shape_, d.x, d.w, d.y, attr, without_faults());
      });
    else
      make_call<Wgrad>([&](const Descs& d, const dnnl::primitive_attr& attr) {
        return describe_wgrad(shape_, d.x, d.w, d.y, attr, without_faults());
      });
    return std::move(step_);
  }

 private:
  void load_all() {
    const Node& n = *chain_.anchor;
    bool has_ops = !chain_.ops.empty() || chain_.bias != kNone;
    ProductTypes types = product_types(n, g_.tensor(n.in[0]), g_.tensor(n.in[1]), g_.tensor(chain_.result), has_ops);
    Operand first = load(*step_, g_, n.in[0], types.a, true), second = load(*step_, g_, n.in[1], types.b, true);
    // An operand that is brought into the layout of y gets its type too: y may then not be narrower.
    if (has_other_operand(types.result)) types.result = DType::f32;
    Operand result = target(*step_, g_, chain_.result, types.result, true);
    x_ = roles_.output == 0 ? result : roles_.output == 2 ? first : second;
    w_ = roles_.output == 1 ? result : second;
    y_ = roles_.output == 2 ? result : first;
    settle_channels(x_.tensor);
    settle_channels(y_.tensor);
    auto o = with_defaults(attrs<ConvOptions>(n), x_.tensor.rank() - 2);
    for (int64_t& d : o.dilation) --d;
    shape_ = {o.stride, o.dilation, o.pad, o.post_pad};
    given_ = {x_.desc(), filter_desc(w_.tensor, conv_groups(x_.tensor.dims, w_.tensor.dims)), y_.desc()};
    if (chain_.bias == kNone) return;
    bool bf16 = types.a == DType::bf16 && g_.tensor(chain_.bias).dtype == DType::bf16;
    bias_ = load(*step_, g_, chain_.bias, bf16 ? DType::bf16 : DType::f32, true);
    bias_desc_ = Desc({bias_.tensor.numel()}, *native_type(bias_.tensor.dtype), memory::format_tag::a);
  }

  bool has_other_operand(DType type) const {
    const Dims& y = g_.tensor(chain_.result).dims;
    return std::any_of(chain_.ops.begin(), chain_.ops.end(), [&](const PostOp& p) {
      if (p.operand == kNone) return false;
      const Tensor& t = g_.tensor(p.operand);
      return t.dtype != type && spread(t, y, kChannel) == Spread::full;
    });
  }

  Refuse without_faults() const {
    auto is_whole = [&](const PostOp& o) {
      return o.operand != kNone && spread(g_.tensor(o.operand), y_.tensor.dims, kChannel) == Spread::full;
    };
    Convolution c{.is_wgrad = roles_.output == 1,
                  .reads_whole = std::any_of(chain_.ops.begin(), chain_.ops.end(), is_whole),
                  .x = x_.tensor,
                  .w = w_.tensor,
                  .y = y_.tensor,
                  .shape = shape_};
    return [c, this](const std::string& implementation) {
      return is_wrong(c, implementation) || broken_.count(implementation) > 0;
    };
  }

  // Layouts to ask oneDNN for: the caller's where that is fast or not worth a change, otherwise oneDNN's choice.
  template <class Pd, class Describe>
  Descs choose_layouts(const Describe& describe) const {
    Descs mine = given_, free = given_;
    mine.w = free.w = any_layout(given_.w, w_.tensor.dtype);
    free.x = any_layout(given_.x, x_.tensor.dtype);
    free.y = any_layout(given_.y, y_.tensor.dtype);
    TeamSize size(step_->threads());
    std::optional<Pd> a = describe(mine, attributes()), b;
    if (a && !is_slow(a->impl_info_str())) return descs(*a);
    b = describe(free, attributes());
    double moved = 2 * static_cast<double>(x_.tensor.bytes() + y_.tensor.bytes());
    bool pays = !a || (region_flops(r_) > kFlopsPerByte * moved && b && !is_slow(b->impl_info_str()));
    if (pays && b) return descs(*b);
    if (!a) fail(Status::internal_error, "oneDNN refused a convolution of ", tsr::describe(x_.tensor));
    return descs(*a);
  }

  // An operand of a post-op: one value, one for each channel, or laid out as y is.
  Arg place_operand(TensorId t, const Descs& chosen) {
    const Dims& y = y_.tensor.dims;
    bool full = spread(g_.tensor(t), y, kChannel) == Spread::full;
    bool bf16 = g_.tensor(t).dtype == DType::bf16;
    Operand o = load(*step_, g_, t, bf16 ? DType::bf16 : DType::f32, true);
    if (!full) {
      memory::dims dims(static_cast<size_t>(y.size()), 1), strides(dims.size(), 1);
      dims[kChannel] = o.tensor.numel();
      strides[0] = o.tensor.numel();
      return {0, Desc(dims, *native_type(o.tensor.dtype), strides), o.place};
    }
    settle_channels(o.tensor);
    if (chosen.y == given_.y && o.tensor.strides == y_.tensor.strides) return {0, o.desc(), o.place};
    Tensor same = y_.tensor;
    same.dtype = o.tensor.dtype;
    Desc wanted = chosen.y == given_.y ? Operand{same, {}}.desc() : chosen.y;
    Place p = step_->prepare(g_, t, wanted.get_size(),
                             [&](Place place) { step_->reorder(o.desc(), o.place, wanted, place); });
    return {0, wanted, p};
  }

  // Some implementations describe work that they then fail to generate code for, as 2.6.3 does with gelu behind groups
  // of 12 channels in bf16. What is made here is found again when the primitives are.
  template <class Pd>
  bool can_be_made(const Pd& d) {
    try {
      dnnl::primitive made(d.get());
      return true;
    } catch (const dnnl::error&) {
      broken_.insert(d.impl_info_str());
      return false;
    }
  }

  template <class Pd, class Describe>
  void make_call(const Describe& describe) {
    Descs chosen = choose_layouts<Pd>(describe);
    Attached post = attach(chain_, [&](TensorId t) { return place_operand(t, chosen); });
    dnnl::primitive_attr attr = attributes(post.ops);
    // With post-ops another implementation may be the best, with another filter layout.
    chosen.w = any_layout(given_.w, w_.tensor.dtype);
    auto p = make_primitives(step_->threads(), [&](bool is_team) {
      auto d = describe(chosen, attr);
      while (d && post.ops.len() > 0 && !can_be_made(*d)) d = describe(chosen, attr);
      if (is_team && d) chosen = descs(*d);
      return d;
    });
    if (!p.team.get(true)) fail(Status::internal_error, "oneDNN refused a convolution of ", tsr::describe(x_.tensor));

    const int* index = kArgs[roles_.output];
    std::vector<Arg> args = {part(0, x_, given_.x, chosen.x, index[0]), part(1, w_, given_.w, chosen.w, index[1]),
                             part(2, y_, given_.y, chosen.y, index[2])};
    Arg result = args[static_cast<size_t>(roles_.output)];
    if (chain_.bias != kNone) args.push_back({DNNL_ARG_BIAS, bias_desc_, bias_.place});
    args.insert(args.end(), post.args.begin(), post.args.end());
    step_->call(p, std::move(args));
    finish(result);
  }

  Arg part(int which, const Operand& o, const Desc& given, const Desc& chosen, int index) {
    if (chosen == given) return {index, chosen, o.place};
    if (which == roles_.output) return {index, chosen, step_->reserve(chosen.get_size())};
    TensorId t = which == 0 ? roles_.x : which == 1 ? roles_.w : roles_.y;
    Place p =
        step_->prepare(g_, t, chosen.get_size(), [&](Place place) { step_->reorder(given, o.place, chosen, place); });
    return {index, chosen, p};
  }

  void finish(const Arg& result) {
    const Operand& o = roles_.output == 0 ? x_ : roles_.output == 1 ? w_ : y_;
    const Desc& given = roles_.output == 0 ? given_.x : roles_.output == 1 ? given_.w : given_.y;
    if (result.desc != given) step_->reorder(result.desc, result.place, given, o.place);
    store(*step_, g_, chain_.result, o);
  }

  const Region& r_;
  const Graph& g_;
  std::unique_ptr<Sequence> step_;
  Chain chain_;
  Roles roles_{};
  Operand x_, w_, y_, bias_;
  ConvShape shape_;
  Descs given_;
  Desc bias_desc_;
  std::set<std::string> broken_;  // implementations
};

std::unique_ptr<Step> build(const Region& r) { return Builder(r).build(); }

}  // namespace

const FamilyEntry kConvolution = {handles, check, seconds, build};

}  // namespace tsr::onednn
