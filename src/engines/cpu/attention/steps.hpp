// SPDX-License-Identifier: Apache-2.0
// The steps of the attention engine.
#pragma once

#include "planner/engine.hpp"

namespace tsr::cpu::attention {

std::unique_ptr<Step> make_forward(const Region& r, int threads);
std::unique_ptr<Step> make_backward(const Region& r, int threads);

}  // namespace tsr::cpu::attention
