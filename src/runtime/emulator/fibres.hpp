// SPDX-License-Identifier: Apache-2.0
// Threads of an emulated GPU: fibres of the calling thread, which change at barriers.
#pragma once

#include <string>

#include "device/emulated_world.cuh"
#include "runtime/kernel.hpp"

namespace tsr::emulator {

using Enter = void (*)(tsr_emulated::World*, const void* args);

// Runs a grid, cluster after cluster. Empty, or what went wrong: threads that wait for each other for ever.
std::string run_fibres(const Grid& g, Enter enter, const void* args);

}  // namespace tsr::emulator
