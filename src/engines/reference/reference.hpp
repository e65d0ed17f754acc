// SPDX-License-Identifier: Apache-2.0
// The reference engine: every operation by its definition. The last resort of the planner and the oracle of all tests.
#pragma once

#include "planner/engine.hpp"

namespace tsr::ref {

const Engine& engine();

// Evaluates nodes of a graph in order. `tensors` points at the memory of every tensor that lives outside; the others live
// in `scratch`, in their own type (R = float) or with f32 widened to f64 (R = double, the oracle).
template <class R>
size_t scratch_bytes(const Graph& g, const std::vector<NodeId>& nodes, const std::vector<TensorId>& internals);
template <class R>
void evaluate(const Graph& g, const std::vector<NodeId>& nodes, const std::vector<TensorId>& internals, void* const* tensors,
              std::byte* scratch, uint64_t jitter = 0);

// The oracle: the whole graph at once; virtual tensors are allocated here. With `jitter` not 0 every f32 result of an
// operation moves by two units in the last place, which shows how rounding errors grow.
template <class R>
void evaluate_graph(const Graph& g, void* const* tensors, uint64_t jitter = 0);

}  // namespace tsr::ref
