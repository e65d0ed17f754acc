// SPDX-License-Identifier: Apache-2.0
// Recurrent networks forward, one primitive for each layer: oneDNN stacks layers only where all have equal inputs.
// States stay in f32 whatever the tensors are stored in.
#include <algorithm>

#include "engines/cpu/onednn/families.hpp"
#include "engines/cpu/onednn/operands.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/rnn_layout.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::onednn {
namespace {

using tessera::Phase;
using tessera::RnnBias;
using tessera::RnnInput;
using tessera::RnnLayout;
using tessera::RnnMode;
using tessera::RnnOptions;
using namespace slots::rnn_fwd;

bool handles(const Node& n) { return n.op == &ops::rnn_fwd; }

Reason check_options(const RnnOptions& o) {
  if (o.packed) return Reason::no("packed sequences");
  if (o.proj > 0) return Reason::no("proj=", o.proj, ", allowed: 0");
  if (o.input == RnnInput::skip) return Reason::no("input=skip");
  if (o.clip_min) return Reason::no("the cell state is clipped");
  if (o.dropout > 0 && o.phase == Phase::training && o.layers > 1)
    return Reason::no("dropout=", o.dropout, " between layers");
  if (o.bias == RnnBias::none) return Reason::no("bias=none");
  if (o.mode == RnnMode::gru && o.bias != RnnBias::both) return Reason::no("gru without both biases");
  return Reason::yes();
}

Reason check(const Region& r) {
  const Graph& g = *r.graph;
  const Node& n = g.node(r.nodes[0]);
  const auto& o = attrs<RnnOptions>(n);
  if (r.nodes.size() > 1) return Reason::no("oneDNN fuses nothing with rnn_fwd");
  if (n.compute != DType::f32) return Reason::no("rnn_fwd computes in ", n.compute, ", allowed: f32");
  if (slot(n.in, kLengths) != kNone) return Reason::no("sequences of different lengths");
  if (Reason why = check_options(o); !why) return why;
  bool h0 = slot(n.in, kH0) != kNone, c0 = slot(n.in, kC0) != kNone;
  if (o.mode == RnnMode::lstm && h0 != c0) return Reason::no("one of h0 and c0 without the other");
  for (const auto* list : {&n.in, &n.out})
    for (TensorId t : *list) {
      if (t == kNone) continue;
      if (Reason why = check_tensor(g.tensor(t)); !why) return why;
      if (!is_convertible(g.tensor(t).dtype)) return Reason::no("tensor ", describe(g.tensor(t)), " has no f32 value");
    }
  for (TensorId t : n.out)
    if (t != kNone && std::find(r.outputs.begin(), r.outputs.end(), t) == r.outputs.end())
      return Reason::no("nobody wants ", describe(g.tensor(t)), ", which oneDNN writes");
  const Tensor& w = g.tensor(n.in[kWeight]);
  if (w.strides[0] != 1) return Reason::no("weight ", describe(w), " has stride ", w.strides[0], ", allowed: 1");
  return Reason::yes();
}

double seconds(const Region& r, const Device& d) {
  constexpr double kEfficiency = 0.9;  // measured: of the f32 peak
  return std::max(region_bytes(r) / d.bytes_per_second, region_flops(r) / (kEfficiency * d.rates.f32));
}

Tensor row_major(const Dims& dims, DType type = DType::f32) {
  Tensor t;
  t.dtype = type;
  t.dims = dims;
  t.strides = packed_strides(dims);
  return t;
}

Desc desc(std::initializer_list<int64_t> dims, memory::format_tag tag) {
  return Desc(memory::dims(dims), Type::f32, tag);
}

class Builder {
 public:
  explicit Builder(const Region& r)
      : g_(*r.graph),
        n_(g_.node(r.nodes[0])),
        o_(attrs<RnnOptions>(n_)),
        weights_(o_, g_.tensor(n_.in[kX]).dims.back()),
        step_(std::make_unique<Sequence>(r)) {
    const Dims& x = g_.tensor(n_.in[kX]).dims;
    bool batch_major = o_.layout == RnnLayout::batch_major;
    steps_ = x[batch_major ? 1 : 0], batch_ = x[batch_major ? 0 : 1];
    directions_ = weights_.directions(), gates_ = weights_.gates(), hidden_ = o_.hidden;
  }

  std::unique_ptr<Step> build() {
    Dims states{o_.layers * directions_, batch_, hidden_};
    Place x = input(n_.in[kX], time_major(n_.in[kX]));
    Place h0 = input(slot(n_.in, kH0), {}), c0 = input(slot(n_.in, kC0), {});
    bool lstm = o_.mode == RnnMode::lstm;
    has_start_ = slot(n_.in, kH0) != kNone;
    has_end_ = slot(n_.out, kHn) != kNone || slot(n_.out, kCn) != kNone;
    Place hn = output(slot(n_.out, kHn), states), cn = lstm ? output(slot(n_.out, kCn), states) : Place{};
    Place y = y_place();
    make_layers();
    load_weights();
    Place in = x;
    for (int64_t l = 0; l < o_.layers; ++l) {
      Place out =
          l + 1 == o_.layers ? y : step_->reserve(4 * static_cast<size_t>(steps_ * batch_ * directions_ * hidden_));
      call_layer(l, in, out, h0, c0, hn, cn);
      in = out;
    }
    finish(n_.out[kY], y, time_major(n_.out[kY]));
    finish(slot(n_.out, kHn), hn, {});
    finish(slot(n_.out, kCn), cn, {});
    return std::move(step_);
  }

 private:
  struct Layer {
    Primitives primitives;
    RnnDescs descs;
    size_t w = 0, r = 0, bias = 0;  // bytes from the first weight
  };

  int64_t bias_rows() const { return o_.mode == RnnMode::gru ? 4 : gates_; }
  // oneDNN puts the update gate of gru before the reset gate.
  int64_t our_gate(int64_t gate) const { return o_.mode == RnnMode::gru && gate < 2 ? 1 - gate : gate; }

  // The tensor with time first, whatever its layout.
  Tensor time_major(TensorId id) const {
    Tensor t = g_.tensor(id);
    if (o_.layout == RnnLayout::batch_major) {
      std::swap(t.dims[0], t.dims[1]);
      std::swap(t.strides[0], t.strides[1]);
    }
    return t;
  }

  // `seen` is the tensor as it is to be read; empty: as it is.
  const Tensor& as_seen(TensorId t, const Tensor& seen) const { return seen.rank() > 0 ? seen : g_.tensor(t); }
  static bool fits(const Tensor& t) { return t.dtype == DType::f32 && t.strides == packed_strides(t.dims); }

  Place input(TensorId id, const Tensor& seen) {
    if (id == kNone) return {};
    const Tensor& t = as_seen(id, seen);
    if (fits(t)) return Sequence::at(id);
    Tensor copy = row_major(t.dims);
    return step_->prepare(g_, id, static_cast<size_t>(copy.bytes()),
                          [&](Place p) { step_->copy(t, Sequence::at(id), copy, p); });
  }

  // An lstm gives both states or none.
  Place output(TensorId id, const Dims& dims) {
    if (!has_end_) return {};
    if (id != kNone && fits(g_.tensor(id))) return Sequence::at(id);
    return step_->reserve(static_cast<size_t>(row_major(dims).bytes()));
  }

  Place y_place() {
    Tensor t = time_major(n_.out[kY]);
    return fits(t) ? Sequence::at(n_.out[kY]) : step_->reserve(static_cast<size_t>(row_major(t.dims).bytes()));
  }

  void finish(TensorId id, Place from, const Tensor& seen) {
    if (id == kNone || from.kind == Place::tensor) return;
    const Tensor& t = as_seen(id, seen);
    step_->copy(row_major(t.dims), from, t, Sequence::at(id));
  }

  Cell cell() const {
    switch (o_.mode) {
      case RnnMode::relu:
        return Cell::relu;
      case RnnMode::tanh:
        return Cell::tanh;
      case RnnMode::lstm:
        return Cell::lstm;
      default:
        return Cell::gru;
    }
  }

  void make_layers() {
    using tag = memory::format_tag;
    for (int64_t l = 0; l < o_.layers; ++l) {
      Layer layer;
      RnnDescs& d = layer.descs;
      int64_t inputs = weights_.inputs(l);
      d.x = desc({steps_, batch_, inputs}, tag::tnc);
      d.y = desc({steps_, batch_, directions_ * hidden_}, tag::tnc);
      Desc state = desc({1, directions_, batch_, hidden_}, tag::ldnc);
      if (has_start_) d.h0 = d.c0 = state;
      if (has_end_) d.hn = d.cn = state;
      d.w = desc({1, directions_, inputs, gates_, hidden_}, tag::any);
      d.r = desc({1, directions_, hidden_, gates_, hidden_}, tag::any);
      d.bias = desc({1, directions_, bias_rows(), hidden_}, tag::ldgo);
      layer.primitives = make_primitives(step_->threads(), [&](bool is_team) {
        auto made = describe_rnn(cell(), o_.bidirectional, d, attributes());
        if (is_team && made) d.w = made->w, d.r = made->r;
        return made;
      });
      if (!layer.primitives.team.get(true)) fail(Status::internal_error, "oneDNN refused a recurrent layer");
      layers_.push_back(std::move(layer));
    }
  }

  void load_weights() {
    size_t bytes = 0;
    auto take = [&](const Desc& d) {
      size_t at = bytes;
      bytes += (d.get_size() + 63) / 64 * 64;
      return at;
    };
    for (Layer& l : layers_) l.w = take(l.descs.w), l.r = take(l.descs.r), l.bias = take(l.descs.bias);
    all_ = step_->prepare(g_, n_.in[kWeight], bytes, [&](Place p) {
      all_ = p;
      for (int64_t l = 0; l < o_.layers; ++l) {
        Layer& layer = layers_[static_cast<size_t>(l)];
        load_matrices(layer.descs.w, behind(layer.w),
                      [&](int64_t d, int64_t gate) { return weights_.input(l, d, gate); });
        load_matrices(layer.descs.r, behind(layer.r),
                      [&](int64_t d, int64_t gate) { return weights_.recurrent(l, d, gate); });
        load_bias(l, behind(layer.bias));
      }
    });
  }

  Place behind(size_t bytes) const {
    Place p = all_;
    p.offset += bytes;
    return p;
  }

  DType weight_type() const { return g_.tensor(n_.in[kWeight]).dtype; }
  Place weight_at(int64_t element) const {
    return {Place::tensor, n_.in[kWeight], static_cast<size_t>(byte_size(weight_type(), element))};
  }

  // Matrices [outputs, inputs] for each direction and gate, in oneDNN's order of gates and then its layout.
  template <class Part>
  void load_matrices(const Desc& wanted, Place target, const Part& part) {
    int64_t inputs = part(0, 0).columns, size = hidden_ * inputs;
    Desc plain = desc({1, directions_, inputs, gates_, hidden_}, memory::format_tag::ldgoi);
    Place from = weight_at(part(0, 0).offset);
    if (directions_ > 1 || o_.mode == RnnMode::gru || weight_type() != DType::f32) {
      from = plain == wanted ? target : step_->reserve(plain.get_size());
      for (int64_t d = 0; d < directions_; ++d)
        for (int64_t gate = 0; gate < gates_; ++gate) {
          Place to = from;
          to.offset += 4 * static_cast<size_t>((d * gates_ + gate) * size);
          step_->copy(row_major({size}, weight_type()), weight_at(part(d, our_gate(gate)).offset), row_major({size}),
                      to);
        }
      if (plain == wanted) return;
    }
    step_->reorder(plain, from, wanted, target);
  }

  // Sums of both biases; gru keeps those of its last gate apart.
  void load_bias(int64_t l, Place target) {
    Tensor from = row_major({hidden_}, weight_type()), to = row_major({hidden_});
    for (int64_t d = 0; d < directions_; ++d)
      for (int64_t row = 0; row < bias_rows(); ++row) {
        Place p = target;
        p.offset += 4 * static_cast<size_t>((d * bias_rows() + row) * hidden_);
        int64_t gate = our_gate(std::min(row, gates_ - 1));
        RnnPart w = weights_.input_bias(l, d, gate), r = weights_.recurrent_bias(l, d, gate);
        bool apart = o_.mode == RnnMode::gru && row >= 2;
        if (w.size() > 0 && r.size() > 0 && !apart)
          step_->add(from, weight_at(w.offset), weight_at(r.offset), to, p);
        else
          step_->copy(from, weight_at((w.size() == 0 || row == gates_ ? r : w).offset), to, p);
      }
  }

  void call_layer(int64_t l, Place x, Place y, Place h0, Place c0, Place hn, Place cn) {
    const Layer& layer = layers_[static_cast<size_t>(l)];
    const RnnDescs& d = layer.descs;
    bool lstm = o_.mode == RnnMode::lstm;
    auto state = [&](Place p) {
      p.offset += 4 * static_cast<size_t>(l * directions_ * batch_ * hidden_);
      return p;
    };
    std::vector<Arg> args = {{DNNL_ARG_SRC_LAYER, d.x, x},
                             {DNNL_ARG_WEIGHTS_LAYER, d.w, behind(layer.w)},
                             {DNNL_ARG_WEIGHTS_ITER, d.r, behind(layer.r)},
                             {DNNL_ARG_BIAS, d.bias, behind(layer.bias)},
                             {DNNL_ARG_DST_LAYER, d.y, y}};
    if (has_start_) args.push_back({DNNL_ARG_SRC_ITER, d.h0, state(h0)});
    if (has_start_ && lstm) args.push_back({DNNL_ARG_SRC_ITER_C, d.c0, state(c0)});
    if (has_end_) args.push_back({DNNL_ARG_DST_ITER, d.hn, state(hn)});
    if (has_end_ && lstm) args.push_back({DNNL_ARG_DST_ITER_C, d.cn, state(cn)});
    step_->call(layer.primitives, std::move(args));
  }

  const Graph& g_;
  const Node& n_;
  const RnnOptions& o_;
  RnnWeights weights_;
  std::unique_ptr<Sequence> step_;
  int64_t steps_, batch_, directions_, gates_, hidden_;
  bool has_start_ = false, has_end_ = false;
  std::vector<Layer> layers_;
  Place all_;  // prepared weights of all layers
};

std::unique_ptr<Step> build(const Region& r) { return Builder(r).build(); }

}  // namespace

const FamilyEntry kRecurrent = {handles, check, seconds, build};

}  // namespace tsr::onednn
