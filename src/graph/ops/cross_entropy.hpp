// SPDX-License-Identifier: Apache-2.0
// What cross entropy and its gradient share.
#pragma once

#include "graph/op.hpp"

namespace tsr {

void cross_entropy_fields(std::any& options, FieldVisitor& v);
// Checks logits and targets; returns the sizes of a value for each row.
Dims cross_entropy_rows(const Infer& ctx, int logits, int target);
double cross_entropy_terms(const Graph& g, const Node& n);
double cross_entropy_flops(const Graph& g, const Node& n);

}  // namespace tsr
