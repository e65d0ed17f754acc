// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/fibres.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include <bit>
#include <set>

#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"

namespace tsr::emulator {
namespace {

constexpr size_t kStack = 128 * 1024;

thread_local Cluster current;

}  // namespace

Cluster& cluster() { return current; }

namespace {

// The address sanitizer must know on which stack the program is: it clears its marks there when an exception passes.
#if defined(__SANITIZE_ADDRESS__)
thread_local const void* scheduler_stack = nullptr;
thread_local size_t scheduler_stack_bytes = 0;
thread_local void* scheduler_frames = nullptr;

void leave_scheduler(void* stack) {
  __asan_unpoison_memory_region(stack, current.here->started ? 0 : kStack);  // what others that never ended left there
  __sanitizer_start_switch_fiber(&scheduler_frames, stack, kStack);
}
void enter_fibre() { __sanitizer_finish_switch_fiber(current.here->frames, &scheduler_stack, &scheduler_stack_bytes); }
void leave_fibre() {
  __sanitizer_start_switch_fiber(current.here->ended ? nullptr : &current.here->frames, scheduler_stack,
                                 scheduler_stack_bytes);
}
void enter_scheduler() { __sanitizer_finish_switch_fiber(scheduler_frames, nullptr, nullptr); }
#else
void leave_scheduler(void* /*stack*/) {}
void enter_fibre() {}
void leave_fibre() {}
void enter_scheduler() {}
#endif

struct Mistake {};  // unwinds the thread that made it

}  // namespace

void yield(const char* what, Here where) {
  current.here->waits = what;
  current.here->where = where;
  if (_setjmp(current.here->state) == 0) {
    leave_fibre();
    _longjmp(current.scheduler, 1);
  }
  enter_fibre();
}

void note_mistake(const Fibre& who, const std::string& what, Here where) {
  const tsr_emulated::Thread& t = who.thread;
  if (current.mistake.empty())
    current.mistake =
        cat("block ", t.block->index.x, ", thread ", t.index.x, ", ", where.file, ":", where.line, ": ", what);
}

void mistake(const std::string& what, Here where) {
  note_mistake(*current.here, what, where);
  throw Mistake();
}

namespace {

// Waits until `count` threads have come; the number may fall while threads end.
void wait(Barrier& b, const int& count, const char* what, Here where) {
  unsigned generation = b.generation;
  ++b.arrived;
  current.progress = true;
  while (b.generation == generation) {
    if (b.arrived >= count) {
      b.arrived = 0;
      ++b.generation;
      current.progress = true;
    } else {
      yield(what, where);
    }
  }
}

void sync_block(Here here) {
  wait(current.here->block->all, current.here->block->alive, "a barrier of the block", here);
}
void sync_cluster() { wait(current.all, current.alive, "a barrier of the cluster", {"", 0}); }
Barrier& named(int barrier, Here here) {
  std::array<Barrier, 16>& all = current.here->block->named;
  if (barrier < 0 || barrier >= static_cast<int>(all.size()))
    mistake(cat("a barrier by number ", barrier, ": there are ", all.size()), here);
  return all[static_cast<size_t>(barrier)];
}
void sync_named(int barrier, int threads, Here here) {
  wait(named(barrier, here), threads, "a barrier by number", here);
}
// Where blocks run one after the other, what was not counted yet never will be.
void wait_count(const unsigned* counter, unsigned count, Here here) {
  while (*counter != count && current.blocks.size() > 1) yield("a count of other blocks", here);
  current.progress = true;
  if (*counter != count)
    mistake(cat("a count of ", *counter, " where ", count, " was waited for, of blocks with lower numbers"), here);
}
// Others wait for this thread, it does not wait for them.
void arrive_named(int barrier, int threads, Here here) {
  Barrier& b = named(barrier, here);
  current.progress = true;
  if (++b.arrived < threads) return;
  b.arrived = 0;
  ++b.generation;
}
void sync_warp(unsigned lanes, Here here) {
  unsigned x = current.here->thread.index.x, first = x / 32 * 32, size = current.world.block_dim.x - first;
  if (size < 32) lanes &= (1u << size) - 1;  // the last warp may be a part
  wait(current.here->block->warps[first + static_cast<unsigned>(std::countr_zero(lanes))], std::popcount(lanes),
       "its warp", here);
}

}  // namespace

void sync_lanes(const char* what, Here where) {
  wait(current.here->block->warps[current.here->thread.index.x / 32 * 32], 32, what, where);
}

BlockState& block_of_cluster(int rank, Here where) {
  if (rank < 0 || rank >= static_cast<int>(current.blocks.size()))
    mistake(cat("block ", rank, " of a cluster of ", current.blocks.size()), where);
  auto index = static_cast<size_t>(rank);
  BlockState& b = current.blocks[index];
  if (!current.fibres[index * current.world.block_dim.x].started)
    mistake(cat("block ", rank, " of the cluster may not have begun: a barrier of the cluster must come first"), where);
  if (b.alive == 0)
    mistake(cat("block ", rank, " of the cluster may have ended: a barrier of the cluster must come last"), where);
  return b;
}

namespace {

// The frames of this and the next function are left by jumps, so the sanitizer may not mark them.
[[gnu::no_sanitize_address]] void begin() {
  enter_fibre();
  try {
    current.enter(&current.world, current.args);
  } catch (const Mistake&) {  // the scheduler tells
  }
  current.here->ended = true;
  --current.here->block->alive;
  --current.alive;
  current.progress = true;
  leave_fibre();
  _longjmp(current.scheduler, 1);
}

[[gnu::no_sanitize_address]] void start(void* stack) {
  thread_local ucontext_t fresh, ignored;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = stack;
  fresh.uc_stack.ss_size = kStack;
  fresh.uc_link = nullptr;
  makecontext(&fresh, begin, 0);
  current.here->started = true;
  swapcontext(&ignored, &fresh);
}

// Stacks are kept: most launches need as many as the last one.
std::vector<void*>& stacks(size_t count) {
  thread_local std::vector<void*> list;
  while (list.size() < count) {
    void* p = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) break;
    list.push_back(p);
  }
  return list;
}

// Who waits for what: threads of a block that wait at the same place together.
std::string waiting() {
  std::map<std::string, std::set<unsigned>> places;
  for (const Fibre& f : current.fibres) {
    if (f.ended) continue;
    std::string where = f.where.line ? cat(", ", f.where.file, ":", f.where.line) : std::string();
    if (const SharedBarrier* b = f.barrier)
      where += cat(" (", b->missing, " of ", b->arrivals, " arrivals and ", b->bytes, " bytes are missing)");
    places[cat("block ", f.thread.block->index.x, " for ", f.waits, where)].insert(f.thread.index.x);
  }
  std::string text = "threads wait for each other for ever:";
  for (const auto& [place, threads] : places)
    text += cat("\n  ", threads.size(), " threads, the first is ", *threads.begin(), ", of ", place);
  return text;
}

// Empty, or what went wrong.
std::string run_cluster(const std::vector<void*>& stack) {
  volatile size_t i = 0;
  current.progress = true;
  while (current.alive > 0) {
    if (i == current.fibres.size()) {
      // Copies come as late as can be: what does not wait for them misses them.
      if (!current.progress && !make_a_copy()) return waiting();
      current.progress = false;
      i = 0;
    }
    Fibre& f = current.fibres[i];
    if (!f.ended) {
      if (_setjmp(current.scheduler) == 0) {
        current.here = &f;
        current.world.here = &f.thread;
        leave_scheduler(stack[i]);
        if (f.started)
          _longjmp(f.state, 1);
        else
          start(stack[i]);
      }
      enter_scheduler();
    }
    if (!current.mistake.empty()) return current.mistake;
    i = i + 1;
  }
  // Stores that nobody waited for are made all the same.
  while (make_a_copy())
    if (!current.mistake.empty()) return current.mistake;
  return "";
}

void prepare(const Grid& g, int64_t first, int64_t at_once) {
  auto threads = static_cast<size_t>(g.threads), blocks = static_cast<size_t>(at_once), warps = (threads + 31) / 32;
  current.blocks.assign(blocks, BlockState());
  current.by_rank.clear();
  current.fibres.assign(blocks * threads, Fibre());
  current.alive = static_cast<int>(blocks * threads);
  current.all = {};
  current.mistake.clear();
  current.copies.clear();
  current.readings.clear();
  for (size_t b = 0; b < blocks; ++b) {
    BlockState& s = current.blocks[b];
    s.alive = g.threads;
    s.warps.resize(warps * 32);
    s.exchange.resize(warps * 32);
    constexpr size_t kAlign = 1024;
    s.shared_bytes = g.shared_bytes;
    s.memory.assign(static_cast<size_t>(g.shared_bytes) + kAlign, static_cast<char>(0xff));  // poisoned
    auto address = reinterpret_cast<uintptr_t>(s.memory.data());
    s.block = {{static_cast<unsigned>(first) + static_cast<unsigned>(b), 0, 0},
               static_cast<int>(b),
               reinterpret_cast<char*>((address + kAlign - 1) / kAlign * kAlign),
               s.exchange.data()};
    current.by_rank.push_back(&s.block);
    for (size_t t = 0; t < threads; ++t) {
      Fibre& f = current.fibres[b * threads + t];
      f.thread = {{static_cast<unsigned>(t), 0, 0}, &s.block};
      f.block = &s;
    }
  }
  current.world.cluster = current.by_rank.data();
}

}  // namespace

std::string run_fibres(const Grid& g, Enter enter, const void* args) {
  if (g.threads < 1 || g.threads > 1024) return "a block has 1 to 1024 threads";
  if (g.blocks < 1 || g.blocks > 0x7fffffff) return "a grid has 1 to 2^31-1 blocks";
  if (g.blocks % g.cluster != 0) return "the blocks do not make whole clusters";
  // Blocks that may wait for each other run as one cluster.
  int64_t at_once = g.together ? g.blocks : g.cluster;
  auto count = static_cast<size_t>(g.threads) * static_cast<size_t>(at_once);
  const std::vector<void*>& stack = stacks(count);
  if (stack.size() < count) return "there is no memory for the threads' stacks";
  current.world = {};
  current.world.block_dim = {static_cast<unsigned>(g.threads), 1, 1};
  current.world.grid_dim = {static_cast<unsigned>(g.blocks), 1, 1};
  current.world.cluster_size = static_cast<int>(at_once);
  current.world.sync_block = sync_block;
  current.world.sync_warp = sync_warp;
  current.world.sync_cluster = sync_cluster;
  current.world.sync_named = sync_named;
  current.world.arrive_named = arrive_named;
  current.world.wait_count = wait_count;
  add_barriers(current.world);
  add_copies(current.world);
  add_pieces(current.world);
  add_warp(current.world);
  add_products(current.world);
  current.enter = enter;
  current.args = args;
  for (int64_t first = 0; first < g.blocks; first += at_once) {
    prepare(g, first, at_once);
    if (std::string why = run_cluster(stack); !why.empty()) return why;
  }
  return "";
}

}  // namespace tsr::emulator
