// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory.
#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"

namespace tsr::emulator {

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

std::string too_many(const SharedBarrier& b, int64_t offset) {
  return cat("more arrive at the barrier at offset ", offset, " than the ", b.arrivals, " it was made for");
}

void arrive(BlockState& block, int64_t offset, unsigned arrivals, Here where) {
  SharedBarrier& b = barrier_at(block, offset, where);
  if (b.missing < arrivals) mistake(too_many(b, offset), where);
  b.missing -= arrivals;
  cluster().progress = true;
  settle(b);
}

namespace {

void barrier_init(unsigned long long* barrier, unsigned arrivals, Here here) {
  BlockState& b = *cluster().here->block;
  int64_t at = shared_place(b, barrier, 8, "a barrier", here);
  if (at % 8 != 0) mistake(cat("a barrier lies at offset ", at, ", it must be a multiple of 8"), here);
  if (arrivals == 0) mistake("a barrier for no arrivals", here);
  b.barriers[at] = {arrivals, arrivals, 0, 0};
}

void barrier_arrive(unsigned long long* barrier, int rank, unsigned arrivals, unsigned bytes, Here here) {
  BlockState& mine = *cluster().here->block;
  int64_t at = shared_place(mine, barrier, 8, "a barrier", here);
  BlockState& there = rank < 0 ? mine : block_of_cluster(rank, here);
  barrier_at(there, at, here).bytes += bytes;
  arrive(there, at, arrivals, here);
}

SharedBarrier& mine(unsigned long long* barrier, Here here) {
  BlockState& block = *cluster().here->block;
  return barrier_at(block, shared_place(block, barrier, 8, "a barrier", here), here);
}

bool passed(const SharedBarrier& b, unsigned parity) { return (b.phase & 1) != (parity & 1); }

void barrier_wait(unsigned long long* barrier, unsigned parity, Here here) {
  SharedBarrier& b = mine(barrier, here);
  cluster().here->barrier = &b;
  while (!passed(b, parity)) yield("a barrier in shared memory", here);
  cluster().here->barrier = nullptr;
}

// Who asks again and again lets others run, and waits; who asks once does not.
bool barrier_passed(unsigned long long* barrier, unsigned parity, Here here) {
  SharedBarrier& b = mine(barrier, here);
  Fibre& f = *cluster().here;
  bool again = f.asked_of == &b && f.asked_phase == b.phase;
  f.asked_of = &b, f.asked_phase = b.phase;
  if (passed(b, parity)) return true;
  if (!again) cluster().progress = true;
  f.barrier = &b;
  yield("a barrier in shared memory", here);
  f.barrier = nullptr;
  return passed(b, parity);
}

void barrier_end(unsigned long long* barrier, Here here) {
  mine(barrier, here);
  BlockState& block = *cluster().here->block;
  block.barriers.erase(shared_place(block, barrier, 8, "a barrier", here));
}

}  // namespace

void add_barriers(tsr_emulated::World& w) {
  w.barrier_init = barrier_init;
  w.barrier_arrive = barrier_arrive;
  w.barrier_wait = barrier_wait;
  w.barrier_passed = barrier_passed;
  w.barrier_end = barrier_end;
}

}  // namespace tsr::emulator
