// SPDX-License-Identifier: Apache-2.0
// Runs a graph of the text form on literal inputs with the oracle.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tsr {

using Values = std::map<std::string, std::vector<double>>;

// Values of all outputs by name, in memory order. Every input must be given.
Values evaluate_text(const std::string& text, const Values& inputs);

}  // namespace tsr
