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

// Where in the source something was asked for.
struct Here {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

// A box of a tensor, from or to shared memory.
struct BoxCopy {
  void* shared;
  const void* map;
  const int* at;
  int rank;
  unsigned long long* barrier;
  unsigned blocks;  // of the cluster, by bits; 0: this one alone
  Here here;
  const int* tap = nullptr;  // of a window; null: a box
};

// A product of a warpgroup, as one of its threads asks for it.
struct Product {
  enum Type : int { f16, bf16, tf32, e4m3, e5m2, s8, u8 };
  void* sums;  // of this thread: 32-bit floats or integers, or pairs of f16
  int columns;
  int inner;  // elements along the inner dimension
  Type a_type, b_type;
  bool half_sums;
  unsigned long long a, b;      // descriptors
  const unsigned* a_registers;  // instead of the descriptor a
  bool a_across, b_across;      // elements follow each other across the inner dimension
  bool add;                     // to the sums, rather than instead of them
  Here here;
};

// A product of a warp, as one of its lanes asks for it.
struct WarpProduct {
  void* sums;  // of this lane: 4 floats or integers, or 2 pairs of f16
  const unsigned* a;
  const unsigned* b;
  Product::Type a_type, b_type;
  bool half_sums;
  Here here;
};

// Matrices of 8 x 8 elements of 16 bits between shared memory and the registers of a warp, as a lane asks for them.
struct MatrixMove {
  unsigned* registers;  // one for each matrix
  int count;
  const void* row;  // of matrix lane / 8
  bool turned, out;
  Here here;
};

// Up to 16 bytes that come while the thread goes on.
struct PieceCopy {
  void* to;
  const void* from;
  int bytes, from_bytes;  // what is not in memory is 0
  Here here;
};

// Numbers that stores add to what lies in memory.
enum class Adds : int { nothing, f32, f16, bf16 };

// A run of shared memory, to memory or to another block of the cluster.
struct RunCopy {
  void* to;
  const void* from;
  unsigned bytes;
  Adds adds;
  unsigned long long* barrier;  // of the other block; null: to memory
  int rank;
  Here here;
};

struct World {
  Triple block_dim{}, grid_dim{};
  Thread* here = nullptr;           // the thread that runs now
  Block* const* cluster = nullptr;  // blocks by rank
  int cluster_size = 1;
  void (*sync_block)(Here here) = nullptr;
  void (*sync_warp)(unsigned lanes, Here here) = nullptr;
  void (*sync_cluster)() = nullptr;
  void (*sync_named)(int barrier, int threads, Here here) = nullptr;
  void (*arrive_named)(int barrier, int threads, Here here) = nullptr;
  void (*wait_count)(const unsigned* counter, unsigned count, Here here) = nullptr;
  // --- barriers in shared memory; `rank`: of the block whose barrier is meant, -1: this one
  void (*barrier_init)(unsigned long long* barrier, unsigned arrivals, Here here) = nullptr;
  void (*barrier_arrive)(unsigned long long* barrier, int rank, unsigned arrivals, unsigned bytes, Here here) = nullptr;
  void (*barrier_wait)(unsigned long long* barrier, unsigned parity, Here here) = nullptr;
  bool (*barrier_passed)(unsigned long long* barrier, unsigned parity, Here here) = nullptr;
  void (*barrier_end)(unsigned long long* barrier, Here here) = nullptr;
  // --- the copy engine
  void (*copy_run)(void* to, const void* from, unsigned bytes, unsigned long long* barrier, Here here) = nullptr;
  void (*copy_box)(const BoxCopy& c) = nullptr;
  void (*store_box)(const BoxCopy& c, bool adds) = nullptr;
  void (*store_run)(const RunCopy& c) = nullptr;
  void (*stores_commit)() = nullptr;
  void (*stores_wait)(int left) = nullptr;
  void (*fence_proxy)() = nullptr;
  // --- other blocks' shared memory: where a place of this block's lies there
  void* (*remote)(const void* place, int rank, int bytes, bool writes, Here here) = nullptr;
  // --- the threads' own loads, stores and copies
  void (*misaligned)(const void* p, int bytes, int alignment, Here here) = nullptr;
  void (*copy_piece)(const PieceCopy& c) = nullptr;
  void (*pieces_commit)() = nullptr;
  void (*pieces_wait)(int left) = nullptr;
  void (*pieces_arrive)(unsigned long long* barrier, Here here) = nullptr;
  // --- tensor cores
  void (*mma)(const WarpProduct& p) = nullptr;
  void (*move_matrices)(const MatrixMove& m) = nullptr;
  void (*check_operand)(const void* start, unsigned leap, unsigned step, Here here) = nullptr;
  void (*wgmma)(const Product& p) = nullptr;
  void (*wgmma_fence)() = nullptr;
  void (*wgmma_commit)() = nullptr;
  void (*wgmma_wait)(int left) = nullptr;
};

}  // namespace tsr_emulated
