// SPDX-License-Identifier: Apache-2.0
// What a reference function sees of its node. The same function runs twice in the test runner: with R = double it is
// the oracle, with R = float it shows what rounding every step to f32 costs, from which tolerances are derived.
#pragma once

#include <cmath>
#include <complex>
#include <functional>
#include <optional>
#include <vector>

#include "engines/reference/array.hpp"
#include "graph/op.hpp"

namespace tsr::ref {

// Memory of a tensor while the reference engine runs: the caller's for stored tensors; for virtual ones a packed buffer
// whose type may be wider than declared.
struct Memory {
  void* data = nullptr;
  Tensor tensor;                   // type, sizes and strides of `data`
  const Memory* ragged = nullptr;  // memory of the offsets
  uint64_t jitter = 0;             // not 0: f32 results move a little, to a side that this seed decides
};

// Reads every element, whatever the strides. For a ragged tensor, batch i holds as many steps of dimension 2 as its
// offsets leave room for (and `lengths` allow, when given); the others read as 0 and are never touched.
template <class T>
Array<T> read(const Memory& m, const Ints* lengths = nullptr);
// Rounds to the type of the memory. Ragged tensors: as read().
template <class T>
void write(const Memory& m, const Array<T>& a, const Ints* lengths = nullptr);

// Two units in the last place of f32 away, on the side that the seed says: what fast elementary functions and sums in
// another order may be off by.
inline bool random_side(uint64_t seed) { return (seed * 0x9e3779b97f4a7c15ull) >> 63 == 0; }
inline float neighbour(float v, uint64_t seed) {
  if (!std::isfinite(v)) return v;
  float side = random_side(seed) ? INFINITY : -INFINITY;
  return std::nextafter(std::nextafter(v, side), side);
}

// Seeds of moved runs are 1 to 3 times a number of the tensor: the bit above the lowest tells the third from the
// others.
inline bool is_third_run(uint64_t jitter) { return jitter != 0 && (jitter / (jitter & -jitter) & 2) != 0; }

// Tensor cores take what they multiply in 16 bits, times a factor of their own: moved runs round such numbers
// somewhere.
template <class R>
R round_somewhere(R v, DType type, uint64_t jitter) {
  if (jitter == 0 || (type != DType::bf16 && type != DType::f16)) return v;
  R factor = R(1) + static_cast<R>(jitter % 16) / 16;
  return static_cast<R>(round_to(type, v * factor)) * (1 / factor);
}

template <class R>
class Context {
 public:
  Context(const Graph& g, const Node& n, std::function<const Memory&(TensorId)> memory)
      : g_(g), n_(n), memory_(std::move(memory)) {}

  const Graph& graph() const { return g_; }
  const Node& node() const { return n_; }
  template <class Options>
  const Options& options() const {
    return attrs<Options>(n_);
  }

  bool has(int slot) const {
    return slot < static_cast<int>(n_.in.size()) && n_.in[static_cast<size_t>(slot)] != kNone;
  }
  bool wants(int slot) const {
    return slot < static_cast<int>(n_.out.size()) && n_.out[static_cast<size_t>(slot)] != kNone;
  }
  const Tensor& in_tensor(int slot) const { return g_.tensor(n_.in[static_cast<size_t>(slot)]); }
  const Tensor& out_tensor(int slot) const { return g_.tensor(n_.out[static_cast<size_t>(slot)]); }
  const Memory& in_memory(int slot) const { return memory_(n_.in[static_cast<size_t>(slot)]); }
  const Memory& out_memory(int slot) const { return memory_(n_.out[static_cast<size_t>(slot)]); }

  template <class T = R>
  Array<T> in(int slot, const Ints* lengths = nullptr) const {
    return read<T>(in_memory(slot), lengths);
  }
  // A one-element input, or `fallback` when the slot is empty.
  template <class T = R>
  T scalar(int slot, T fallback) const {
    return has(slot) ? in<T>(slot)[0] : fallback;
  }
  Ints integers(int slot) const { return in<int64_t>(slot).data; }
  // Writes an output; does nothing when it is not wanted.
  template <class T>
  void out(int slot, const Array<T>& a, const Ints* lengths = nullptr) const {
    if (wants(slot)) write(out_memory(slot), a, lengths);
  }

  // Evaluates a sub-graph on parameter values; the captures are found among the node's, starting at `first_capture`.
  std::vector<Array<R>> call(const Subgraph& s, const std::vector<Array<R>>& params, size_t first_capture = 0) const;

 private:
  const Graph& g_;
  const Node& n_;
  std::function<const Memory&(TensorId)> memory_;
};

}  // namespace tsr::ref
