// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulator/fibres.hpp"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace tsr::emulator {
namespace {

constexpr size_t kStack = 128 * 1024;

struct Barrier {
  unsigned generation = 0;
  int arrived = 0;
};

struct BlockState {
  tsr_emulated::Block block;
  int alive = 0;  // threads that have not ended
  Barrier all;
  std::array<Barrier, 16> named;
  std::vector<Barrier> warps;  // for each group of lanes the one of its first thread
  std::vector<unsigned long long> exchange;
  std::vector<char> shared;
};

struct Fibre {
  tsr_emulated::Thread thread;
  BlockState* block = nullptr;
  jmp_buf state;
  bool started = false, ended = false;
};

// The cluster that this thread of the host runs now.
struct Cluster {
  tsr_emulated::World world;
  std::vector<BlockState> blocks;
  std::vector<tsr_emulated::Block*> by_rank;
  std::vector<Fibre> fibres;
  Fibre* here = nullptr;
  Barrier all;
  int alive = 0;
  bool progress = false;
  Enter enter = nullptr;
  const void* args = nullptr;
  jmp_buf scheduler;
};
thread_local Cluster cluster;

// Fibres leave their stacks by jumps: what the address sanitizer marks there would stay marked. So it marks nothing in
// the functions that run on them.
[[gnu::no_sanitize_address]] void yield() {
  if (_setjmp(cluster.here->state) == 0) _longjmp(cluster.scheduler, 1);
}

// Waits until `count` threads have come; the number may fall while threads end.
[[gnu::no_sanitize_address]] void wait(Barrier& b, const int& count) {
  unsigned generation = b.generation;
  ++b.arrived;
  cluster.progress = true;
  while (b.generation == generation) {
    if (b.arrived >= count) {
      b.arrived = 0;
      ++b.generation;
      cluster.progress = true;
    } else {
      yield();
    }
  }
}

[[gnu::no_sanitize_address]] void sync_block() { wait(cluster.here->block->all, cluster.here->block->alive); }
[[gnu::no_sanitize_address]] void sync_cluster() { wait(cluster.all, cluster.alive); }
[[gnu::no_sanitize_address]] void sync_named(int barrier, int threads) {
  wait(cluster.here->block->named.at(static_cast<size_t>(barrier)), threads);
}
[[gnu::no_sanitize_address]] void sync_warp(unsigned lanes) {
  unsigned x = cluster.here->thread.index.x, first = x / 32 * 32, size = cluster.world.block_dim.x - first;
  if (size < 32) lanes &= (1u << size) - 1;  // the last warp may be a part
  wait(cluster.here->block->warps[first + static_cast<unsigned>(std::countr_zero(lanes))], std::popcount(lanes));
}

[[gnu::no_sanitize_address]] void begin() {
  cluster.enter(&cluster.world, cluster.args);
  cluster.here->ended = true;
  --cluster.here->block->alive;
  --cluster.alive;
  cluster.progress = true;
  _longjmp(cluster.scheduler, 1);
}

[[gnu::no_sanitize_address]] void start(void* stack) {
  thread_local ucontext_t fresh, ignored;
  getcontext(&fresh);
  fresh.uc_stack.ss_sp = stack;
  fresh.uc_stack.ss_size = kStack;
  fresh.uc_link = nullptr;
  makecontext(&fresh, begin, 0);
  cluster.here->started = true;
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

// False when all that are left wait for something that never comes.
[[gnu::no_sanitize_address]] bool run_cluster(const std::vector<void*>& stack) {
  volatile size_t i = 0;
  cluster.progress = true;
  while (cluster.alive > 0) {
    if (i == cluster.fibres.size()) {
      if (!cluster.progress) return false;
      cluster.progress = false;
      i = 0;
    }
    Fibre& f = cluster.fibres[i];
    if (!f.ended && _setjmp(cluster.scheduler) == 0) {
      cluster.here = &f;
      cluster.world.here = &f.thread;
      if (f.started)
        _longjmp(f.state, 1);
      else
        start(stack[i]);
    }
    i = i + 1;
  }
  return true;
}

void prepare(const Grid& g, int64_t first, int64_t at_once) {
  auto threads = static_cast<size_t>(g.threads), blocks = static_cast<size_t>(at_once), warps = (threads + 31) / 32;
  cluster.blocks.assign(blocks, BlockState());
  cluster.by_rank.clear();
  cluster.fibres.assign(blocks * threads, Fibre());
  cluster.alive = static_cast<int>(blocks * threads);
  cluster.all = {};
  for (size_t b = 0; b < blocks; ++b) {
    BlockState& s = cluster.blocks[b];
    s.alive = g.threads;
    s.warps.resize(warps * 32);
    s.exchange.resize(warps * 32);
    constexpr size_t kAlign = 1024;
    s.shared.assign(static_cast<size_t>(g.shared_bytes) + kAlign, static_cast<char>(0xff));  // poisoned
    auto address = reinterpret_cast<uintptr_t>(s.shared.data());
    s.block = {{static_cast<unsigned>(first) + static_cast<unsigned>(b), 0, 0},
               static_cast<int>(b),
               reinterpret_cast<char*>((address + kAlign - 1) / kAlign * kAlign),
               s.exchange.data()};
    cluster.by_rank.push_back(&s.block);
    for (size_t t = 0; t < threads; ++t) {
      Fibre& f = cluster.fibres[b * threads + t];
      f.thread = {{static_cast<unsigned>(t), 0, 0}, &s.block};
      f.block = &s;
    }
  }
  cluster.world.cluster = cluster.by_rank.data();
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
  cluster.world = {{static_cast<unsigned>(g.threads), 1, 1},
                   {static_cast<unsigned>(g.blocks), 1, 1},
                   nullptr,
                   nullptr,
                   static_cast<int>(at_once),
                   sync_block,
                   sync_warp,
                   sync_cluster,
                   sync_named};
  cluster.enter = enter;
  cluster.args = args;
  for (int64_t first = 0; first < g.blocks; first += at_once) {
    prepare(g, first, at_once);
    if (!run_cluster(stack)) return "threads wait for each other for ever: not all of them reach a barrier";
  }
  return "";
}

}  // namespace tsr::emulator
