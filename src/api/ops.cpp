// SPDX-License-Identifier: Apache-2.0
#include "tessera/ops.hpp"

#include <cmath>

#include "api/state.hpp"
#include "graph/gradient.hpp"
#include "graph/pointwise_modes.hpp"

namespace tessera {

using tsr::kNone;
using tsr::require;

namespace {

// The graph that an operation on these tensors belongs to: a sub-graph under construction when any of them is in it.
GraphState& home(const std::vector<Tensor>& inputs, const Named& named) {
  std::shared_ptr<GraphState> found;
  auto visit = [&](const Tensor& t) {
    const auto& s = GraphState::of(t);
    if (!found || (s->inside && !found->inside)) found = s;
  };
  for (const Tensor& t : inputs)
    if (t) visit(t);
  for (const auto& [name, t] : named)
    if (t) visit(t);
  require(found != nullptr, "an operation needs at least one tensor");
  return *found;
}

size_t find_slot(const std::vector<tsr::Slot>& slots, std::string_view name, const std::string& op, const char* what) {
  std::vector<std::string> names;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].name == name) return i;
    names.emplace_back(slots[i].name);
  }
  std::string near = tsr::nearest(name, names);
  tsr::fail(Status::bad_parameter, op, " has no ", what, " named '", name, "'",
            near.empty() ? "" : "; did you mean '" + near + "'?");
}

}  // namespace

Tensor scalar_like(const Tensor& t, double v) {
  GraphState& s = *GraphState::of(t);
  DType type = t.dtype() == DType::f64 || t.dtype() == DType::c128 ? DType::f64 : DType::f32;
  if (tsr::is_integer(t.dtype()) && v == std::floor(v)) type = t.dtype() == DType::i64 ? DType::i64 : DType::i32;
  return s.handle(s.graph.add_tensor(tsr::make_scalar_constant(type, v)));
}

Tensor Results::operator[](std::string_view name) const {
  for (const auto& [n, t] : outputs_)
    if (n == name) return t;
  tsr::fail(Status::bad_parameter, "there is no output '", name, "' here; optional outputs must be asked for by name");
}

Tensor Results::operator[](int64_t i) const {
  auto count = static_cast<int64_t>(outputs_.size());
  require(i >= 0 && i < count, "there is no output ", i, " here, but ", count);
  return outputs_[static_cast<size_t>(i)].second;
}

Results call(std::string_view op, const std::vector<Tensor>& inputs, std::any options, const Named& named,
             const Wanted& wanted) {
  auto spelled = tsr::find_spelling(op);
  if (!spelled) tsr::fail(Status::bad_parameter, "unknown operation '", op, "'", tsr::hint_for_operation(op));
  GraphState& s = home(inputs, named);
  const tsr::OpSpec& spec = *spelled->op;
  std::string label(op);
  tsr::Node n;
  n.op = &spec;
  n.attrs = spelled->options;
  if (options.has_value()) {
    require(options.type() == spec.defaults.type(), label, ": the options are of another operation");
    n.attrs = std::move(options);
    // The spelling decides the mode, whatever the struct says.
    if (spelled->sets_mode) tsr::copy_mode(spec, spelled->options, n.attrs);
  }
  bool variadic = !spec.in.empty() && spec.in.back().kind == tsr::Slot::variadic;
  require(variadic || inputs.size() <= spec.in.size(), label, " takes at most ", spec.in.size(), " inputs, ",
          inputs.size(), " given");
  for (const Tensor& t : inputs) n.in.push_back(t ? s.resolve(t) : kNone);
  for (const auto& [name, t] : named) {
    if (!t) continue;
    size_t slot = find_slot(spec.in, name, label, "input");
    if (n.in.size() <= slot) n.in.resize(slot + 1, kNone);
    require(n.in[slot] == kNone, label, ": input '", name, "' is given twice");
    n.in[slot] = s.resolve(t);
  }
  n.out.assign(spec.out.size(), kNone);
  for (std::string_view name : wanted) n.out[find_slot(spec.out, name, label, "output")] = tsr::kNew;
  for (const Subgraph& g : tsr::subgraphs(n))
    n.captures.insert(n.captures.end(), g->captured.begin(), g->captured.end());
  if (spec.complete) spec.complete(s.graph, n);
  s.types.set_compute(s.graph, n);
  tsr::NodeId id = s.graph.add_node(std::move(n));
  s.types.set_results(s.graph, id);
  const tsr::Node& added = s.graph.node(id);
  std::vector<std::pair<std::string, Tensor>> outputs;
  for (size_t i = 0; i < added.out.size(); ++i)
    if (added.out[i] != kNone) outputs.emplace_back(spec.out[i].name, s.handle(added.out[i]));
  return Results(std::move(outputs));
}

Tensor pointwise(PointwiseMode mode, const std::vector<Tensor>& inputs, PointwiseOptions options) {
  return call(tsr::pointwise_names()[static_cast<size_t>(mode)], inputs, options);
}

Tensor operator+(Tensor a, Tensor b) { return call("add", {a, b}); }
Tensor operator-(Tensor a, Tensor b) { return call("sub", {a, b}); }
Tensor operator*(Tensor a, Tensor b) { return call("mul", {a, b}); }
Tensor operator/(Tensor a, Tensor b) { return call("div", {a, b}); }
Tensor operator+(Tensor a, double b) { return a + scalar_like(a, b); }
Tensor operator-(Tensor a, double b) { return a - scalar_like(a, b); }
Tensor operator*(Tensor a, double b) { return a * scalar_like(a, b); }
Tensor operator/(Tensor a, double b) { return a / scalar_like(a, b); }
Tensor operator+(double a, Tensor b) { return scalar_like(b, a) + b; }
Tensor operator-(double a, Tensor b) { return scalar_like(b, a) - b; }
Tensor operator*(double a, Tensor b) { return scalar_like(b, a) * b; }
Tensor operator/(double a, Tensor b) { return scalar_like(b, a) / b; }
Tensor operator-(Tensor a) { return call("neg", {a}); }
Tensor relu(Tensor x, PointwiseOptions o) { return call("relu", {x}, o); }
Tensor gelu(Tensor x) { return call("gelu", {x}); }
Tensor gelu_tanh(Tensor x) { return call("gelu_tanh", {x}); }
Tensor sigmoid(Tensor x) { return call("sigmoid", {x}); }
Tensor tanh(Tensor x) { return call("tanh", {x}); }
Tensor swish(Tensor x, PointwiseOptions o) { return call("swish", {x}, o); }
Tensor silu(Tensor x) { return call("silu", {x}); }
Tensor elu(Tensor x, PointwiseOptions o) { return call("elu", {x}, o); }
Tensor softplus(Tensor x, PointwiseOptions o) { return call("softplus", {x}, o); }
Tensor exp(Tensor x) { return call("exp", {x}); }
Tensor log(Tensor x) { return call("log", {x}); }
Tensor sqrt(Tensor x) { return call("sqrt", {x}); }
Tensor rsqrt(Tensor x) { return call("rsqrt", {x}); }
Tensor erf(Tensor x) { return call("erf", {x}); }
Tensor abs(Tensor x) { return call("abs", {x}); }
Tensor max(Tensor a, Tensor b) { return call("max", {a, b}); }
Tensor min(Tensor a, Tensor b) { return call("min", {a, b}); }
Tensor pow(Tensor a, Tensor b) { return call("pow", {a, b}); }
Tensor max(Tensor a, double b) { return max(a, scalar_like(a, b)); }
Tensor min(Tensor a, double b) { return min(a, scalar_like(a, b)); }
Tensor pow(Tensor a, double b) { return pow(a, scalar_like(a, b)); }
Tensor sin(Tensor x) { return call("sin", {x}); }
Tensor cos(Tensor x) { return call("cos", {x}); }
Tensor identity(Tensor x) { return call("identity", {x}); }
Tensor select(Tensor condition, Tensor yes, Tensor no) { return call("select", {yes, no, condition}); }

Tensor reduce(Tensor x, ReduceOptions o) {
  static constexpr const char* kNames[] = {"reduce_add",   "reduce_mul",   "reduce_min",
                                           "reduce_max",   "reduce_amax",  "reduce_avg",
                                           "reduce_norm1", "reduce_norm2", "reduce_mul_no_zeros"};
  return call(kNames[static_cast<size_t>(o.mode)], {x}, o);
}
Tensor sum(Tensor x, const Ints& axes) { return reduce(x, {.mode = ReduceMode::add, .axes = axes}); }
Tensor mean(Tensor x, const Ints& axes) { return reduce(x, {.mode = ReduceMode::avg, .axes = axes}); }
Tensor argmax(Tensor x, int64_t axis) { return call("argmax", {x}, ArgmaxOptions{axis}); }
Results top_k(Tensor x, int64_t k, int64_t axis, const Wanted& wanted) {
  return call("top_k", {x}, TopKOptions{.k = k, .axis = axis}, {}, wanted);
}
Tensor cumsum(Tensor x, CumsumOptions o) { return call("cumsum", {x}, o); }

Tensor matmul(Tensor a, Tensor b, MatmulOptions o, const Named& named) { return call("matmul", {a, b}, o, named); }
Tensor moe_matmul(Tensor token, Tensor weight, Tensor offsets, MoeOptions o, const Named& named) {
  return call("moe_matmul", {token, weight, offsets}, o, named);
}
Tensor conv_fprop(Tensor x, Tensor w, ConvOptions o, const Named& named) {
  return call("conv_fprop", {x, w}, o, named);
}
Tensor conv_dgrad(Tensor dy, Tensor w, ConvOptions o, const Named& named) {
  return call("conv_dgrad", {dy, w}, o, named);
}
Tensor conv_wgrad(Tensor dy, Tensor x, ConvOptions o, const Named& named) {
  return call("conv_wgrad", {dy, x}, o, named);
}
Tensor causal_conv1d(Tensor x, Tensor weight, CausalConvOptions o, const Named& named) {
  return call("causal_conv1d", {x, weight}, o, named);
}

namespace {
constexpr std::string_view kNorms[] = {"layer_norm", "instance_norm", "batch_norm",
                                       "group_norm", "rms_norm",      "ada_layer_norm"};
}

Results norm(NormMode mode, Tensor x, NormOptions o, const Named& named, const Wanted& wanted) {
  return call(kNorms[static_cast<size_t>(mode)], {x}, o, named, wanted);
}
Results norm_bwd(NormMode mode, Tensor x, Tensor dy, NormOptions o, const Named& named, const Wanted& wanted) {
  return call(std::string(kNorms[static_cast<size_t>(mode)]) + "_bwd", {x, dy}, o, named, wanted);
}
Results layer_norm(Tensor x, Tensor scale, Tensor bias, NormOptions o, const Wanted& wanted) {
  return norm(NormMode::layer, x, o, {{"scale", scale}, {"bias", bias}}, wanted);
}
Results rms_norm(Tensor x, Tensor scale, NormOptions o, const Wanted& wanted) {
  return norm(NormMode::rms, x, o, {{"scale", scale}}, wanted);
}
Results batch_norm(Tensor x, Tensor scale, Tensor bias, NormOptions o, const Named& named, const Wanted& wanted) {
  Named all = named;
  all.emplace_back("scale", scale);
  all.emplace_back("bias", bias);
  return norm(NormMode::batch, x, o, all, wanted);
}

Results softmax(Tensor x, const Ints& axes, const Named& named, const Wanted& wanted) {
  SoftmaxOptions o;
  o.axes = axes;
  return call("softmax", {x}, o, named, wanted);
}
Results log_softmax(Tensor x, const Ints& axes, const Named& named, const Wanted& wanted) {
  SoftmaxOptions o;
  o.axes = axes;
  return call("log_softmax", {x}, o, named, wanted);
}
Results sdpa_fwd(Tensor q, Tensor k, Tensor v, SdpaOptions o, const Named& named, const Wanted& wanted) {
  return call("sdpa_fwd", {q, k, v}, o, named, wanted);
}
Results sdpa_bwd(Tensor q, Tensor k, Tensor v, Tensor o, Tensor d_o, Tensor stats, SdpaOptions options,
                 const Named& named, const Wanted& wanted) {
  return call("sdpa_bwd", {q, k, v, o, d_o, stats}, options, named, wanted);
}
Results cross_entropy(Tensor logits, Tensor target, CrossEntropyOptions o, const Wanted& wanted) {
  return call("cross_entropy", {logits, target}, o, {}, wanted);
}
Tensor rope(Tensor x, Tensor freqs, RopeOptions o) { return call("rope", {x, freqs}, o); }

Results resample(Tensor x, ResampleOptions o, const Wanted& wanted) { return call("resample", {x}, o, {}, wanted); }
Results max_pool(Tensor x, ResampleOptions o, const Wanted& wanted) { return call("max_pool", {x}, o, {}, wanted); }
Tensor avg_pool(Tensor x, ResampleOptions o) { return call("avg_pool", {x}, o); }
Tensor reshape(Tensor x, const Ints& size, ReshapeMode mode) {
  ReshapeOptions o;
  o.size = size;
  o.mode = mode;
  return call("reshape", {x}, o);
}
Tensor transpose(Tensor x, const Ints& perm) { return call("transpose", {x}, TransposeOptions{perm}); }
Tensor slice(Tensor x, SliceOptions o) { return call("slice", {x}, o); }
Tensor concat(const std::vector<Tensor>& inputs, int64_t axis) {
  ConcatOptions o;
  o.axis = axis;
  return call("concat", inputs, o);
}
Tensor gather(Tensor x, Tensor index, GatherOptions o) { return call("gather", {x, index}, o); }
Tensor embedding(Tensor table, Tensor ids) { return call("embedding", {table, ids}); }
Tensor scatter_add(Tensor updates, Tensor index, ScatterAddOptions o, const Named& named) {
  return call("scatter_add", {updates, index}, o, named);
}
Results dropout(Tensor x, DropoutOptions o, const Named& named, const Wanted& wanted) {
  return call("dropout", {x}, o, named, wanted);
}
Results block_scale_quantize(Tensor x, BlockScaleOptions o) { return call("block_scale_quantize", {x}, o); }
Tensor block_scale_dequantize(Tensor x, Tensor scale, BlockScaleOptions o) {
  return call("block_scale_dequantize", {x, scale}, o);
}
Results rnn_fwd(Tensor x, Tensor weight, RnnOptions o, const Named& named, const Wanted& wanted) {
  return call("rnn_fwd", {x, weight}, o, named, wanted);
}
Results ctc_loss(Tensor logits, Tensor labels, Tensor label_lengths, Tensor input_lengths, CtcOptions o,
                 const Wanted& wanted) {
  return call("ctc_loss", {logits, labels, label_lengths, input_lengths}, o, {}, wanted);
}

std::vector<Tensor> gradient(Tensor loss, const std::vector<Tensor>& inputs, Tensor seed) {
  GraphState& s = *GraphState::of(loss);
  std::vector<tsr::TensorId> ids;
  for (const Tensor& t : inputs) ids.push_back(s.resolve(t));
  std::vector<Tensor> results;
  for (tsr::TensorId d : tsr::gradient(s.graph, s.resolve(loss), ids, seed ? s.resolve(seed) : kNone))
    results.push_back(s.handle(d));
  return results;
}

}  // namespace tessera
