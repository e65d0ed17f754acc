// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cudart/errors.hpp"

namespace cudart {

const cudaDeviceProp& properties(int device);

}  // namespace cudart
