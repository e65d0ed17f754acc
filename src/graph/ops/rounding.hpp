// SPDX-License-Identifier: Apache-2.0
// What matrix products and convolutions allow: rounding of f32 operands to 10 bits of mantissa, and sums of 8-bit
// floats with as few bits as tensor cores keep.
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

inline bool allows_fast_sums(const Node& n) {
  if (const auto* o = std::any_cast<tessera::MatmulOptions>(&n.attrs)) return o->fast_sums;
  if (const auto* o = std::any_cast<tessera::ConvOptions>(&n.attrs)) return o->fast_sums;
  return false;
}

// How far results of a product may be off, as a part of the largest, beyond what f32 rounds. Of operands that may lose
// all but 10 bits of their mantissa products are off by up to 2^-9. Tensor cores keep the sums of products of 8-bit
// floats to 2^-13 of the largest term, and add up f32 every 128 terms: of results that grow as their terms' square root
// the error is that fraction, whatever their number. Where sums may be fast, every 128 terms lose as much again, of
// sums that are no larger than the largest result.
double lost_of_products(const Graph& g, const Node& n);

// Where the operation has the option.
inline void allow_tf32(std::any& options) {
  if (auto* o = std::any_cast<tessera::MatmulOptions>(&options)) o->tf32 = true;
  if (auto* o = std::any_cast<tessera::ConvOptions>(&options)) o->tf32 = true;
}

}  // namespace tsr
