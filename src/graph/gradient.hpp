// SPDX-License-Identifier: Apache-2.0
// Gradients: to the graph that computes a loss, nodes are added that compute its derivatives, made of the graph's own
// operations. docs/gradient.md explains what holds; every operation's rule stands in its own file (OpSpec::gradient).
#pragma once

#include <map>
#include <set>

#include "graph/builder.hpp"
#include "graph/pointwise_modes.hpp"

namespace tsr {

// One tensor for each of `inputs`, of its sizes, type (f32 where that is narrower than 16 bits) and dimension order:
// the derivative of `loss` times `seed`. Without a seed the loss has one element. Raises when a derivative that is
// asked for does not exist; the graph is then as it was before.
std::vector<TensorId> gradient(Graph& g, TensorId loss, const std::vector<TensorId>& inputs, TensorId seed = kNone);

// The gradient of a sub-graph with one parameter and one result: { dr p -> dp } for { p -> r }.
tessera::Subgraph gradient(const Subgraph& body);

// What a rule sees: one node of the forward graph, the gradients of its outputs, and the means to add nodes. A rule
// asks with `wants` and `reached` what is needed and hands every gradient over with `add`.
class Gradient : private Builder {
 public:
  Gradient(Graph& g, TensorId loss, const std::vector<TensorId>& inputs, TensorId seed);
  std::vector<TensorId> run();

  // --- the node
  const Node& node() const { return n_; }
  const Tensor& tensor(TensorId t) const { return g_.tensor(t); }  // until the next node is added
  const Graph& graph() const { return g_; }
  template <class Options>
  const Options& options() const {
    return attrs<Options>(n_);
  }
  bool has(int slot) const { return in(slot) != kNone; }
  TensorId in(int slot) const;
  Dims dims(int slot) const { return tensor(in(slot)).dims; }  // of an input
  TensorId out(int slot);                                      // added to the node when nobody asked for it so far
  bool wants(int slot) const;                                  // somebody needs the gradient of this input
  bool reached(int slot) const;                                // the loss depends on this output
  // The gradient of an output: in its full sizes, or with sizes of 1 where the values along a dimension are equal.
  TensorId d(int slot = 0);
  TensorId narrow_d(int slot = 0);
  TensorId d_or_none(int slot) { return reached(slot) ? d(slot) : kNone; }
  // Hands over a gradient of input `slot`. Where the input has size 1, or lacks the dimension, it is summed; where the
  // input repeats in runs, runs are summed. `like` has the sizes that `gradient` stands for, if those are not its own.
  void add(int slot, TensorId gradient, TensorId like = kNone);
  void flat() { flat_.insert(current_); }  // the derivative is 0 wherever it exists
  // Raise if that gradient is needed.
  void refuse(int slot, std::string_view why) const;
  void refuse_captures(std::string_view why) const;
  void refuse_output(int slot, std::string_view why) const;
  void refuse_other_outputs(int but) const;

  // --- nodes
  // All outputs of a new node by slot. `wanted` names optional ones; the first is described by `declared` if given.
  std::vector<TensorId> call(const OpSpec& op, std::vector<TensorId> in, std::any options = {},
                             const std::vector<int>& wanted = {}, const Tensor* declared = nullptr);
  TensorId make(const OpSpec& op, std::vector<TensorId> in, std::any options = {}, const Tensor* declared = nullptr) {
    return call(op, std::move(in), std::move(options), {}, declared)[0];  // the first output
  }
  TensorId make_sized(const OpSpec& op, std::vector<TensorId> in, std::any options, const Dims& dims);
  TensorId apply(PointwiseMode mode, TensorId x, TensorId b = kNone, TensorId t = kNone,
                 tessera::PointwiseOptions options = {});
  TensorId number(double value);
  TensorId integer(int64_t value);
  TensorId sum(TensorId a, TensorId b);
  TensorId minus(TensorId a, TensorId b) { return apply(PointwiseMode::sub, a, b); }
  TensorId times(TensorId a, TensorId b);
  TensorId scaled(TensorId a, double factor) { return factor == 1 ? a : times(a, number(factor)); }
  TensorId over(TensorId a, TensorId b) { return apply(PointwiseMode::div, a, b); }
  TensorId negative(TensorId a) { return scaled(a, -1); }
  TensorId select(TensorId condition, TensorId yes, TensorId no) {
    return apply(PointwiseMode::select, yes, no, condition);
  }
  TensorId compare(PointwiseMode mode, TensorId a, double b) { return apply(mode, a, number(b)); }
  TensorId sum_over(TensorId t, const Ints& axes);
  TensorId expand(TensorId t, TensorId like);  // to the sizes of `like`
  TensorId filled(double value, TensorId like) { return expand(number(value), like); }
  TensorId reshape(TensorId t, const Dims& dims);    // row-major
  TensorId transpose(TensorId t, const Ints& perm);  // y's dimension i is perm[i] of t
  TensorId swap_last(TensorId t);                    // the last two dimensions
  TensorId sum_to(TensorId t, const Dims& target);   // what broadcasting from `target` to t's sizes adds up
  TensorId in_order_of(TensorId t, TensorId like);   // with the strides of `like`, without gaps
  TensorId convert(TensorId t, DType type);          // the same tensor when it has that type

 private:
  TensorId keep(Tensor t) override { return g_.add_tensor(std::move(t)); }
  std::vector<TensorId> keep(Node n) override;
  void find_needed();
  void begin(NodeId id);
  TensorId total(TensorId t);  // of all gradients handed over for `t`
  TensorId retyped(TensorId d, DType type);
  TensorId result(TensorId input);
  void fail_if_blocked(TensorId input) const;
  std::string label() const;

  Graph& g_;
  TensorId loss_, seed_;
  std::vector<TensorId> inputs_;
  TensorId first_new_;
  std::vector<bool> needed_;                         // by tensor: an input reaches it through real numbers
  std::map<TensorId, std::vector<TensorId>> parts_;  // gradients handed over
  std::map<TensorId, TensorId> totals_;
  std::map<TensorId, int> uses_;  // of new tensors
  std::map<std::pair<DType, double>, TensorId> numbers_;
  std::set<NodeId> flat_;
  std::set<TensorId> results_;
  Node n_;  // a copy: the graph grows while a rule runs
  NodeId current_ = kNone;
};

}  // namespace tsr
