// SPDX-License-Identifier: Apache-2.0
// Memory that a plan keeps for itself, for calls that need more than their caller could know: copies of inputs that
// outputs overwrite, and workspace for sizes that are larger than the planned ones. Nothing is allocated before the
// first such call, and what one call used serves the next.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "planner/device.hpp"

namespace tsr {

class OwnMemory {
 public:
  explicit OwnMemory(const DeviceMemory* device) : device_(device) {}  // null: the host
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory();

 private:
  struct Block {
    void* data;
    size_t bytes;
    void* stream;   // whose work uses it, in its order; null where work is done when a call returns
    bool recorded;  // may be used whenever a recording is launched
    bool taken;     // nobody else may have it
  };

 public:
  // The use of some memory, aligned to 256 bytes, by the work of one call.
  class Lease {
   public:
    Lease() = default;
    Lease(OwnMemory* from, Block* block) : from_(from), block_(block) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
      if (block_) from_->give_back(*block_);
    }
    void take(OwnMemory& from, size_t bytes, void* stream) {
      from_ = &from;
      block_ = from.find(bytes, stream);
    }
    std::byte* data() const { return block_ ? static_cast<std::byte*>(block_->data) : nullptr; }

   private:
    OwnMemory* from_ = nullptr;
    Block* block_ = nullptr;
  };

 private:
  Block* find(size_t bytes, void* stream);
  void give_back(Block& b);

  const DeviceMemory* device_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace tsr
