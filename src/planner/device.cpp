// SPDX-License-Identifier: Apache-2.0
#include "planner/device.hpp"

#include "base/thread_pool.hpp"

namespace tsr {

Device cpu_device() {
  Device d;
  d.kind = DeviceKind::cpu;
  d.name = "cpu";
  d.units = thread_count();
  // Typical of one core of a current server; good enough to rank engines that differ by factors.
  d.bytes_per_second = 8e9 * d.units;
  d.flops_per_second = 3e10 * d.units;
  return d;
}

}  // namespace tsr
