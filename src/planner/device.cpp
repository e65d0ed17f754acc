// SPDX-License-Identifier: Apache-2.0
#include "planner/device.hpp"

#include <algorithm>

#include "base/thread_pool.hpp"
#include "planner/machine.hpp"

namespace tsr {

Device cpu_device() {
  Device d;
  d.kind = DeviceKind::cpu;
  d.name = "cpu";
  d.units = thread_count();
  const Machine& m = this_machine();
  d.bytes_per_second = std::min(m.copy_one * d.units, m.copy_all);
  d.flops_per_second = m.flops_one * d.units;
  d.narrow_flops_per_second = m.narrow_flops_one * d.units;
  d.step_seconds = m.loop_seconds;
  return d;
}

namespace {

Device record(const char* name, const char* target, int arch, int units, int shared_kib, int cache_mib, double bytes,
              double flops, double narrow_flops) {
  Device d;
  d.kind = DeviceKind::cuda;
  d.index = -1;
  d.name = name;
  d.target = target;
  d.arch = arch;
  d.units = units;
  d.shared_bytes = int64_t{shared_kib} * 1024;
  d.cache_bytes = int64_t{cache_mib} << 20;
  d.bytes_per_second = bytes;
  d.flops_per_second = flops;
  d.narrow_flops_per_second = narrow_flops;
  d.step_seconds = 2e-6;
  return d;
}

}  // namespace

// Rates are what copies and products reach, about 0.88 of the memory's and 0.8 of the tensor cores' peaks.
std::span<const Device> device_records() {
  static const Device list[] = {
      record("h200", "sm_90a", 90, 132, 227, 60, 4.2e12, 60e12, 790e12),
      record("h100", "sm_90a", 90, 132, 227, 50, 2.95e12, 60e12, 750e12),
      record("b200", "sm_100a", 100, 148, 227, 126, 7.0e12, 70e12, 1800e12),
      record("a100", "sm_80", 80, 108, 163, 40, 1.75e12, 18e12, 250e12),
      record("rtx3090", "sm_86", 86, 82, 99, 6, 0.82e12, 32e12, 65e12),
      record("rtx4090", "sm_89", 89, 128, 99, 72, 0.92e12, 75e12, 150e12),
      record("rtx5090", "sm_120a", 120, 170, 99, 96, 1.6e12, 95e12, 200e12),
  };
  return list;
}

const Device* find_device_record(std::string_view name) {
  for (const Device& d : device_records())
    if (d.name == name) return &d;
  return nullptr;
}

}  // namespace tsr
