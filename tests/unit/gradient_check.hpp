// SPDX-License-Identifier: Apache-2.0
// Finite differences: the backward operations of the oracle against the slope of its forward operations.
#pragma once

#include <string>

#include "harness/buffers.hpp"

namespace tsr {

// Both texts use f64. For every output `y` of `forward` that `backward` reads the gradient of, it has an input `dy`;
// every output `dx` of `backward` is the gradient with respect to the input `x` of `forward`. Inputs of `backward` that
// are named like forward inputs or outputs receive those values. Returns an empty string, or what differs where.
std::string check_gradient(const std::string& forward, const std::string& backward, const DataSpec& data = {});

}  // namespace tsr
