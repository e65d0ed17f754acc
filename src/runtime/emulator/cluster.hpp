// SPDX-License-Identifier: Apache-2.0
// The cluster of blocks that a thread of the host emulates at a time: what its threads wait for, and what its copy
// engine and tensor cores have under way. fibres.cpp runs the threads; beside them work barriers.cpp, copies.cpp (the
// copy engine), pieces.cpp (copies of the threads' own), warp.cpp and products.cpp (tensor cores). shared_memory.cpp
// judges who reads and writes what.
#pragma once

#include <setjmp.h>

#include <array>
#include <cstdint>
#include <deque>
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
  std::vector<uint8_t> swizzles;  // of boxes, by 16 bytes: one more than the number of the swizzle they came with
  std::vector<Here> coming;       // by 4 bytes: which copy of a thread's own is still to bring them
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
    std::array<uint32_t, 4> a;   // registers of the left operand, as they were when it was asked for
    bool done = false;
  };
  std::vector<One> list;
  std::vector<size_t> groups;             // ends of committed groups in the list
  size_t waited = 0, retired_groups = 0;  // products and groups that were waited for
  bool fenced = false;
};

// What a thread copies into shared memory by itself (pieces.cpp).
struct Pieces {
  struct One {
    int64_t first;
    const void* from;
    int bytes, from_bytes;
  };
  std::deque<One> list;       // those under way
  size_t asked = 0;           // ever
  std::deque<size_t> groups;  // under way: how many had been asked for when they were committed
};

struct Fibre {
  tsr_emulated::Thread thread;
  BlockState* block = nullptr;
  jmp_buf state;
  void* frames = nullptr;  // the address sanitizer's
  bool started = false, ended = false;
  const char* waits = "";  // for what
  Here where;
  const SharedBarrier* barrier = nullptr;   // at which it waits
  const SharedBarrier* asked_of = nullptr;  // whether it was passed, and in which phase
  unsigned asked_phase = 0;
  const char* asks = nullptr;  // for what, together with the other lanes of its warp
  const void* asked = nullptr;
  Products products;
  Pieces pieces;
  std::vector<int> open_stores;  // numbers of its copies that no group holds yet
  std::vector<std::vector<int>> store_groups;
};

// Work of the copy engine that is not done yet. It is done as late as can be: when nobody can go on without it.
struct PendingCopy {
  // From memory; to memory; to another block's shared memory; an arrival behind copies of a thread's own.
  enum class Kind : uint8_t { load, store, send, arrive };
  Kind kind = Kind::load;
  int number = 0;
  BlockState* block = nullptr;  // whose shared memory it writes (a load) or reads
  int64_t first = 0, bytes = 0;
  const void* from = nullptr;  // of a run that comes
  void* to = nullptr;          // of a run that goes
  tsr_emulated::BoxCopy box{};
  std::array<int, 2> tap{};
  std::array<int, 5> at{};  // of the box
  tsr_emulated::Adds adds{};
  BlockState* target = nullptr;  // of what is sent
  int64_t target_first = 0;
  int64_t barrier = 0;    // offset, in the block that gets the bytes
  uint64_t contents = 0;  // hash, of what goes out
  const Fibre* asker = nullptr;
  Fibre* fibre = nullptr;  // whose copies are waited for
  size_t pieces = 0;       // how many it had asked for
  Here here;

  BlockState* written() const { return kind == Kind::load ? block : target; }
  int64_t written_first() const { return kind == Kind::load ? first : target_first; }
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
// The same of a thread that asked for something and went on.
void note_mistake(const Fibre& who, const std::string& what, Here where);

// Waits until all lanes of the warp have come.
void sync_lanes(const char* what, Here where);
// Another block, whose shared memory is touched; complains if it has not begun or has ended.
BlockState& block_of_cluster(int rank, Here where);

// --- barriers.cpp
void add_barriers(tsr_emulated::World& w);
SharedBarrier& barrier_at(BlockState& b, int64_t offset, Here where);
// Passed, if nothing is missing.
void settle(SharedBarrier& b);
void arrive(BlockState& b, int64_t offset, unsigned arrivals, Here where);
std::string too_many(const SharedBarrier& b, int64_t offset);
// --- copies.cpp
void add_copies(tsr_emulated::World& w);
// Does the oldest work that is under way; false if there is none.
bool make_a_copy();
// --- pieces.cpp
void add_pieces(tsr_emulated::World& w);
// Brings what the thread had asked for when it had asked for so many.
void bring_pieces(Fibre& f, size_t asked);
// --- warp.cpp, products.cpp
void add_warp(tsr_emulated::World& w);
void add_products(tsr_emulated::World& w);

// --- shared_memory.cpp
// Complains if somebody may still read these bytes, or will still write them.
void check_unread(const BlockState& b, int64_t first, int64_t bytes, const char* what, Here where);
// Complains if a copy has yet to bring some of these bytes.
void check_came(const BlockState& b, int64_t first, int64_t bytes, const char* what, Here where);
// Complains if a unit would read what ordinary stores wrote, without a fence between.
void check_fenced(BlockState& b, int64_t first, int64_t bytes, const char* what, Here where);
// Complains if memory outside the blocks ends before. The address sanitizer knows; other builds do not.
void check_memory(const void* p, int64_t bytes, const char* what, Here where);
uint64_t hash_of(const BlockState& b, int64_t first, int64_t bytes);
// The offset of a pointer into this block's shared memory; complains if it is none, or if the bytes do not fit.
int64_t shared_place(const BlockState& b, const void* p, int64_t bytes, const char* what, Here where);
// As the copy engine and the tensor cores see it; made on the first use.
char* fenced_memory(BlockState& b);
// Nobody may count on what lies there from now on.
void poison(BlockState& b, int64_t first, int64_t bytes);
// A unit has written these bytes; with this swizzle, or -1.
void unit_wrote(BlockState& b, int64_t first, int64_t bytes, int swizzle);
// What ordinary stores wrote, the units see from now on.
void fence_stores(BlockState& b);

}  // namespace tsr::emulator
