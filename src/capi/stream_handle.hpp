// SPDX-License-Identifier: Apache-2.0
// A handle for calls whose interface takes a stream instead of one.
#pragma once

#include "capi/handle.hpp"

namespace tsr::capi {

// The calling thread's own, on its device, set to the stream.
cudnnHandle_t handle_for(cudaStream_t stream);

}  // namespace tsr::capi
