// SPDX-License-Identifier: Apache-2.0
// Copies of test memory on another device, guard bands and alignment included.
#pragma once

#include <map>
#include <memory>

#include "harness/buffers.hpp"
#include "planner/plan.hpp"

namespace tsr {

// Memory of a device, of the host for the CPU; aligned to 256 bytes.
std::shared_ptr<void> device_memory(const Device& d, size_t bytes);

class DeviceCopy {
 public:
  DeviceCopy(const DeviceMemory& memory, GuardedBuffer& host);
  void* data() const { return data_; }
  void upload();
  void download();                         // into the host's buffer
  bool intact() const { return intact_; }  // of the last download

 private:
  const DeviceMemory& memory_;
  GuardedBuffer& host_;
  std::shared_ptr<std::byte> storage_;
  std::byte* data_ = nullptr;
  bool intact_ = true;
};

// All stored tensors of a graph on a device; on the CPU they stay where they are.
class DeviceBuffers {
 public:
  DeviceBuffers(const Graph& g, GraphBuffers& host, const Device& d);
  std::vector<Binding> bindings() const { return bindings_; }
  void upload();
  void download();
  std::string damage() const;  // names of buffers whose bands were overwritten, or empty

 private:
  const Graph& g_;
  GraphBuffers& host_;
  std::map<TensorId, DeviceCopy> copies_;
  std::vector<Binding> bindings_;
};

}  // namespace tsr
