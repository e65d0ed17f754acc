// SPDX-License-Identifier: Apache-2.0
// Spellings of the phase of operations that differ between training and inference.
#pragma once

#include <string_view>

namespace tsr {

inline constexpr std::string_view kPhases[] = {"training", "inference"};

}  // namespace tsr
