// SPDX-License-Identifier: Apache-2.0
// Reductions by a sub-graph that is a sum, product, maximum or minimum in disguise: combine = acc + f(cur) and so on,
// with pointwise f. They become f followed by a plain reduction.
#pragma once

#include "engines/composite/composite.hpp"

namespace tsr {

Reason reduce_by(const Graph& g, const Node& n, Composite& c);

}  // namespace tsr
