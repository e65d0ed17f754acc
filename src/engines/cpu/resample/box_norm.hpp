// SPDX-License-Identifier: Apache-2.0
// Normalisation by the energy in a box around each element: across channels (lrn) or in space (divisive_norm), and the
// gradients. Sums over boxes are means over windows; the rest is pointwise.
#pragma once

#include "engines/composite/composite.hpp"

namespace tsr::cpu {

bool is_box_norm(const Node& n);
// As make_composite: with no threads it can be asked, not run.
MadeComposite make_box_norm(const Region& r, const Device& d);
double box_norm_seconds(const Region& r, const Device& d);

}  // namespace tsr::cpu
