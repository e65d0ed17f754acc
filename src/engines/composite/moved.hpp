// SPDX-License-Identifier: Apache-2.0
// Pointwise and row-wise work with transposes, slices, concatenations and reshapes around it, without moving anything:
// operands are views of what movements read, results views of what they write. Where a concatenation is read, each of
// its parts is a piece of work of its own.
#pragma once

#include "engines/composite/composite.hpp"

namespace tsr {

// Nothing where the region has no movement or is one.
std::optional<MadeComposite> make_moved(const Region& r, const Engine& fused, const Device& d);

}  // namespace tsr
