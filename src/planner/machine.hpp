// SPDX-License-Identifier: Apache-2.0
// What this machine's processor can do, measured once and kept in the cache folder: the constants of the cost model,
// and the limits that explain and the benchmarks compare with.
#pragma once

#include <string>

namespace tsr {

struct Machine {
  std::string name;                   // processor, instruction set and cores
  double copy_one = 0, copy_all = 0;  // bytes read and written a second by a copy: one thread, all cores
  // Multiply-adds of one thread, two operations each: f32, 16-bit ones in vectors, and those in the tiles of AMX (0:
  // there are none, or they do not work).
  double flops_one = 0, narrow_flops_one = 0, tile_flops_one = 0;
  double loop_seconds = 0;  // to start and finish a parallel loop on all cores
};

const Machine& this_machine();

// For tests: the file form, and what it rejects.
std::string save_machine(const Machine& m);
Machine load_machine(const std::string& text, const std::string& name);

}  // namespace tsr
