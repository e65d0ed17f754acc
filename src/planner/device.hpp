// SPDX-License-Identifier: Apache-2.0
// What planning needs to know of a device. A record is enough: the device itself may be absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tsr {

enum class DeviceKind : uint8_t { cpu, cuda };

// Pieces of memory that plans lay out begin at multiples of this.
constexpr size_t kMemoryAlign = 256;
constexpr size_t align_up(size_t bytes) { return (bytes + kMemoryAlign - 1) / kMemoryAlign * kMemoryAlign; }

// Memory of a device that is present, for constants of plans, for what plans keep, and for tests. Copies are finished
// on return, but for those that are work of a stream.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  // Makes the device usable for the calling thread, which may never have met it. Cheap: asked by every execution.
  virtual void attach() const {}
  virtual void* allocate(size_t bytes) const = 0;
  virtual void release(void* data) const noexcept = 0;
  virtual void copy_in(void* to, const void* from, size_t bytes) const = 0;
  virtual void copy_out(void* to, const void* from, size_t bytes) const = 0;
  // Within the device's memory, as work of the stream.
  virtual void copy_within(void* to, const void* from, size_t bytes, void* stream) const = 0;
  // When work that a stream is given is done: before the call returns; in the order of the stream; or, while the stream
  // is recorded, as often as the recording is launched.
  enum class When : uint8_t { at_once, in_order, recorded };
  virtual When runs(void* stream) const = 0;
};

// Operations a second that large products reach, two for each multiply-add, by the type of the operands. Where a device
// has no faster way for a type, its rate is that of the next wider one.
struct Rates {
  double f64 = 5e9, f32 = 1e10;
  double tf32 = 1e10;    // f32 rounded to 10 bits
  double bits16 = 1e10;  // f16 and bf16, summed in f32
  double bits8 = 1e10;   // fp8 and int8
  double sparse = 1e10;  // 16-bit operands, half of one of them zero; counted as if none were
};

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  std::string name;
  std::string target;                    // CUDA: what kernels are compiled for, such as sm_90a; "emulated" on the host
  int arch = 0;                          // CUDA: compute capability times 10
  int units = 1;                         // cores or multiprocessors
  int64_t shared_bytes = 0;              // CUDA: shared memory that one block may use
  int64_t cache_bytes = 0;               // CUDA: level-two cache
  int64_t argument_bytes = 32764;        // CUDA: that a launch may carry
  const DeviceMemory* memory = nullptr;  // null: absent, plans can be made but not run, or the CPU, which needs none
  // The machine's limits, for the cost model and for explain.
  double bytes_per_second = 1e10;  // read and written by a copy
  Rates rates;
  double step_seconds = 1e-6;  // to start a step on all units

  std::string key() const { return name + ":" + target + ":" + std::to_string(units); }
};

Device cpu_device();  // this machine's processor

// Records of GPUs that need not be there: `h200`, `a100` ...
std::span<const Device> device_records();
// The record of that name, or null.
const Device* find_device_record(std::string_view name);

}  // namespace tsr
