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
  double f32 = m.flops_one * d.units, narrow = std::max(m.narrow_flops_one, m.tile_flops_one) * d.units;
  d.rates = {f32 / 2, f32, f32, narrow, narrow, narrow};
  d.step_seconds = m.loop_seconds;
  return d;
}

namespace {

Device record(const char* name, const char* target, int arch, int units, int shared_kib, int cache_mib, double bytes,
              const Rates& tera) {
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
  constexpr double kTera = 1e12;
  d.rates = {tera.f64 * kTera,    tera.f32 * kTera,   tera.tf32 * kTera,
             tera.bits16 * kTera, tera.bits8 * kTera, tera.sparse * kTera};
  d.step_seconds = 2e-6;
  return d;
}

}  // namespace

// Rates are what copies and products reach, about 0.88 of the memory's and 0.8 of the tensor cores' peaks.
std::span<const Device> device_records() {
  static const Device list[] = {
      record("h200", "sm_90a", 90, 132, 227, 60, 4.2e12, {54, 60, 395, 790, 1580, 1580}),
      record("h100", "sm_90a", 90, 132, 227, 50, 2.95e12, {54, 60, 375, 750, 1500, 1500}),
      record("b200", "sm_100a", 100, 148, 227, 126, 7.0e12, {32, 70, 900, 1800, 3600, 3600}),
      record("a100", "sm_80", 80, 108, 163, 40, 1.75e12, {15.5, 18, 125, 250, 500, 500}),
      record("rtx3090", "sm_86", 86, 82, 99, 6, 0.82e12, {0.5, 32, 32, 65, 230, 130}),
      record("rtx4090", "sm_89", 89, 128, 99, 72, 0.92e12, {1.2, 75, 75, 150, 530, 300}),
      record("rtx5090", "sm_120a", 120, 170, 99, 96, 1.6e12, {1.5, 95, 95, 200, 670, 400}),
  };
  return list;
}

const Device* find_device_record(std::string_view name) {
  for (const Device& d : device_records())
    if (d.name == name) return &d;
  return nullptr;
}

}  // namespace tsr
