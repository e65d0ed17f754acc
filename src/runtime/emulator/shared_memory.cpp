// SPDX-License-Identifier: Apache-2.0
// Shared memory of emulated blocks: who may still read a place, who has yet to write it, and what the units beside the
// threads see of it.
#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "base/error.hpp"
#include "base/hash.hpp"
#include "runtime/emulator/cluster.hpp"

namespace tsr::emulator {
namespace {

constexpr char kPoison = static_cast<char>(0xff);
constexpr int64_t kChunk = 16;

bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) { return a < b + b_bytes && b < a + a_bytes; }

// Which copy of a thread's own is still to bring one of these bytes, if any.
const Here* piece_coming(const BlockState& b, int64_t first, int64_t bytes) {
  if (b.coming.empty()) return nullptr;
  for (int64_t i = first / 4; i * 4 < first + bytes; ++i)
    if (b.coming[static_cast<size_t>(i)].line) return &b.coming[static_cast<size_t>(i)];
  return nullptr;
}

std::string asked_at(Here h) { return cat("asked for at ", h.file, ":", h.line); }

}  // namespace

uint64_t hash_of(const BlockState& b, int64_t first, int64_t bytes) {
  return hash_text({b.block.shared + first, static_cast<size_t>(bytes)});
}

char* fenced_memory(BlockState& b) {
  if (b.fenced.empty()) {
    auto bytes = static_cast<size_t>(b.shared_bytes);
    b.fenced.assign(bytes, kPoison);  // as it was before any store
    b.swizzles.assign(bytes / kChunk + 1, 0);
  }
  return b.fenced.data();
}

void poison(BlockState& b, int64_t first, int64_t bytes) {
  std::memset(fenced_memory(b) + first, kPoison, static_cast<size_t>(bytes));
  std::memset(b.block.shared + first, kPoison, static_cast<size_t>(bytes));
}

void unit_wrote(BlockState& b, int64_t first, int64_t bytes, int swizzle) {
  std::memcpy(fenced_memory(b) + first, b.block.shared + first, static_cast<size_t>(bytes));
  std::fill_n(b.swizzles.begin() + first / kChunk, bytes / kChunk, static_cast<uint8_t>(swizzle + 1));
}

void fence_stores(BlockState& b) {
  char* seen = fenced_memory(b);
  const char* now = b.block.shared;
  // Each thread asks for this, and little is new: large pieces are passed over at once.
  constexpr int64_t kPiece = 2048;
  for (int64_t piece = 0; piece < b.shared_bytes; piece += kPiece) {
    int64_t end = std::min(piece + kPiece, b.shared_bytes);
    if (std::memcmp(seen + piece, now + piece, static_cast<size_t>(end - piece)) == 0) continue;
    for (int64_t at = piece; at < end; at += kChunk) {
      auto bytes = static_cast<size_t>(std::min(kChunk, end - at));
      if (std::memcmp(seen + at, now + at, bytes) == 0) continue;
      std::memcpy(seen + at, now + at, bytes);
      b.swizzles[static_cast<size_t>(at / kChunk)] = 0;  // the threads may lay it out as they like
    }
  }
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
  auto complain = [&](const std::string& whose) {
    mistake(cat(what, " overwrites ", bytes, " bytes of shared memory at offset ", first, ", which ", whose), where);
  };
  for (const Reading& r : cluster().readings)
    if (r.block == &b && overlap(r.first, r.bytes, first, bytes))
      complain(cat("the work ", asked_at(r.here), " may still read"));
  for (const PendingCopy& c : cluster().copies)
    if ((c.block == &b && overlap(c.first, c.bytes, first, bytes)) ||
        (c.target == &b && overlap(c.target_first, c.bytes, first, bytes)))
      complain(cat("the copy ", asked_at(c.here), " has not finished with"));
  if (const Here* h = piece_coming(b, first, bytes)) complain(cat("the copy ", asked_at(*h), " has not finished with"));
}

void check_came(const BlockState& b, int64_t first, int64_t bytes, const char* what, Here where) {
  const Here* h = piece_coming(b, first, bytes);
  for (const PendingCopy& c : cluster().copies)
    if (!h && c.written() == &b && overlap(c.written_first(), c.bytes, first, bytes)) h = &c.here;
  if (h)
    mistake(
        cat(what, " reads shared memory at offset ", first, ", which the copy ", asked_at(*h), " has not brought yet"),
        where);
}

void check_memory([[maybe_unused]] const void* p, [[maybe_unused]] int64_t bytes, [[maybe_unused]] const char* what,
                  [[maybe_unused]] Here where) {
#if defined(__SANITIZE_ADDRESS__)
  const void* bad = __asan_region_is_poisoned(const_cast<void*>(p), static_cast<size_t>(bytes));
  if (bad)
    mistake(cat(what, " of ", bytes, " bytes of memory reaches beyond the end of a tensor, from byte ",
                static_cast<const char*>(bad) - static_cast<const char*>(p), " on"),
            where);
#endif
}

void check_fenced(BlockState& b, int64_t first, int64_t bytes, const char* what, Here where) {
  if (std::memcmp(fenced_memory(b) + first, b.block.shared + first, static_cast<size_t>(bytes)) != 0)
    mistake(
        cat(what, " reads shared memory at offset ", first, " that ordinary stores wrote, without fence_for_copies"),
        where);
}

}  // namespace tsr::emulator
