// SPDX-License-Identifier: Apache-2.0
// Whether operands of f32 may be rounded to 10 bits of mantissa: an option of matrix products and convolutions.
#pragma once

#include <any>

#include "graph/graph.hpp"
#include "tessera/options.hpp"

namespace tsr {

inline bool allows_tf32(const Node& n) {
  if (const auto* o = std::any_cast<tessera::MatmulOptions>(&n.attrs)) return o->tf32;
  if (const auto* o = std::any_cast<tessera::ConvOptions>(&n.attrs)) return o->tf32;
  return false;
}

// Where the operation has the option.
inline void allow_tf32(std::any& options) {
  if (auto* o = std::any_cast<tessera::MatmulOptions>(&options)) o->tf32 = true;
  if (auto* o = std::any_cast<tessera::ConvOptions>(&options)) o->tf32 = true;
}

}  // namespace tsr
