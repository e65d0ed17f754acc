// SPDX-License-Identifier: Apache-2.0
// Reverse mode: nodes are visited from the loss backwards, each rule hands gradients of the node's inputs over, and a
// tensor's gradients are added up when its own producer is visited.
#include "graph/gradient.hpp"

#include <algorithm>

#include "graph/ops/list.hpp"
#include "graph/passes/recompute.hpp"
#include "graph/passes/rewrite.hpp"

namespace tsr {
namespace {

using tessera::PointwiseOptions;
using tessera::ReduceOptions;

size_t at(int i) { return static_cast<size_t>(i); }

// The type in which a tensor's gradient is kept: that of the tensor, but never narrower than 16 bits.
DType gradient_type(DType t) { return info(t).bits >= 16 ? t : DType::f32; }

// Whether any of these tensors is marked.
bool any_of(const std::vector<bool>& marked, const std::vector<TensorId>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [&](TensorId t) { return t != kNone && marked[at(t)]; });
}

}  // namespace

std::vector<TensorId> gradient(Graph& g, TensorId loss, const std::vector<TensorId>& inputs, TensorId seed) {
  Graph grown = g;
  std::vector<TensorId> results = Gradient(grown, loss, inputs, seed).run();
  g = std::move(grown);
  return results;
}

tessera::Subgraph gradient(const Subgraph& body) {
  Graph g = body.graph;
  TensorId param = body.params[0], result = body.results[0];
  Tensor seed = g.tensor(result);
  seed.name.clear();
  seed.uid = 0;
  seed.stored = seed.dtype_given = seed.dims_given = seed.strides_given = true;
  TensorId d_result = g.add_tensor(seed);
  TensorId d_param = gradient(g, result, {param}, d_result)[0];
  g.edit(result).stored = false;
  g.mark_output(d_param);
  g.finalize();
  // Ids change when what the gradient does not need is left out; names stay.
  auto made = std::make_shared<Subgraph>();
  made->graph = *Rewrite(GraphView(g)).build();
  auto same = [&](TensorId t) { return made->graph.find(g.tensor(t).name); };
  made->params = {same(d_result), same(param)};
  made->results = {same(d_param)};
  for (TensorId t : body.captures) made->captures.push_back(same(t));
  made->captured = body.captured;
  return made;
}

Gradient::Gradient(Graph& g, TensorId loss, const std::vector<TensorId>& inputs, TensorId seed)
    : g_(g), loss_(loss), seed_(seed), inputs_(inputs), first_new_(g.tensor_count()) {}

std::vector<TensorId> Gradient::run() {
  const Tensor& loss = tensor(loss_);
  require(is_real(loss.dtype), "gradient: the loss ", describe(loss), " must have a floating-point type");
  if (seed_ == kNone) {
    require(loss.numel() == 1, "gradient: the loss ", describe(loss), " has ", loss.numel(),
            " elements; give it one, or a seed of its sizes");
  } else {
    require(tensor(seed_).dims == loss.dims && is_real(tensor(seed_).dtype), "gradient: the seed ",
            describe(tensor(seed_)), " must have a floating-point type and the sizes of the loss ", describe(loss));
  }
  for (TensorId x : inputs_)
    require(is_real(tensor(x).dtype), "gradient: ", describe(tensor(x)),
            " has no gradient; only floating-point tensors do");
  find_needed();
  int nodes = g_.node_count();
  if (needed_[at(loss_)]) parts_[loss_] = {seed_ == kNone ? number(1) : seed_};
  for (NodeId id = nodes - 1; id >= 0; --id) {
    const std::vector<TensorId>& out = g_.node(id).out;
    bool reached = std::any_of(out.begin(), out.end(), [&](TensorId t) { return parts_.count(t) > 0; });
    if (!reached || !(any_of(needed_, g_.node(id).in) || any_of(needed_, g_.node(id).captures))) continue;
    begin(id);
    if (!n_.op->gradient)
      fail(Status::bad_parameter, "gradient: ", label(), " has no derivative here: ", n_.op->no_gradient);
    n_.op->gradient(*this);
  }
  std::vector<TensorId> results;
  for (TensorId x : inputs_) results.push_back(result(x));
  recompute_pointwise(g_, nodes);
  return results;
}

void Gradient::begin(NodeId id) {
  current_ = id;
  n_ = g_.node(id);
}

void Gradient::find_needed() {
  needed_.assign(at(g_.tensor_count()), false);
  for (TensorId x : inputs_) needed_[at(x)] = true;
  for (NodeId i = 0; i < g_.node_count(); ++i) {
    const Node& n = g_.node(i);
    for (TensorId t : node_reads(g_, n))
      require(g_.producer(t) < i, "gradient: the graph's nodes are in no order; finalize() it first");
    if (!any_of(needed_, n.in) && !any_of(needed_, n.captures)) continue;
    for (TensorId t : n.out)
      if (t != kNone && is_real(tensor(t).dtype)) needed_[at(t)] = true;
  }
}

// --- the node

TensorId Gradient::in(int slot) const { return slot < static_cast<int>(n_.in.size()) ? n_.in[at(slot)] : kNone; }

TensorId Gradient::out(int slot) {
  if (n_.out[at(slot)] == kNone) n_.out[at(slot)] = g_.add_output(current_, at(slot));
  return n_.out[at(slot)];
}

bool Gradient::wants(int slot) const { return has(slot) && needed_[at(in(slot))]; }

bool Gradient::reached(int slot) const {
  TensorId t = n_.out[at(slot)];
  return t != kNone && parts_.count(t) > 0;
}

TensorId Gradient::narrow_d(int slot) { return reached(slot) ? total(n_.out[at(slot)]) : number(0); }

TensorId Gradient::d(int slot) { return expand(narrow_d(slot), out(slot)); }

void Gradient::add(int slot, TensorId gradient, TensorId like) {
  TensorId x = in(slot);
  Dims target = tensor(x).dims;
  if (like != kNone) {
    // Equal values that the sum below would take for one.
    Dims full = tensor(like).dims, given = tensor(gradient).dims;
    auto size = [](const Dims& d, int from_last) { return from_last > d.size() ? 1 : d[d.size() - from_last]; };
    for (int i = 1; i <= full.size(); ++i)
      if (size(target, i) < size(full, i) && size(given, i) < size(full, i)) {
        gradient = expand(gradient, like);
        break;
      }
  }
  gradient = sum_to(gradient, target);
  if (tensor(x).ragged != kNone && gradient >= first_new_ && g_.producer(gradient) != kNone) {
    Tensor& t = g_.edit(gradient);
    t.ragged = tensor(x).ragged;
    t.ragged_multiplier = tensor(x).ragged_multiplier;
  }
  parts_[x].push_back(gradient);
  ++uses_[gradient];
}

std::string Gradient::label() const {
  for (TensorId t : n_.out)
    if (t != kNone) return cat(spelling(n_), " '", tensor(t).name, "'");
  return spelling(n_);
}

void Gradient::refuse(int slot, std::string_view why) const {
  require(!wants(slot), "gradient: ", label(), " has no derivative with respect to its input ",
          n_.op->in[std::min(at(slot), n_.op->in.size() - 1)].name, " ", wants(slot) ? to_text(tensor(in(slot))) : "",
          ": ", why);
}

void Gradient::refuse_captures(std::string_view why) const {
  for (TensorId t : n_.captures)
    require(!needed_[at(t)], "gradient: ", label(), " has no derivative with respect to ", describe(tensor(t)), ": ",
            why);
}

void Gradient::refuse_output(int slot, std::string_view why) const {
  require(!reached(slot), "gradient: the loss depends on output ", n_.op->out[at(slot)].name, " of ", label(),
          ", which has no derivative: ", why);
}

void Gradient::refuse_other_outputs(int but) const {
  for (int i = 0; i < static_cast<int>(n_.out.size()); ++i)
    if (i != but) refuse_output(i, "there is no rule for it");
}

// --- nodes

std::vector<TensorId> Gradient::call(const OpSpec& op, std::vector<TensorId> in, std::any options,
                                     const std::vector<int>& wanted, const Tensor* declared) {
  std::vector<TensorId> out(op.out.size(), kNone);
  for (int slot : wanted) out[at(slot)] = kNew;
  if (declared) out[0] = keep(*declared);
  return keep(make_node(op, std::move(in), std::move(out), std::move(options)));
}

std::vector<TensorId> Gradient::keep(Node n) {
  if (n_.compute_given && is_real(n_.compute)) n.compute = n_.compute, n.compute_given = true;
  for (TensorId t : n.in)
    if (t >= first_new_) ++uses_[t];
  return g_.node(g_.add_node(std::move(n))).out;
}

TensorId Gradient::make_sized(const OpSpec& op, std::vector<TensorId> in, std::any options, const Dims& dims) {
  Tensor declared;
  declared.dims = dims;
  declared.dims_given = true;
  return make(op, std::move(in), std::move(options), &declared);
}

TensorId Gradient::apply(PointwiseMode mode, TensorId x, TensorId b, TensorId t, PointwiseOptions options) {
  options.mode = mode;
  return make(ops::pointwise, {x, b, t}, options);
}

TensorId Gradient::number(double value) {
  DType type = n_.compute == DType::f64 || tensor(loss_).dtype == DType::f64 ? DType::f64 : DType::f32;
  auto [it, fresh] = numbers_.try_emplace({type, value}, kNone);
  if (fresh) it->second = constant(value, type);
  return it->second;
}

TensorId Gradient::integer(int64_t value) {
  Tensor t = make_scalar_constant(DType::i64, 0);
  store(t.dtype, t.constant.data(), 0, value);
  return keep(std::move(t));
}

TensorId Gradient::times(TensorId a, TensorId b) {
  auto is_one = [&](TensorId t) {
    return std::any_of(numbers_.begin(), numbers_.end(), [&](auto& n) { return n.second == t && n.first.second == 1; });
  };
  if (is_one(a) || is_one(b)) return is_one(a) ? b : a;
  return apply(PointwiseMode::mul, a, b);
}

TensorId Gradient::sum(TensorId a, TensorId b) {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  return apply(PointwiseMode::add, a, b);
}

TensorId Gradient::sum_over(TensorId t, const Ints& axes) {
  return axes.empty() ? t : make(ops::reduce, {t}, ReduceOptions{.axes = axes});
}

TensorId Gradient::expand(TensorId t, TensorId like) {
  if (tensor(t).dims == tensor(like).dims) return t;
  // An index, times 0, has the sizes of `like` whatever they become, and none of its values.
  return apply(PointwiseMode::add, t, apply(PointwiseMode::gen_index, like), kNone, {.alpha2 = 0});
}

TensorId Gradient::reshape(TensorId t, const Dims& dims) {
  if (tensor(t).dims == dims) return t;
  tessera::ReshapeOptions o{.size = dims.to_vector(), .mode = tessera::ReshapeMode::logical};
  // One size is left open, so that the graph serves another batch.
  if (!o.size.empty() && volume(dims) > 0) o.size[0] = -1;
  return make(ops::reshape, {t}, o);
}

TensorId Gradient::transpose(TensorId t, const Ints& perm) {
  return make(ops::transpose, {t}, tessera::TransposeOptions{perm});
}

TensorId Gradient::swap_last(TensorId t) {
  Ints perm;
  for (int i = 0; i < tensor(t).rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(t, perm);
}

TensorId Gradient::sum_to(TensorId t, const Dims& target) {
  Dims given = tensor(t).dims;
  int extra = std::max(0, given.size() - target.size()), missing = std::max(0, target.size() - given.size());
  ReduceOptions axes{}, runs{};
  for (int i = 0; i < given.size(); ++i) {
    int64_t wanted = i < extra ? 1 : target[i - extra + missing];
    bool stays = given[i] == wanted || given[i] == 1;
    if (!stays && wanted == 1) axes.axes.push_back(i);
    runs.runs.push_back(stays ? 1 : wanted == 1 ? 0 : given[i] / wanted);
  }
  auto is_run = [](int64_t run) { return run > 1; };
  if (std::any_of(runs.runs.begin(), runs.runs.end(), is_run))
    t = make(ops::reduce, {t}, runs);
  else
    t = sum_over(t, axes.axes);
  if (extra == 0) return t;
  Dims left = tensor(t).dims, dims;
  for (int i = extra; i < left.size(); ++i) dims.push_back(left[i]);
  return reshape(t, dims);
}

TensorId Gradient::convert(TensorId t, DType type) {
  if (tensor(t).dtype == type) return t;
  Tensor declared;
  declared.dtype = type;
  declared.dtype_given = true;
  return make(ops::pointwise, {t}, PointwiseOptions{}, &declared);
}

TensorId Gradient::in_order_of(TensorId t, TensorId like) {
  Dims strides = strides_like(tensor(like).dims, &tensor(like));
  if (tensor(t).strides == strides && t >= first_new_ && g_.producer(t) != kNone) {
    g_.edit(t).strides_given = true;  // they stay
    return t;
  }
  Tensor declared;
  declared.dtype = tensor(t).dtype;
  declared.dims = tensor(like).dims;
  declared.strides = strides;
  declared.dtype_given = declared.dims_given = declared.strides_given = true;
  return make(ops::pointwise, {t}, PointwiseOptions{}, &declared);
}

// --- sums and results

TensorId Gradient::retyped(TensorId d, DType type) {
  if (tensor(d).dtype == type) return d;
  // A result that nobody reads yet is computed in that type to begin with.
  NodeId from = g_.producer(d);
  bool free = d >= first_new_ && from != kNone && uses_[d] <= 1 && g_.node(from).op->family != Family::movement;
  if (!free) return convert(d, type);
  Tensor& t = g_.edit(d);
  t.dtype = type;
  t.dtype_given = true;
  return d;
}

TensorId Gradient::total(TensorId t) {
  auto [it, fresh] = totals_.try_emplace(t, kNone);
  if (!fresh) return it->second;
  TensorId all = kNone;
  for (TensorId part : parts_.at(t)) all = sum(all, part);
  all = retyped(all, gradient_type(tensor(t).dtype));
  return totals_[t] = all;
}

TensorId Gradient::result(TensorId input) {
  if (!parts_.count(input) && input != loss_) fail_if_blocked(input);
  TensorId d = parts_.count(input) ? total(input) : number(0);
  d = retyped(expand(d, input), gradient_type(tensor(input).dtype));
  Dims strides = strides_like(tensor(input).dims, &tensor(input));
  NodeId from = g_.producer(d);
  bool moved = from != kNone && g_.node(from).op->family == Family::movement && !(tensor(d).strides == strides);
  bool own = d >= first_new_ && from != kNone && results_.insert(d).second;
  if (!own || moved) results_.insert(d = make(ops::pointwise, {d}));
  if (!(tensor(d).strides == strides)) {
    Tensor& t = g_.edit(d);
    t.strides = strides;
    t.dims_given = t.strides_given = true;
  }
  return d;
}

// Without a gradient the loss either does not depend on the input, and 0 is right, or only in ways that have none.
void Gradient::fail_if_blocked(TensorId input) const {
  std::vector<bool> depends(at(first_new_), false), smooth = depends;
  depends[at(input)] = smooth[at(input)] = true;
  std::string blocker;
  for (NodeId i = 0; i < g_.node_count(); ++i) {
    const Node& n = g_.node(i);
    std::vector<TensorId> reads = n.in;
    reads.insert(reads.end(), n.captures.begin(), n.captures.end());
    auto old = [&](TensorId t) { return t != kNone && t < first_new_; };
    reads.erase(std::remove_if(reads.begin(), reads.end(), [&](TensorId t) { return !old(t); }), reads.end());
    if (!any_of(depends, reads)) continue;
    bool passes = any_of(smooth, reads) && !flat_.count(i);
    for (TensorId t : n.out) {
      if (!old(t)) continue;
      depends[at(t)] = true;
      smooth[at(t)] = passes && is_real(tensor(t).dtype);
      if (!smooth[at(t)] && blocker.empty())
        blocker = cat(spelling(n), " '", tensor(t).name, "', ",
                      is_real(tensor(t).dtype) ? "which is flat" : cat("whose result is ", tensor(t).dtype));
    }
  }
  require(!depends[at(loss_)], "gradient: '", tensor(loss_).name, "' depends on '", tensor(input).name,
          "' only through ", blocker, ": there is no derivative");
}

}  // namespace tsr
