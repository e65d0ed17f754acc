// SPDX-License-Identifier: Apache-2.0
// What the rules in list.cpp are made of: a file for each, or for those that share something.
#pragma once

#include "planner/decomposition.hpp"

namespace tsr {

// Which nodes rules are meant for.
bool sums_across_rows(const Graph& g, const Node& n);  // for gradients of scale and bias
bool has_few_taps(const Graph& g, const Node& n);      // over sequences whose channels lie side by side
bool has_lengths(const Graph& g, const Node& n);       // which shift a mask
bool is_normal(const Graph& g, const Node& n);         // the distribution of random numbers
bool converts(const Graph& g, const Node& n);
bool reduces_runs(const Graph& g, const Node& n);
bool has_tiled_scale(const Graph& g, const Node& n);
bool pads_tiles(const Graph& g, const Node& n);  // with factors of blocks that do not exist
bool has_short_block(const Graph& g, const Node& n);
bool wants_tensor_layout(const Graph& g, const Node& n);  // tensor cores would take copies
bool has_few_channels(const Graph& g, const Node& n);     // of which tensor cores get no rows
bool has_few_filters(const Graph& g, const Node& n);      // and stride 1, of a gradient of the data
bool may_be_halved(const Graph& g, const Node& n);        // a gradient of a filter that tensor cores would round
bool is_three_by_three(const Graph& g, const Node& n);    // a convolution at stride 1
bool has_several_taps(const Graph& g, const Node& n);     // the same, of any sizes
bool has_narrow_operands(const Graph& g, const Node& n);  // of 8 bits, of attention

void decompose_movements(const Region& r, const Node& first, Decomposition& d);  // around work: as views
void decompose_norm_gradient(const Region& r, const Node& n, Decomposition& d);
void decompose_rope(const Region& r, const Node& n, Decomposition& d);            // angles, then turning
void decompose_causal_conv(const Region& r, const Node& n, Decomposition& d);     // sums over views
void decompose_shifted_mask(const Region& r, const Node& n, Decomposition& d);    // shifts, then the mask
void decompose_affine_grid(const Region& r, const Node& n, Decomposition& d);     // coordinate by coordinate
void decompose_normal_numbers(const Region& r, const Node& n, Decomposition& d);  // pairs of uniform numbers
void decompose_reduce_by(const Region& r, const Node& n, Decomposition& d);       // sums, extrema in disguise
void decompose_copies(const Region& r, const Node& n, Decomposition& d);
void decompose_runs(const Region& r, const Node& n, Decomposition& d);
void decompose_scale_tiles(const Region& r, const Node& n, Decomposition& d);  // put in order apart
void decompose_short_block(const Region& r, const Node& n, Decomposition& d);
void decompose_box_norm(const Region& r, const Node& n, Decomposition& d);  // sums are means over windows
void decompose_tensor_layout(const Region& r, const Node& n, Decomposition& d);
void decompose_few_channels(const Region& r, const Node& n, Decomposition& d);   // taps become channels
void decompose_turned_filter(const Region& r, const Node& n, Decomposition& d);  // a convolution forward
void decompose_halves(const Region& r, const Node& n, Decomposition& d);         // f32 as two numbers of bf16
void decompose_winograd(const Region& r, const Node& n, Decomposition& d);
void decompose_fourier(const Region& r, const Node& n, Decomposition& d);
void decompose_narrow_attention(const Region& r, const Node& n, Decomposition& d);

}  // namespace tsr
