// SPDX-License-Identifier: Apache-2.0
#include "base/amx.hpp"

#include <chrono>
#include <cstring>

#include "base/child_process.hpp"
#include "base/error.hpp"
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tsr {

#if defined(__x86_64__) && defined(__linux__)
namespace {

bool processor_has_tiles() {
  constexpr unsigned kFeatures = 7, kBf16 = 1u << 22, kTiles = 1u << 24, kBytes = 1u << 25;  // of edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(kFeatures, 0, &a, &b, &c, &d) != 0 && (d & kBf16) && (d & kTiles) && (d & kBytes);
}

// The system saves tiles only for processes that asked.
bool ask_system() {
  constexpr long kAskForState = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

struct alignas(64) Config {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

constexpr int kElements = 16 * 32;  // of bf16, in a tile

// The first element of four sums of `rounds` products of a tile of `value` with another.
[[gnu::target("amx-tile,amx-bf16")]] float multiply_tiles(int64_t rounds, uint16_t value) {
  alignas(64) uint16_t in[kElements];
  alignas(64) float out[16 * 16];
  for (uint16_t& x : in) x = value;
  Config config;
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, in, 64);
  _tile_loadd(5, in, 64);
  for (int64_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, out, 64);
  _tile_release();
  return out[0];
}

constexpr uint16_t kTwo = 0x4000;  // in bf16

}  // namespace

bool amx_granted() {
  static const bool granted = processor_has_tiles() && ask_system();
  return granted;
}

bool amx_works() {
  if (!amx_granted()) return false;
  constexpr int64_t kRounds = 3;
  constexpr float kSum = 32 * 2 * 2 * kRounds;
  constexpr std::chrono::seconds kLimit{5};
  auto work = [] {
    if (multiply_tiles(kRounds, kTwo) != kSum) fail(Status::internal_error, "tiles multiply wrongly");
  };
  return try_in_child(work, kLimit).fate == Fate::survived;
}

double amx_multiply_adds(int64_t rounds) {
  multiply_tiles(rounds, kTwo);
  return 4 * 2.0 * 16 * 16 * 32 * static_cast<double>(rounds);
}
#else
bool amx_granted() { return false; }
bool amx_works() { return false; }
double amx_multiply_adds(int64_t) { fail(Status::internal_error, "there are no tiles on this processor"); }
#endif

}  // namespace tsr
