// SPDX-License-Identifier: Apache-2.0
// What the rules in list.cpp are made of: a file for each, or for those that share something.
#pragma once

#include "planner/decomposition.hpp"

namespace tsr {

// Movements around pointwise and row-wise work are views.
Reason decompose_movements(const Region& r, const Node& first, Decomposition& d);

// Gradients of scale and bias sum across the rows.
bool sums_across_rows(const Graph& g, const Node& n);
Reason decompose_norm_gradient(const Region& r, const Node& n, Decomposition& d);

// Cosines and sines once for each position.
Reason decompose_rope(const Region& r, const Node& n, Decomposition& d);

// Short filters over sequences whose channels lie side by side are sums over views.
bool has_few_taps(const Graph& g, const Node& n);
Reason decompose_causal_conv(const Region& r, const Node& n, Decomposition& d);

// Running sums of lengths shift the mask.
bool has_lengths(const Graph& g, const Node& n);
Reason decompose_shifted_mask(const Region& r, const Node& n, Decomposition& d);

// Coordinate by coordinate.
Reason decompose_affine_grid(const Region& r, const Node& n, Decomposition& d);

// Two uniform numbers make two normal ones.
bool is_normal(const Graph& g, const Node& n);
Reason decompose_normal_numbers(const Region& r, const Node& n, Decomposition& d);

// A sub-graph that is a sum, product, maximum or minimum in disguise.
Reason decompose_reduce_by(const Region& r, const Node& n, Decomposition& d);

// Movements that change the type.
bool converts(const Graph& g, const Node& n);
Reason decompose_copies(const Region& r, const Node& n, Decomposition& d);

// Reductions over runs of neighbours.
bool reduces_runs(const Graph& g, const Node& n);
Reason decompose_runs(const Region& r, const Node& n, Decomposition& d);

// Scale factors that lie in tiles are put in order apart.
bool has_tiled_scale(const Graph& g, const Node& n);
bool pads_tiles(const Graph& g, const Node& n);  // and writes factors of blocks that do not exist
Reason decompose_scale_tiles(const Region& r, const Node& n, Decomposition& d);

// Of blocks the last is short.
bool has_short_block(const Graph& g, const Node& n);
bool has_channels_apart(const Graph& g, const Node& n);  // of a convolution for tensor cores
Reason decompose_short_block(const Region& r, const Node& n, Decomposition& d);

// Sums over boxes are means over windows.
Reason decompose_box_norm(const Region& r, const Node& n, Decomposition& d);

Reason decompose_channels_last(const Region& r, const Node& n, Decomposition& d);  // copies, side by side

}  // namespace tsr
