// SPDX-License-Identifier: Apache-2.0
// Transposed and reshaped tensors that need not be moved: they are another tensor's memory under other sizes and
// strides.
#pragma once

#include <memory>

#include "graph/op.hpp"

namespace tsr {

// Elements lie without gaps in the order of the strides (or, for row_major, in the order of dimensions).
bool is_packed(const Tensor& t, bool row_major);

// Whether the virtual result of `n` may lie in the memory of its input.
bool is_view(const Graph& g, const Node& n);

// Gives virtual results of transpose the strides that make them views, where what reads them (products and attention)
// takes any strides. The same graph when there is nothing to do.
std::shared_ptr<const Graph> order_views(std::shared_ptr<const Graph> g);

}  // namespace tsr
