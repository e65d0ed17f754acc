// SPDX-License-Identifier: Apache-2.0
// The cluster of blocks that a thread of the host emulates at a time: what its threads wait for, and what its copy
// engine and tensor cores have under way. fibres.cpp runs the threads, copies.cpp and products.cpp the units beside
// them.
#pragma once

#include <setjmp.h>

#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "device/emulated_world.cuh"
#include "runtime/emulator/fibres.hpp"

namespace tsr::emulator {

using tsr_emulated::Here;

struct Barrier {
  unsigned generation = 0;
  int arrived = 0;
};

// In shared memory. It is passed when nobody is missing and no bytes are.
struct SharedBarrier {
  unsigned arrivals = 0;  // of a phase
  int64_t missing = 0, bytes = 0;
  unsigned phase = 0;
};

struct BlockState {
  tsr_emulated::Block block;
  int alive = 0;  // threads that have not ended
  Barrier all;
  std::array<Barrier, 16> named;
  std::vector<Barrier> warps;  // for each group of lanes the one of its first thread
  std::vector<unsigned long long> exchange;
  std::vector<char> memory;  // holds the shared memory, aligned
  int64_t shared_bytes = 0;
  // What the copy engine and the tensor cores see of shared memory: ordinary stores reach it by a fence. Made when one
  // of them is first used.
  std::vector<char> fenced;
  std::map<int64_t, SharedBarrier> barriers;  // by offset
};

// Shared memory that may be read until some work is done: nobody may write it.
struct Reading {
  const BlockState* block;
  int64_t first, bytes;
  uint64_t contents;  // hash
  const void* group;  // the warpgroup whose product reads, and the product's number
  size_t number;
  int users;  // threads that have not waited for its end
  Here here;
};

// What a thread has asked the tensor cores for (products.cpp).
struct Products {
  struct One {
    tsr_emulated::Product asked;
    std::vector<uint32_t> sums;  // before it, then after it
    bool done = false;
  };
  std::vector<One> list;
  std::vector<size_t> groups;             // ends of committed groups in the list
  size_t waited = 0, retired_groups = 0;  // products and groups that were waited for
  bool fenced = false;
};

struct Fibre {
  tsr_emulated::Thread thread;
  BlockState* block = nullptr;
  jmp_buf state;
  void* frames = nullptr;  // the address sanitizer's
  bool started = false, ended = false;
  const char* waits = "";  // for what
  Here where;
  Products products;
  std::vector<int> open_stores;  // numbers of its copies that no group holds yet
  std::vector<std::vector<int>> store_groups;
};

// A copy that is not made yet. It is made as late as can be: when nobody can go on without it.
struct PendingCopy {
  int number;
  bool out;  // of shared memory
  BlockState* block;
  int64_t first, bytes;         // of shared memory
  const void* from = nullptr;   // a run
  tsr_emulated::BoxCopy box{};  // or a box
  std::array<int, 2> tap{};
  std::array<int, 5> at{};  // of the box
  int64_t barrier = 0;      // offset, of what comes in
  uint64_t contents = 0;    // hash, of what goes out
  Here here;
};

struct Cluster {
  tsr_emulated::World world;
  std::vector<BlockState> blocks;
  std::vector<tsr_emulated::Block*> by_rank;
  std::vector<Fibre> fibres;
  Fibre* here = nullptr;
  Barrier all;
  int alive = 0;
  bool progress = false;
  std::string mistake;  // the first that was found
  Enter enter = nullptr;
  const void* args = nullptr;
  jmp_buf scheduler;

  std::list<PendingCopy> copies;
  int copies_asked = 0;
  std::list<Reading> readings;
};
Cluster& cluster();

// Lets others run. `what` and `where` stand in the report if they wait for each other for ever.
void yield(const char* what, Here where);
// Ends the kernel with a report: who, where, what.
[[noreturn]] void mistake(const std::string& what, Here where);

// --- copies.cpp
void add_copies(tsr_emulated::World& w);
// Makes the oldest copy that is under way; false if there is none.
bool make_a_copy();
// --- products.cpp
void add_products(tsr_emulated::World& w);
// Complains if somebody may still read these bytes.
void check_unread(const BlockState& b, int64_t first, int64_t bytes, const char* what, Here where);
uint64_t hash_of(const BlockState& b, int64_t first, int64_t bytes);
// The offset of a pointer into this block's shared memory; complains if it is none, or if the bytes do not fit.
int64_t shared_place(const BlockState& b, const void* p, int64_t bytes, const char* what, Here where);
// As the copy engine and the tensor cores see it; made on the first use.
char* fenced_memory(BlockState& b);

}  // namespace tsr::emulator
