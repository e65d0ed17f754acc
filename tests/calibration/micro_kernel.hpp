// SPDX-License-Identifier: Apache-2.0
// Micro-kernels: one instruction each, driven with fixed numbers, that leave its result. A GPU and the emulator must
// leave the same.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.hpp"
#include "planner/device.hpp"
#include "runtime/kernel.hpp"
#include "runtime/tensor_map.hpp"

namespace tsr::calibration {

using Words = std::vector<uint32_t>;

// What kernels see as `a`.
struct Args {
  dev::TensorMap map;
  const void* in;
  void* out;
  int p[12];  // what is not worth a kernel of its own
};

struct MicroKernel {
  std::string name;  // family/instruction/what differs
  Program program;
  int threads = 32, cluster = 1;
  Words in;
  Words out;  // before it ran
  std::array<int, 12> p{};
  std::optional<TensorBox> box;  // of `in`, or of `out` where the kernel stores
  bool box_of_out = false;
  bool all_words = false;  // stand in the record, not only the first
};

// The body sees `a`, `s` (64 kB of shared memory, then barriers `b`) and `t`, the thread.
Program program(const std::string& body, const std::string& before = "");

// Fixed numbers: the same for the same name.
class Random {
 public:
  explicit Random(const std::string& name);
  uint32_t word();
  int below(int n) { return static_cast<int>(word() % static_cast<uint32_t>(n)); }

 private:
  uint64_t state_;
};
Words random_words(const std::string& name, size_t count);
// Numbers of which sums of products are exact: small whole ones of floats, any of integers, whose sums wrap around.
void fill_exact(DType t, void* data, int64_t first, int64_t count, Random& r);

std::vector<MicroKernel> warp_products();
std::vector<MicroKernel> warpgroup_products();
std::vector<MicroKernel> moves();
std::vector<MicroKernel> boxes();
// All of them; those whose names begin with `prefix`.
std::vector<MicroKernel> micro_kernels(const std::string& prefix = "");

Words run(const MicroKernel& k, const Device& d);

}  // namespace tsr::calibration
