// SPDX-License-Identifier: Apache-2.0
// The copy engine of the emulated GPU.
#include <cstring>

#include "base/dtype.hpp"
#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"
#include "runtime/emulator/tensor_box.hpp"

namespace tsr::emulator {
namespace {

using Kind = PendingCopy::Kind;

void check_no_barrier(const BlockState& b, int64_t first, int64_t bytes, Here where) {
  auto it = b.barriers.lower_bound(first - 7);
  if (it != b.barriers.end() && it->first < first + bytes)
    mistake(cat("a copy goes over the barrier at offset ", it->first), where);
}

// --- copies into shared memory
void begin_load(PendingCopy c) {
  check_unread(*c.block, c.first, c.bytes, "a copy", c.here);
  check_no_barrier(*c.block, c.first, c.bytes, c.here);
  poison(*c.block, c.first, c.bytes);
  c.number = ++cluster().copies_asked;
  c.asker = cluster().here;
  cluster().copies.push_back(c);
}

void check_run(const void* memory, int64_t shared, int64_t bytes, Here here) {
  if (shared % 16 != 0 || bytes % 16 != 0 || reinterpret_cast<uintptr_t>(memory) % 16 != 0)
    mistake(cat("a bulk copy of ", bytes, " bytes at offset ", shared, ": addresses and bytes must be multiples of 16"),
            here);
}

void copy_run(void* to, const void* from, unsigned bytes, unsigned long long* barrier, Here here) {
  BlockState& b = *cluster().here->block;
  PendingCopy c;
  c.block = &b, c.first = shared_place(b, to, bytes, "a copy", here), c.bytes = bytes, c.from = from, c.here = here;
  check_run(from, c.first, bytes, here);
  check_memory(from, bytes, "a copy", here);
  c.barrier = shared_place(b, barrier, 8, "a barrier", here);
  barrier_at(b, c.barrier, here);
  begin_load(c);
}

PendingCopy box_copy(Kind kind, const tsr_emulated::BoxCopy& box, BlockState& b, int64_t first) {
  PendingCopy c;
  c.kind = kind, c.block = &b, c.first = first, c.bytes = box_bytes(box), c.box = box, c.here = box.here;
  for (int i = 0; i < box.rank; ++i) c.at[static_cast<size_t>(i)] = box.at[i];
  if (box.tap) c.tap = {box.tap[0], box.tap[1]};
  return c;
}

void copy_box(const tsr_emulated::BoxCopy& box) {
  BlockState& mine = *cluster().here->block;
  if (std::string why = check_map(box); !why.empty()) mistake(why, box.here);
  int64_t first = shared_place(mine, box.shared, box_bytes(box), "a copy", box.here);
  if (first % box_alignment(box) != 0)
    mistake(cat("a box goes to offset ", first, ", it must be a multiple of ", box_alignment(box)), box.here);
  int64_t barrier = shared_place(mine, box.barrier, 8, "a barrier", box.here);
  auto load_into = [&](BlockState& b) {
    PendingCopy c = box_copy(Kind::load, box, b, first);
    c.barrier = barrier;
    barrier_at(b, barrier, box.here);
    begin_load(c);
  };
  if (box.blocks == 0) load_into(mine);
  for (int rank = 0; rank < 32; ++rank)
    if (box.blocks >> rank & 1) load_into(block_of_cluster(rank, box.here));
}

// --- copies out of shared memory
void begin_store(PendingCopy c, const char* what) {
  check_came(*c.block, c.first, c.bytes, what, c.here);
  check_fenced(*c.block, c.first, c.bytes, what, c.here);
  c.contents = hash_of(*c.block, c.first, c.bytes);
  c.number = ++cluster().copies_asked;
  c.asker = cluster().here;
  if (c.kind == Kind::store) cluster().here->open_stores.push_back(c.number);
  cluster().copies.push_back(c);
}

void store_box(const tsr_emulated::BoxCopy& box, bool adds) {
  BlockState& b = *cluster().here->block;
  if (std::string why = check_map(box); !why.empty()) mistake(why, box.here);
  if (adds && box_adds(box) == tsr_emulated::Adds::nothing)
    mistake("a store that adds needs a map that says what numbers its elements are", box.here);
  int64_t first = shared_place(b, box.shared, box_bytes(box), "a store", box.here);
  if (first % box_alignment(box) != 0)
    mistake(cat("a box comes from offset ", first, ", it must be a multiple of ", box_alignment(box)), box.here);
  if (row_end(box) % 16 != 0)
    mistake(cat("rows of the tensor have ", row_end(box),
                " bytes: a store of boxes writes whole 16 bytes, beyond their end"),
            box.here);
  PendingCopy c = box_copy(Kind::store, box, b, first);
  if (adds) c.adds = box_adds(box);
  begin_store(c, "a copy");
}

void store_run(const tsr_emulated::RunCopy& r) {
  BlockState& b = *cluster().here->block;
  PendingCopy c;
  c.kind = r.barrier ? Kind::send : Kind::store;
  c.block = &b, c.first = shared_place(b, r.from, r.bytes, "a store", r.here), c.bytes = r.bytes;
  c.to = r.to, c.adds = r.adds, c.here = r.here;
  if (r.barrier) {
    c.target = &block_of_cluster(r.rank, r.here);
    c.target_first = shared_place(b, r.to, r.bytes, "a copy", r.here);
    c.barrier = shared_place(b, r.barrier, 8, "a barrier", r.here);
    check_run(nullptr, c.target_first, r.bytes, r.here);
    barrier_at(*c.target, c.barrier, r.here);
    check_unread(*c.target, c.target_first, c.bytes, "a copy", r.here);
    check_no_barrier(*c.target, c.target_first, c.bytes, r.here);
    if (c.target != &b) poison(*c.target, c.target_first, c.bytes);
  }
  check_run(r.barrier ? nullptr : r.to, c.first, r.bytes, r.here);
  if (!r.barrier) check_memory(r.to, r.bytes, "a store", r.here);
  begin_store(c, "a copy");
}

void stores_commit() {
  Fibre& f = *cluster().here;
  f.store_groups.push_back(std::move(f.open_stores));
  f.open_stores.clear();
}

bool is_pending(int number) {
  for (const PendingCopy& c : cluster().copies)
    if (c.number == number) return true;
  return false;
}

void stores_wait(int left) {
  Fibre& f = *cluster().here;
  for (size_t g = 0; g + static_cast<size_t>(left) < f.store_groups.size(); ++g)
    for (int number : f.store_groups[g])
      while (is_pending(number)) yield("its stores", {"", 0});
}

void fence_proxy() { fence_stores(*cluster().here->block); }

// --- the work itself
void make_load(const PendingCopy& c) {
  char* memory = c.block->block.shared;
  if (c.from)
    std::memcpy(memory + c.first, c.from, static_cast<size_t>(c.bytes));
  else
    read_box(c.box, memory, c.first);
  unit_wrote(*c.block, c.first, c.bytes, c.from ? -1 : static_cast<int>(box_swizzle(c.box)));
}

void make_store(const PendingCopy& c) {
  const char* memory = c.block->block.shared;
  if (c.kind == Kind::send) {
    std::memcpy(c.target->block.shared + c.target_first, memory + c.first, static_cast<size_t>(c.bytes));
    unit_wrote(*c.target, c.target_first, c.bytes, -1);
  } else if (c.to) {
    int64_t bytes = c.adds == tsr_emulated::Adds::nothing ? 16 : element_bytes(c.adds);
    for (int64_t i = 0; i < c.bytes; i += bytes) put(static_cast<char*>(c.to) + i, memory + c.first + i, bytes, c.adds);
  } else {
    write_box(c.box, memory, c.first, c.adds);
  }
}

}  // namespace

bool make_a_copy() {
  if (cluster().copies.empty()) return false;
  PendingCopy c = cluster().copies.front();
  cluster().copies.pop_front();
  cluster().progress = true;
  if (c.kind == Kind::arrive) {
    bring_pieces(*c.fibre, c.pieces);
    SharedBarrier& b = c.block->barriers.at(c.barrier);
    if (b.missing == 0) {
      note_mistake(*c.fibre, too_many(b, c.barrier), c.here);
      return true;
    }
    --b.missing;
    settle(b);
    return true;
  }
  c.box.at = c.at.data();
  if (c.box.tap) c.box.tap = c.tap.data();
  if (c.kind == Kind::load) {
    make_load(c);
  } else {
    if (hash_of(*c.block, c.first, c.bytes) != c.contents) {
      note_mistake(
          *c.asker,
          cat("shared memory at offset ", c.first, " was overwritten before the copy out of it was waited for"),
          c.here);
      return true;
    }
    make_store(c);
  }
  if (c.kind == Kind::store) return true;
  SharedBarrier& b = c.written()->barriers.at(c.barrier);
  b.bytes -= c.bytes;
  settle(b);
  return true;
}

void add_copies(tsr_emulated::World& w) {
  w.copy_run = copy_run;
  w.copy_box = copy_box;
  w.store_box = store_box;
  w.store_run = store_run;
  w.stores_commit = stores_commit;
  w.stores_wait = stores_wait;
  w.fence_proxy = fence_proxy;
  w.remote = [](const void* place, int rank, int bytes, bool writes, Here here) -> void* {
    int64_t at = shared_place(*cluster().here->block, place, bytes, "a place", here);
    if (at % bytes != 0) mistake(cat("a word of ", bytes, " bytes at offset ", at), here);
    BlockState& there = block_of_cluster(rank, here);
    if (writes)
      check_unread(there, at, bytes, "a store from another block", here);
    else
      check_came(there, at, bytes, "another block", here);
    return there.block.shared + at;
  };
}

}  // namespace tsr::emulator
