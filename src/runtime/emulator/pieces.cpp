// SPDX-License-Identifier: Apache-2.0
// Copies of the threads' own into shared memory. A piece comes when its thread waits for it, or, where a barrier tells
// of it, when nobody can go on without it. Until then its place holds NaN.
#include <cstring>

#include "base/error.hpp"
#include "runtime/emulator/cluster.hpp"

namespace tsr::emulator {
namespace {

void misaligned(const void* p, int bytes, int alignment, Here here) {
  mistake(cat(bytes, " bytes are loaded or stored ", reinterpret_cast<uintptr_t>(p) % 16,
              " bytes behind a multiple of 16, they must lie at a multiple of ", alignment),
          here);
}

void mark_coming(BlockState& b, int64_t first, int bytes, Here here) {
  for (int64_t i = first / 4; i * 4 < first + bytes; ++i) b.coming[static_cast<size_t>(i)] = here;
}

void copy_piece(const tsr_emulated::PieceCopy& c) {
  Fibre& f = *cluster().here;
  BlockState& b = *f.block;
  int64_t first = shared_place(b, c.to, c.bytes, "a copy", c.here);
  if (first % c.bytes != 0 || reinterpret_cast<uintptr_t>(c.from) % static_cast<uintptr_t>(c.bytes) != 0)
    mistake(cat("a copy of ", c.bytes, " bytes to offset ", first, " from ", reinterpret_cast<uintptr_t>(c.from) % 16,
                " bytes behind a multiple of 16: both must be multiples of its size"),
            c.here);
  if (c.from_bytes < 0 || c.from_bytes > c.bytes)
    mistake(cat("a copy of ", c.from_bytes, " bytes into a piece of ", c.bytes), c.here);
  check_unread(b, first, c.bytes, "a copy", c.here);
  if (c.from_bytes) check_memory(c.from, c.from_bytes, "a copy", c.here);
  if (b.coming.empty()) b.coming.assign(static_cast<size_t>(b.shared_bytes / 4 + 1), Here{"", 0});
  mark_coming(b, first, c.bytes, c.here);
  std::memset(b.block.shared + first, 0xff, static_cast<size_t>(c.bytes));
  f.pieces.list.push_back({first, c.from, c.bytes, c.from_bytes});
  ++f.pieces.asked;
}

void pieces_commit() {
  Pieces& p = cluster().here->pieces;
  p.groups.push_back(p.asked);
}

void pieces_wait(int left) {
  Fibre& f = *cluster().here;
  while (f.pieces.groups.size() > static_cast<size_t>(left)) {
    bring_pieces(f, f.pieces.groups.front());
    f.pieces.groups.pop_front();
  }
}

void pieces_arrive(unsigned long long* barrier, Here here) {
  Fibre& f = *cluster().here;
  PendingCopy c;
  c.kind = PendingCopy::Kind::arrive;
  c.block = f.block, c.fibre = &f, c.pieces = f.pieces.asked, c.here = here;
  c.barrier = shared_place(*f.block, barrier, 8, "a barrier", here);
  barrier_at(*f.block, c.barrier, here);
  cluster().copies.push_back(c);
}

}  // namespace

void bring_pieces(Fibre& f, size_t asked) {
  Pieces& p = f.pieces;
  for (size_t done = p.asked - p.list.size(); done < asked; ++done) {
    Pieces::One one = p.list.front();
    p.list.pop_front();
    char* to = f.block->block.shared + one.first;
    std::memset(to, 0, static_cast<size_t>(one.bytes));
    if (one.from_bytes) std::memcpy(to, one.from, static_cast<size_t>(one.from_bytes));
    mark_coming(*f.block, one.first, one.bytes, Here{"", 0});
  }
}

void add_pieces(tsr_emulated::World& w) {
  w.misaligned = misaligned;
  w.copy_piece = copy_piece;
  w.pieces_commit = pieces_commit;
  w.pieces_wait = pieces_wait;
  w.pieces_arrive = pieces_arrive;
}

}  // namespace tsr::emulator
