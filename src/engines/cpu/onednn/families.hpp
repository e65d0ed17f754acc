// SPDX-License-Identifier: Apache-2.0
// What the engine is made of: each family of operations decides, models and builds for itself.
#pragma once

#include "planner/engine.hpp"

namespace tsr::onednn {

struct FamilyEntry {
  bool (*handles)(const Node& anchor);
  Reason (*check)(const Region& r);
  double (*seconds)(const Region& r, const Device& d);  // modelled, without the cost of a call
  std::unique_ptr<Step> (*build)(const Region& r);
};

extern const FamilyEntry kMatmul, kConvolution, kRecurrent, kResample, kReorder;

// The family of the region's first node, or null.
const FamilyEntry* find_family(const Region& r);

}  // namespace tsr::onednn
