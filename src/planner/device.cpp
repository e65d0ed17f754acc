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

}  // namespace tsr
