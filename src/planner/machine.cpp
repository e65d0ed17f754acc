// SPDX-License-Identifier: Apache-2.0
#include "planner/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include "base/amx.hpp"
#include "base/cache_folder.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/isa.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "graph/text.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tsr {

namespace generic {
double multiply_add(int64_t rounds, float* sink);
}
namespace avx2 {
double multiply_add(int64_t rounds, float* sink);
}
namespace avx512 {
double multiply_add(int64_t rounds, float* sink);
}

namespace {

double seconds_of(const std::function<void()>& work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The best of a few tries: other work on the machine only ever makes a try slower.
double best_of(int tries, const std::function<void()>& work) {
  double best = seconds_of(work);
  for (int i = 1; i < tries; ++i) best = std::min(best, seconds_of(work));
  return best;
}

double flops() {
  auto multiply_add = generic::multiply_add;
#if defined(__x86_64__)
  if (best_isa() == Isa::avx2) multiply_add = avx2::multiply_add;
  if (best_isa() == Isa::avx512) multiply_add = avx512::multiply_add;
#endif
  volatile float one = 1e-3f;  // the compiler must not know the value
  float sink = one;
  double done = 0;
  double seconds = best_of(10, [&] { done = multiply_add(20000, &sink); });
  one = sink;
  return done / seconds;
}

#if defined(__x86_64__)
// Dot products of bf16 pairs, where the processor has them.
__attribute__((target("avx512f,avx512bf16"))) double dot_pairs(int64_t rounds, float* sink) {
  constexpr int kChains = 24;
  __m512 sum[kChains];
  for (int c = 0; c < kChains; ++c) sum[c] = _mm512_set1_ps(*sink * static_cast<float>(c));
  __m512bh a = _mm512_cvtne2ps_pbh(_mm512_set1_ps(*sink), _mm512_set1_ps(*sink));
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 24
    for (__m512& s : sum) s = _mm512_dpbf16_ps(s, a, a);
  for (__m512 s : sum) *sink += s[0];
  return 4.0 * static_cast<double>(rounds) * kChains * 16;
}
#endif

double narrow_flops(double wide) {
#if defined(__x86_64__)
  if (best_isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16")) {
    volatile float one = 1e-3f;
    float sink = one;
    double done = 0;
    double seconds = best_of(10, [&] { done = dot_pairs(20000, &sink); });
    one = sink;
    return std::max(wide, done / seconds);
  }
#endif
  return wide;
}

double tile_flops() {
  if (!amx_works()) return 0;
  double done = 0;
  double seconds = best_of(10, [&] { done = amx_multiply_adds(20000); });
  return done / seconds;
}

// Larger than the last-level cache of most machines, small enough to be measured in a moment.
constexpr size_t kCopyBytes = size_t{48} << 20;

void measure_copy(Machine& m) {
  std::unique_ptr<char[]> from(new char[kCopyBytes]), to(new char[kCopyBytes]);
  std::memset(from.get(), 1, kCopyBytes);
  std::memset(to.get(), 1, kCopyBytes);
  auto copy = [&](int threads) {
    auto each = static_cast<int64_t>(kCopyBytes) / threads + 1;
    parallel_for(static_cast<int64_t>(kCopyBytes), each, threads, [&](int64_t first, int64_t last, int) {
      std::memcpy(to.get() + first, from.get() + first, static_cast<size_t>(last - first));
    });
  };
  double bytes = 2.0 * kCopyBytes;
  m.copy_one = bytes / best_of(3, [&] { copy(1); });
  m.copy_all = std::max(m.copy_one, bytes / best_of(16, [&] { copy(thread_count()); }));
}

Machine measure(const std::string& name) {
  Machine m;
  m.name = name;
  m.flops_one = flops();
  m.narrow_flops_one = narrow_flops(m.flops_one);
  m.tile_flops_one = tile_flops();
  measure_copy(m);
  int threads = thread_count();
  constexpr int kLoops = 10;
  m.loop_seconds = best_of(30,
                           [&] {
                             for (int i = 0; i < kLoops; ++i)
                               parallel_for(threads, 1, threads, [](int64_t, int64_t, int) {});
                           }) /
                   kLoops;
  return m;
}

std::string machine_name() {
  std::string model = "unknown processor", line;
  std::ifstream in("/proc/cpuinfo");
  while (std::getline(in, line))
    if (line.rfind("model name", 0) == 0) {
      model = line.substr(std::min(line.find(':') + 2, line.size()));
      break;
    }
  static constexpr const char* kIsa[] = {"generic", "avx2", "avx512"};
  return cat(model, ", ", kIsa[static_cast<int>(best_isa())], amx_granted() ? ", amx, " : ", ", thread_count(),
             " threads");
}

}  // namespace

std::string save_machine(const Machine& m) {
  std::ostringstream s;
  s.precision(17);
  s << m.name << "\n"
    << m.copy_one << " " << m.copy_all << " " << m.flops_one << " " << m.narrow_flops_one << " " << m.tile_flops_one
    << " " << m.loop_seconds << "\n";
  return seal("machine", s.str());
}

Machine load_machine(const std::string& text, const std::string& name) {
  std::istringstream in(unseal("machine", text));
  Machine m;
  std::getline(in, m.name);
  if (m.name != name) fail(Status::corrupt_data, "machine constants: measured on '", m.name, "', this is '", name, "'");
  in >> m.copy_one >> m.copy_all >> m.flops_one >> m.narrow_flops_one >> m.tile_flops_one >> m.loop_seconds;
  if (!in || m.copy_one <= 0 || m.copy_all <= 0 || m.flops_one <= 0 || m.narrow_flops_one <= 0 ||
      m.tile_flops_one < 0 || m.loop_seconds <= 0)
    fail(Status::corrupt_data, "machine constants: a value is missing or not positive");
  return m;
}

const Machine& this_machine() {
  static const Machine machine = [] {
    std::string name = machine_name();
    Machine m;
    auto load = [&](const std::string& text) { m = load_machine(text, name); };
    recall(cat("machine-", hex(hash_text(name))), load, [&] {
      m = measure(name);
      log_line(3, cat("measured ", name, ": copy ", m.copy_all * 1e-9, " GB/s, f32 ", m.flops_one * 1e-9,
                      " GFLOP/s a thread"));
      return save_machine(m);
    });
    // A thread alone copies at least as fast as its share of all: the measurements may say otherwise on a busy machine,
    // and then plans would be made for another bandwidth than the one that is shown.
    m.copy_one = std::max(m.copy_one, m.copy_all / thread_count());
    return m;
  }();
  return machine;
}

}  // namespace tsr
