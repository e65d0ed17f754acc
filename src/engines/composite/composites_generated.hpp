// SPDX-License-Identifier: Apache-2.0
// Composites whose values follow from positions: masks along a diagonal that lengths shift, grids of affine maps and
// their gradient, normal random numbers.
#pragma once

#include "engines/composite/composite.hpp"

namespace tsr {

bool is_generated(const Node& n);
void generate(const Graph& g, const Node& n, Composite& c);

}  // namespace tsr
