// SPDX-License-Identifier: Apache-2.0
// Matrix products of a mixture of experts: one product for each range of rows, whose lengths are known at execution.
#pragma once

#include "engines/cpu/gemm/problem.hpp"

namespace tsr::cpu {

Reason check_moe(const Anchored& a);
Packing moe_packing(const Anchored& a);
std::unique_ptr<Step> build_moe(const Anchored& a);

Reason check_moe_bwd(const Anchored& a);
Packing moe_bwd_packing(const Anchored& a);
std::unique_ptr<Step> build_moe_bwd(const Anchored& a);

}  // namespace tsr::cpu
