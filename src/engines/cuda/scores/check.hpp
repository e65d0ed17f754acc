// SPDX-License-Identifier: Apache-2.0
// What attention kernels take for granted of a node's tensors.
#pragma once

#include "engines/attention/problem.hpp"

namespace tsr::cuda {

// Why kernels cannot read its sequences, page tables and offsets where they lie, if they cannot.
Reason check_places(const Graph& g, const Node& n);

// Why tensor cores cannot multiply rows of a sequence, wherever they lie, if they cannot.
Reason check_multiplied(const Graph& g, const attention::Sequences& x, const char* name);

// Why forward attention cannot run on tensor cores as they multiply 16-bit numbers, wherever those lie, if it cannot.
Reason check_forward(const Region& r);
// The same for 8-bit numbers, with one factor for each tensor.
Reason check_narrow_forward(const Region& r);

// Can eight elements of a row be read or written at once?
bool moves_in_eights(const Graph& g, const attention::Sequences& x);

// Are scores or weights changed one by one? If not, and if their factor is known to be positive, that is a part of the
// exponents.
bool changes_scores(const attention::Problem& p);
bool folds_scale(const attention::Problem& p);

}  // namespace tsr::cuda
