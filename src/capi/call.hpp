// SPDX-License-Identifier: Apache-2.0
// Calls of the older interface. A call describes itself by a key (all that shapes its graph: function, descriptors,
// options, which factors are trivial); when the handle does not know the key, the call's graph is built and planned.
// Mathematics lives in the graph: nothing is computed here.
//
//   Call c(handle, "cudnnActivationForward");
//   Blend blend(c, alpha, beta, y.type);
//   c.key(a.mode, a.limit).input(kX, x_desc, x, "x").output(kY, y_desc, y, "y");
//   c.run([&](Maker& m) { m.blend(blend, kY, m.pointwise(mode, {m[kX]})); });
#pragma once

#include <any>
#include <cstring>
#include <type_traits>

#include "capi/handle.hpp"
#include "capi/types.hpp"
#include "graph/ops/list.hpp"

namespace tsr::capi {

// Unique ids of a call's tensors are the call's to choose, from 1 on. These are taken (factors of blend i: + 2 i):
constexpr int64_t kAlphaId = 1000, kBetaId = 1001, kBeforeId = 2000;

class Maker;

class Call {
 public:
  Call(cudnnHandle_t handle, const char* function);

  // Everything of the call that shapes its graph, in any order, the same for each call of a function.
  template <class... T>
  Call& key(const T&... parts) {
    (append(parts), ...);
    return *this;
  }
  // A tensor that is read, one that is written, under their name in messages. A null pointer is refused.
  Call& input(int64_t id, const Shape& s, const void* data, const char* name);
  Call& output(int64_t id, const Shape& s, void* data, const char* name);
  // The same for those that may be left out: null descriptors or pointers say so.
  Call& optional_input(int64_t id, const Shape* s, const void* data);
  Call& optional_output(int64_t id, const Shape* s, void* data);
  // A packed array in host memory that the graph reads as a tensor; its values are no part of the key. A GPU gets a
  // copy, at the front of the workspace and in the order of the stream.
  Call& host_input(int64_t id, const Shape& s, const void* data, const char* name);
  // A number in host memory that the graph reads at execution: another value is no other graph.
  Call& scalar(int64_t id, cudnnDataType_t type, const void* value);
  bool has(int64_t id) const;
  const Shape& shape(int64_t id) const;

  // Runs with the caller's workspace, or with the handle's own memory where the interface has none.
  template <class Make>
  void run(const Make& make, void* workspace = nullptr, size_t workspace_bytes = 0, bool own_workspace = true) {
    plan(make);
    execute(workspace, workspace_bytes, own_workspace);
  }
  // The same where queries told the caller how much: they do not know factors, so that a plan may need more than they
  // said; then it runs with the handle's memory.
  template <class Make>
  void run_in(void* workspace, size_t workspace_bytes, const Make& make) {
    size_t needed = this->workspace_bytes(*plan(make));
    if (needed > 0) check_space(workspace, workspace_bytes);
    bool serves = workspace && workspace_bytes >= needed;
    execute(workspace, workspace_bytes, !serves);
  }
  // The plan, made or found: for workspace queries.
  template <class Make>
  const std::shared_ptr<const Plan>& plan(const Make& make) {
    if (!plan_ && !find_plan()) make_plan([](const void* f, Maker& m) { (*static_cast<const Make*>(f))(m); }, &make);
    return plan_;
  }
  // What the plan needs, and room for arrays from host memory.
  size_t workspace_bytes(const Plan& p) const;
  // Engines that the plan may not use, or must use; part of the key.
  PlanOptions options;
  // Where these engines cannot do it, any may. No part of the key: the same for each call of a function.
  bool engines_are_a_wish = false;

 private:
  friend class Maker;
  struct Argument {
    int64_t id;
    Shape shape;
    void* data;
    bool written, by_value;
    bool on_host = false;
    const char* name = nullptr;  // in messages; null: it has none
  };
  template <class T>
  void append(const T& v) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      key_ += std::string_view(v);
      key_ += '\0';
    } else if constexpr (std::is_same_v<T, Shape> || std::is_base_of_v<Shape, T>) {
      append_shape(v);
    } else if constexpr (std::is_same_v<T, Dims>) {
      append_dims(v);
    } else {
      static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>, "a number, an enumerator, a text, Dims or a Shape");
      char bytes[sizeof(T)];
      std::memcpy(bytes, &v, sizeof(T));
      key_.append(bytes, sizeof(T));
    }
  }
  void append_shape(const Shape& s);
  void append_dims(const Dims& d);
  size_t staged_bytes() const;
  void* stage(void* workspace);  // gives the memory behind what was staged
  void finish_key();
  std::shared_ptr<const Plan> plan_graph(const std::shared_ptr<const Graph>& g) const;
  bool find_plan();
  void make_plan(void (*make)(const void*, Maker&), const void* f);
  void execute(void* workspace, size_t bytes, bool own_workspace);
  void check_space(const void* workspace, size_t bytes) const;  // is it what the caller says?
  bool record(void* workspace) const;                           // of a handle on the CPU
  void log_factors() const;
  // Calls f(binding, argument) for what the graph reads and writes; not every graph needs every argument.
  template <class F>
  void for_each_binding(const F& f) const {
    const Graph& g = plan_->source();
    for (const Argument& a : arguments_) {
      if (g.find_uid(a.id) != kNone) f(Binding{a.id, a.data}, a);
      if (a.written && g.find_uid(kBeforeId + a.id) != kNone) f(Binding{kBeforeId + a.id, a.data}, a);
    }
  }

  cudnnContext& handle_;
  std::string key_;
  std::vector<Argument> arguments_;
  std::shared_ptr<const Plan> plan_;
};

// Stands for memory in workspace queries, which are not given any.
inline void* const kSomewhere = reinterpret_cast<void*>(0x1000);

// Stands for factors that a call does not have: 1 and 0.
inline const void* const kNoFactor = &kSomewhere;

// result = alpha * computed + beta * what the result held before. alpha and beta are float, or double for double data;
// null pointers are refused. Calls with several results number their factors.
class Blend {
 public:
  Blend(Call& c, const void* alpha, const void* beta, cudnnDataType_t type, int number = 0);
  bool scales() const { return scales_; }
  bool adds() const { return adds_; }
  bool trivial() const { return !scales_ && !adds_; }
  int64_t alpha_id() const { return kAlphaId + 2 * number_; }
  int64_t beta_id() const { return kBetaId + 2 * number_; }

 private:
  bool scales_ = false, adds_ = false;
  int number_ = 0;
};

// Builds the graph of a call.
class Maker : public Builder {
 public:
  explicit Maker(const Call& c);
  // A tensor of the call: one that is read, or by-value. kNone if the call has none of that id.
  // Vectors of channels (INT8x4 ..) are plain tensors here and in all that follows.
  TensorId operator[](int64_t id) const;
  // A result's tensor, for operations that write it themselves.
  TensorId result(int64_t id);
  // Where an operation should put what is to be blended: the result itself if nothing is and it is apart.
  TensorId target(const Blend& b, int64_t id);
  // What a result's memory held when the call began; whoever reads it must write the result in the same order.
  TensorId before(int64_t id);
  // What to compute in for a tensor of the call: f64 for double, f32 otherwise.
  DType compute(int64_t id) const;
  TensorId zeros(const Dims& dims, DType type);  // part of the plan: for small tensors
  // alpha * value, in the type to compute in.
  TensorId scale(const Blend& b, TensorId value, DType compute);
  // The value repeated over all the elements of a result.
  TensorId expand(TensorId value, int64_t id);
  // Ends a call: the result `id` gets alpha * value + beta * before, in its own type; the value's sizes of 1 repeat.
  void blend(const Blend& b, int64_t id, TensorId value);
  // The same for results to which is added: the result `id` gets value + before.
  void accumulate(int64_t id, TensorId value);
  // Ends the graph.
  void finish();
  Graph& graph() { return graph_; }

 private:
  TensorId keep(Tensor t) override { return graph_.add_tensor(std::move(t)); }
  std::vector<TensorId> keep(Node n) override;  // new results have the type to compute in
  TensorId add_memory(const Call::Argument& a, int64_t uid);
  TensorId from_memory(TensorId memory, const Shape& s);

  const Call& call_;
  Graph graph_;
  std::vector<std::pair<TensorId, TensorId>> vectored_;  // results as plain tensors, and their memory
  std::unordered_map<int64_t, TensorId> read_, written_, before_;
};

}  // namespace tsr::capi
