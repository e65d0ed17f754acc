// SPDX-License-Identifier: Apache-2.0
// The devices of this machine, and devices by name.
#pragma once

#include <vector>

#include "planner/device.hpp"

namespace tsr {

// A GPU as the driver describes it, whether or not it can be used.
struct GpuInfo {
  std::string name;  // such as "NVIDIA H200"
  int major = 0, minor = 0, units = 0;
  size_t memory_bytes = 0;
};
std::vector<GpuInfo> gpus();  // by number; none without a driver

// A GPU that is present. Raises, saying what is missing, when there is none of that number.
Device cuda_device(int index = 0);

// Kernels compiled for the processor by a C++ compiler and run thread by thread: slow, but the values of device code
// can be compared, and its bugs debugged, on any machine. Otherwise planned like the record `like`.
Device emulated_device(std::string_view like = "h200");

// `cpu`, `cuda`, `cuda:1`, `emulated`, or a record's name such as `h200`: plans for it can be made and explained, not
// run. Raises for other names, listing these.
Device find_device(std::string_view name);

// A GPU of this machine: neither emulated nor a record.
bool is_gpu(const Device& d);

// Waits for the work of a stream; nothing to wait for but on a GPU.
void synchronize(const Device& d, void* stream = nullptr);

}  // namespace tsr
