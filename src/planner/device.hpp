// SPDX-License-Identifier: Apache-2.0
// What planning needs to know of a device. A record is enough: the device itself may be absent.
#pragma once

#include <cstdint>
#include <string>

namespace tsr {

enum class DeviceKind : uint8_t { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  std::string name;
  int arch = 0;   // CUDA: compute capability times 10
  int units = 1;  // cores or multiprocessors
  // The machine's limits, for the cost model and for explain.
  double bytes_per_second = 1e10;         // read and written by a copy
  double flops_per_second = 1e10;         // f32 multiply-adds, two operations each
  double narrow_flops_per_second = 1e10;  // products of 16-bit numbers, summed in f32
  double step_seconds = 1e-6;             // to start a step on all units

  std::string key() const { return name + ":" + std::to_string(arch) + ":" + std::to_string(units); }
};

Device cpu_device();  // this machine's processor

}  // namespace tsr
