// SPDX-License-Identifier: Apache-2.0
// Rewrites composite attention and normalisation, as front ends spell them out, into the operations they mean.
#pragma once

#include <memory>

#include "graph/graph.hpp"

namespace tsr {

// The same graph when nothing was found. Stored tensors keep their names, unique ids and memory (a transposed input may
// be described the other way round); ids of tensors may change.
std::shared_ptr<const Graph> recognise(std::shared_ptr<const Graph> g);

}  // namespace tsr
