// SPDX-License-Identifier: Apache-2.0
// What emulated device code and the scheduler that runs it (runtime/emulator) know of each other.
#pragma once

namespace tsr_emulated {

struct Triple {
  unsigned x, y, z;
};

struct Block {
  Triple index{};
  int rank = 0;                            // in the cluster
  char* shared = nullptr;                  // aligned to 1024 bytes
  unsigned long long* exchange = nullptr;  // one word for each thread
};

struct Thread {
  Triple index{};
  Block* block = nullptr;
};

struct World {
  Triple block_dim{}, grid_dim{};
  Thread* here = nullptr;           // the thread that runs now
  Block* const* cluster = nullptr;  // blocks by rank
  int cluster_size = 1;
  void (*sync_block)() = nullptr;
  void (*sync_warp)(unsigned lanes) = nullptr;
  void (*sync_cluster)() = nullptr;
  void (*sync_named)(int barrier, int threads) = nullptr;
};

}  // namespace tsr_emulated
