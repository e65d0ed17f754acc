// SPDX-License-Identifier: Apache-2.0
// Where a measured number comes from: the machine and the version of the source.
#pragma once

#include <string>

namespace tsr {

std::string cpu_model();
std::string commit();  // of the source tree or of the bundle, or "unknown"

}  // namespace tsr
