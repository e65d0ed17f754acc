// SPDX-License-Identifier: Apache-2.0
#include "planner/own_memory.hpp"

#include <cstdlib>
#include <new>

namespace tsr {
namespace {

using When = DeviceMemory::When;

void* host_memory(size_t bytes) {
  void* p = std::aligned_alloc(kMemoryAlign, align_up(bytes));
  if (!p) throw std::bad_alloc();
  return p;
}

}  // namespace

OwnMemory::~OwnMemory() {
  for (const auto& b : blocks_) device_ ? device_->release(b->data) : std::free(b->data);
}

// Calls of one stream follow each other and can share a block, while threads hand over their work one after the other.
// What a recording uses is its own for ever: nobody tells when it is launched.
OwnMemory::Block* OwnMemory::find(size_t bytes, void* stream) {
  When when = device_ ? device_->runs(stream) : When::at_once;
  void* of = when == When::at_once ? nullptr : stream;
  bool recorded = when == When::recorded;
  std::lock_guard guard(lock_);
  for (const auto& b : blocks_)
    if (!recorded && !b->taken && b->stream == of && b->bytes >= bytes) {
      b->taken = true;
      return b.get();
    }
  void* data = device_ ? device_->allocate(bytes) : host_memory(bytes);
  blocks_.push_back(std::make_unique<Block>(Block{data, bytes, of, recorded, true}));
  return blocks_.back().get();
}

void OwnMemory::give_back(Block& b) {
  std::lock_guard guard(lock_);
  b.taken = b.recorded;
}

}  // namespace tsr
