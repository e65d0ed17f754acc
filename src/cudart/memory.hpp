// SPDX-License-Identifier: Apache-2.0
// Memory that the stand-in gave to the program: all of it is host memory, but each piece remembers what it stands for.
#pragma once

#include <memory>

#include "cudart/errors.hpp"

namespace cudart {

enum class Kind { device, host, managed, registered, graph };

struct Block {
  size_t bytes = 0;
  Kind kind = Kind::device;
  unsigned flags = 0;
  CUmemPoolHandle_st* pool = nullptr;
};

void* allocate(size_t bytes, Kind kind, unsigned flags = 0, CUmemPoolHandle_st* pool = nullptr);  // null for 0 bytes
// Frees memory of cudaMalloc and its like; null is nothing, memory of a graph stays with the graph.
void free_device(void* pointer);
void returned(CUmemPoolHandle_st* pool, size_t bytes);  // in pool.cpp
void release(void* pointer);                            // whatever it was
std::shared_ptr<void> graph_memory(size_t bytes);

// Refuses a range that begins in memory of ours and ends behind it, and null pointers. Other memory is the program's.
void check_range(const void* pointer, size_t bytes, const char* name);

size_t total_memory();  // of the machine

}  // namespace cudart
