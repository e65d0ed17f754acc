// SPDX-License-Identifier: Apache-2.0
// A region as several smaller ones, its stages: regions of a small graph whose tensors are views of the region's own
// tensors, temporaries, or values inside a stage. The planner treats stages like any other region: every engine may
// have them, their steps are steps of the plan, and temporaries lie in the plan's workspace.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string_view>

#include "graph/builder.hpp"
#include "planner/device.hpp"
#include "planner/region.hpp"

namespace tsr {

class Decomposition : public Builder {
 public:
  explicit Decomposition(const Graph& outer) : outer_(outer) {}

  // --- building: tensors first, then the nodes of each stage
  // A tensor of the region, or a view of it that starts `offset` elements further on, at a whole byte.
  TensorId view(TensorId outer, const Dims& dims, const Dims& strides, int64_t offset = 0);
  TensorId whole(TensorId outer) { return view(outer, outer_.tensor(outer).dims, outer_.tensor(outer).strides); }
  TensorId temporary(DType type, const Dims& dims);
  // The memory of a tensor of the decomposition with other sizes, from element `offset` on.
  TensorId reshaped(TensorId t, const Dims& dims, const Dims& strides, int64_t offset = 0);
  TensorId apply(tessera::PointwiseMode mode, DType compute, TensorId a, TensorId b = kNone, TensorId to = kNone);
  TensorId positions(TensorId of, int axis, DType type);
  void reduce(tessera::ReduceMode mode, DType compute, TensorId from, TensorId to);
  // Stages of their own: zeros in all of a tensor; and a part of a tensor of the region in a temporary, where dimension
  // i begins with element low[i], and zeros stand for what lies beyond.
  void clear(TensorId t);
  TensorId framed(TensorId outer, const Dims& dims, const Dims& strides, const Dims& sizes, const Dims& low,
                  DType type);
  using Builder::add;
  void add(Node n);
  // The first node of a region, changed by a rule, and those behind it, in one stage. What they read is in `here`, by
  // tensors of the region, or as it is; what they leave is where `place` says, values inside a stage apart.
  void add_region(const Region& r, const Node& first, std::map<TensorId, TensorId>& here,
                  const std::function<TensorId(TensorId)>& place);
  void end_stage();

  // --- planning
  const Graph& graph() const { return graph_; }
  const Tensor& tensor(TensorId t) const { return graph_.tensor(t); }
  std::vector<Region> stages() const;  // in the order in which they run

  // Whose memory a tensor is: one of the region's tensors, one of the decomposition's (itself: a temporary), or none.
  struct Place {
    enum { nowhere, inside, outside } where = nowhere;
    TensorId of = kNone;
    int64_t offset = 0;  // bytes from there
  };
  Place place(TensorId t) const;
  bool is_temporary(TensorId t) const { return place(t).where == Place::inside && place(t).of == t; }
  size_t temporary_bytes() const;  // of all of them

 private:
  TensorId keep(Tensor t) override { return graph_.add_tensor(std::move(t)); }  // values inside a stage
  std::vector<TensorId> keep(Node n) override;
  TensorId add_placed(Tensor t, Place p);
  // Zeros around the part that framed() fills.
  void clear_frame(TensorId t, const Dims& part, const Dims& low);

  const Graph& outer_;
  Graph graph_;
  std::vector<Place> places_;                // by tensor; those behind the last are nowhere
  std::vector<std::vector<NodeId>> stages_;  // the last one is open
  std::map<DType, TensorId> zero_;           // one element each
  bool open_ = false;
};

// One way to decompose regions of some kind.
struct DecompositionRule {
  std::string_view name;
  std::array<const OpSpec*, 4> ops;  // of its first node; none: for several nodes, one of which moves data
  enum { anywhere, cpu, gpu } where;
  bool (*meant)(const Graph& g, const Node& n);                     // null: always
  Reason (*check)(const Graph& g, const Node& n);                   // of tensors; null: nothing
  void (*write)(const Region& r, const Node& n, Decomposition& d);  // or declines
  bool followed = false;                                            // by pointwise work; else the node is alone
  bool by_name = false;  // only for who asks for it: what is not finite spreads further than the definition says

  bool applies(const Region& r, DeviceKind device) const;  // cheap: asked of every region
  Reason decompose(const Region& r, Decomposition& d) const;
};
// The list is in decompose/list.cpp.
std::span<const DecompositionRule> all_decompositions();

// --- for rules
// No tensor is ragged or vectorised.
Reason check_single(const Graph& g, const Node& n);
// Nor reordered, nor of less than a byte for each element.
Reason check_plain(const Graph& g, const Node& n);
// Nor does the node compute in integers.
Reason check_real(const Graph& g, const Node& n);
// Declines more dimensions than tensors have.
void check_rank(const Node& n, int rank);
// Results that nobody wants have no memory.
inline bool wanted(const Region& r, TensorId t) { return contains(r.outputs, t); }
// What work on numbers of a node is done in.
inline DType wide_compute(const Node& n) { return n.compute == DType::f64 ? DType::f64 : DType::f32; }
// What holds every value of a type.
inline DType wide_type(DType t) { return t == DType::f64 ? DType::f64 : is_integer(t) ? DType::i64 : DType::f32; }

}  // namespace tsr
