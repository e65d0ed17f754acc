// SPDX-License-Identifier: Apache-2.0
// The devices of this machine, and devices by name.
#pragma once

#include "planner/device.hpp"

namespace tsr {

// A GPU that is present. Raises, saying what is missing, when there is none of that number.
Device cuda_device(int index = 0);

// Kernels compiled for the processor by a C++ compiler and run thread by thread: slow, but the values of device code
// can be compared, and its bugs debugged, on any machine. Otherwise planned like the record `like`.
Device emulated_device(std::string_view like = "h200");

// `cpu`, `cuda`, `cuda:1`, `emulated`, or a record's name such as `h200`: plans for it can be made and explained, not
// run. Raises for other names, listing these.
Device find_device(std::string_view name);

// Waits for the work of a stream; nothing to wait for but on a GPU.
void synchronize(const Device& d, void* stream = nullptr);

}  // namespace tsr
