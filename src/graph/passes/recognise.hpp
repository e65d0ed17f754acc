// SPDX-License-Identifier: Apache-2.0
// Rewrites composite attention and normalisation, as front ends spell them out, into the operations they mean.
#pragma once

#include <memory>

#include "graph/graph.hpp"

namespace tsr {

// The same graph when nothing was found. Stored tensors keep their names, unique ids and memory (a transposed input may
// be described the other way round); ids of tensors may change.
std::shared_ptr<const Graph> recognise(std::shared_ptr<const Graph> g);

// What a graph means besides what its operations say: exponentials of scores that a mask hides because they lie beyond
// the lengths of their sequences are 0, and so is what they are multiplied with or divided by.
std::shared_ptr<const Graph> with_cleared_padding(std::shared_ptr<const Graph> g);

}  // namespace tsr
