// SPDX-License-Identifier: Apache-2.0
// Runs a graph given as text on literal data with the oracle: for tests whose expected numbers were worked out by hand.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tsr {

using Values = std::map<std::string, std::vector<double>>;

// Inputs by name in row-major order (all must be given); returns every output the same way.
Values evaluate_text(const std::string& text, const Values& inputs);

}  // namespace tsr
