// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory, and the copy engine of the emulated GPU.
#include <cstring>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "runtime/emulator/cluster.hpp"
#include "runtime/emulator/tensor_box.hpp"

namespace tsr::emulator {

uint64_t hash_of(const BlockState& b, int64_t first, int64_t bytes) {
  return hash_text({b.block.shared + first, static_cast<size_t>(bytes)});
}

char* fenced_memory(BlockState& b) {
  // What was stored before the first use counts as fenced: a mistake there shows from the second use on.
  if (b.fenced.empty()) b.fenced.assign(b.block.shared, b.block.shared + b.shared_bytes);
  return b.fenced.data();
}

int64_t shared_place(const BlockState& b, const void* p, int64_t bytes, const char* what, Here where) {
  int64_t at = static_cast<const char*>(p) - b.block.shared;
  if (at < 0 || at + bytes > b.shared_bytes)
    mistake(cat(what, " at offset ", at, " with ", bytes, " bytes lies outside the block's ", b.shared_bytes,
                " bytes of shared memory"),
            where);
  return at;
}

void check_unread(const BlockState& b, int64_t first, int64_t bytes, const char* what, Here where) {
  for (const Reading& r : cluster().readings)
    if (r.block == &b && r.first < first + bytes && first < r.first + r.bytes)
      mistake(cat(what, " overwrites ", bytes, " bytes of shared memory at offset ", first,
                  ", which the work asked for at ", r.here.file, ":", r.here.line, " may still read"),
              where);
  for (const PendingCopy& c : cluster().copies)
    if (c.block == &b && c.first < first + bytes && first < c.first + c.bytes)
      mistake(cat(what, " overwrites ", bytes, " bytes of shared memory at offset ", first,
                  ", which the copy asked for at ", c.here.file, ":", c.here.line, " has not finished with"),
              where);
}

namespace {

SharedBarrier& barrier_at(BlockState& b, int64_t offset, Here where) {
  auto it = b.barriers.find(offset);
  if (it == b.barriers.end()) mistake(cat("the barrier at offset ", offset, " was not initialised"), where);
  return it->second;
}

void settle(SharedBarrier& b) {
  if (b.missing != 0 || b.bytes != 0) return;
  ++b.phase;
  b.missing = b.arrivals;
  cluster().progress = true;
}

void barrier_init(unsigned long long* barrier, unsigned arrivals, Here here) {
  BlockState& b = *cluster().here->block;
  int64_t at = shared_place(b, barrier, 8, "a barrier", here);
  if (at % 8 != 0) mistake(cat("a barrier lies at offset ", at, ", it must be a multiple of 8"), here);
  if (arrivals == 0) mistake("a barrier for no arrivals", here);
  b.barriers[at] = {arrivals, arrivals, 0, 0};
}

void barrier_arrive(unsigned long long* barrier, int rank, unsigned bytes, Here here) {
  BlockState& mine = *cluster().here->block;
  int64_t at = shared_place(mine, barrier, 8, "a barrier", here);
  if (rank >= static_cast<int>(cluster().blocks.size()))
    mistake(cat("block ", rank, " of a cluster of ", cluster().blocks.size()), here);
  SharedBarrier& b = barrier_at(rank < 0 ? mine : cluster().blocks[static_cast<size_t>(rank)], at, here);
  if (b.missing == 0)
    mistake(cat("more arrive at the barrier at offset ", at, " than the ", b.arrivals, " it was made for"), here);
  b.bytes += bytes;
  --b.missing;
  cluster().progress = true;
  settle(b);
}

void barrier_wait(unsigned long long* barrier, unsigned parity, Here here) {
  BlockState& block = *cluster().here->block;
  SharedBarrier& b = barrier_at(block, shared_place(block, barrier, 8, "a barrier", here), here);
  while ((b.phase & 1) == (parity & 1)) yield("a barrier in shared memory", here);
}

// --- copies into shared memory
void poison(BlockState& b, int64_t first, int64_t bytes) {
  std::memset(fenced_memory(b) + first, 0xff, static_cast<size_t>(bytes));
  std::memset(b.block.shared + first, 0xff, static_cast<size_t>(bytes));
}

// Nobody may count on what lies in its place from now on.
void begin_load(PendingCopy c) {
  check_unread(*c.block, c.first, c.bytes, "a copy", c.here);
  poison(*c.block, c.first, c.bytes);
  c.number = ++cluster().copies_asked;
  cluster().copies.push_back(c);
}

void copy_run(void* to, const void* from, unsigned bytes, unsigned long long* barrier, Here here) {
  BlockState& b = *cluster().here->block;
  int64_t first = shared_place(b, to, bytes, "a copy", here);
  if (first % 16 != 0 || bytes % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0)
    mistake(cat("a bulk copy of ", bytes, " bytes to offset ", first, ": all must be multiples of 16"), here);
  PendingCopy c{.number = 0, .out = false, .block = &b, .first = first, .bytes = bytes, .from = from, .here = here};
  c.barrier = shared_place(b, barrier, 8, "a barrier", here);
  barrier_at(b, c.barrier, here);
  begin_load(c);
}

PendingCopy box_copy(const tsr_emulated::BoxCopy& box, BlockState& b, int64_t first, bool out) {
  PendingCopy c{
      .number = 0, .out = out, .block = &b, .first = first, .bytes = box_bytes(box), .box = box, .here = box.here};
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
  unsigned blocks = box.blocks ? box.blocks : 1u << mine.block.rank;
  for (size_t rank = 0; rank < 32; ++rank) {
    if ((blocks >> rank & 1) == 0) continue;
    if (rank >= cluster().blocks.size())
      mistake(cat("a copy goes to block ", rank, " of a cluster of ", cluster().blocks.size()), box.here);
    BlockState& b = cluster().blocks[rank];
    PendingCopy c = box_copy(box, b, first, false);
    c.barrier = barrier;
    barrier_at(b, barrier, box.here);
    begin_load(c);
  }
}

// --- copies out of shared memory
void store_box(const tsr_emulated::BoxCopy& box) {
  Fibre& f = *cluster().here;
  BlockState& b = *f.block;
  if (std::string why = check_map(box); !why.empty()) mistake(why, box.here);
  int64_t first = shared_place(b, box.shared, box_bytes(box), "a store", box.here);
  if (first % box_alignment(box) != 0)
    mistake(cat("a box comes from offset ", first, ", it must be a multiple of ", box_alignment(box)), box.here);
  if (std::memcmp(fenced_memory(b) + first, b.block.shared + first, static_cast<size_t>(box_bytes(box))) != 0)
    mistake(
        cat("a copy reads shared memory at offset ", first, " that ordinary stores wrote, without fence_for_copies"),
        box.here);
  if (row_end(box) % 16 != 0)
    mistake(cat("rows of the tensor have ", row_end(box),
                " bytes: a store of boxes writes whole 16 bytes, beyond their end"),
            box.here);
  PendingCopy c = box_copy(box, b, first, true);
  c.contents = hash_of(b, first, c.bytes);
  c.number = ++cluster().copies_asked;
  f.open_stores.push_back(c.number);
  cluster().copies.push_back(c);
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

void fence_proxy() {
  BlockState& b = *cluster().here->block;
  std::memcpy(fenced_memory(b), b.block.shared, static_cast<size_t>(b.shared_bytes));
}

}  // namespace

bool make_a_copy() {
  if (cluster().copies.empty()) return false;
  PendingCopy c = cluster().copies.front();
  cluster().copies.pop_front();
  cluster().progress = true;
  char* memory = c.block->block.shared;
  c.box.at = c.at.data();
  if (c.box.tap) c.box.tap = c.tap.data();
  if (c.out) {
    if (hash_of(*c.block, c.first, c.bytes) != c.contents) {
      cluster().mistake = cat(c.here.file, ":", c.here.line, ": shared memory at offset ", c.first,
                              " was overwritten before the copy out of it was waited for");
      return true;
    }
    write_box(c.box, memory, c.first);
    return true;
  }
  if (c.from)
    std::memcpy(memory + c.first, c.from, static_cast<size_t>(c.bytes));
  else
    read_box(c.box, memory, c.first);
  std::memcpy(fenced_memory(*c.block) + c.first, memory + c.first, static_cast<size_t>(c.bytes));
  SharedBarrier& b = c.block->barriers.at(c.barrier);
  b.bytes -= c.bytes;
  settle(b);
  return true;
}

void add_copies(tsr_emulated::World& w) {
  w.barrier_init = barrier_init;
  w.barrier_arrive = barrier_arrive;
  w.barrier_wait = barrier_wait;
  w.copy_run = copy_run;
  w.copy_box = copy_box;
  w.store_box = store_box;
  w.stores_commit = stores_commit;
  w.stores_wait = stores_wait;
  w.fence_proxy = fence_proxy;
}

}  // namespace tsr::emulator
