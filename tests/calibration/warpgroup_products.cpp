// SPDX-License-Identifier: Apache-2.0
// Products of warpgroups, for all types, operands in shared memory and in registers, and all layouts. Shared memory is
// full of numbers: which of them an operand's description finds is what is compared.
#include <cstring>

#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "micro_kernel.hpp"
#include "sums.hpp"

namespace tsr::calibration {
namespace {

using cuda::WgmmaShape;

std::vector<WgmmaShape> types() {
  std::vector<WgmmaShape> all;
  auto add = [&](DType a, DType b, DType sum) { all.push_back({.a = a, .b = b, .sum = sum}); };
  add(DType::f16, DType::f16, DType::f32);
  add(DType::f16, DType::f16, DType::f16);
  add(DType::bf16, DType::bf16, DType::f32);
  add(DType::f32, DType::f32, DType::f32);
  for (DType a : {DType::e4m3, DType::e5m2})
    for (DType b : {DType::e4m3, DType::e5m2}) add(a, b, DType::f32);
  add(DType::e4m3, DType::e5m2, DType::f16);
  for (DType a : {DType::i8, DType::u8})
    for (DType b : {DType::i8, DType::u8}) add(a, b, DType::i32);
  return all;
}

std::string type_name(const WgmmaShape& s) {
  return cat(s.a == DType::f32 ? std::string("tf32") : std::string(name(s.a)), "-",
             s.b == DType::f32 ? std::string("tf32") : std::string(name(s.b)), "-", name(s.sum));
}

// What of a shape is compiled: columns, where the left operand is, and the directions.
std::vector<WgmmaShape> shapes(const WgmmaShape& type) {
  std::vector<WgmmaShape> all;
  for (int columns : {8, 64, 256})
    for (bool registers : {false, true})
      for (int across = 0; across < 4; ++across) {
        WgmmaShape s = type;
        s.columns = columns, s.a_in_registers = registers, s.a_across = across & 1, s.b_across = across & 2;
        bool wanted = across == 0 ? columns != 256 || !registers : columns == 64;
        if (wanted && cuda::check_wgmma(s)) all.push_back(s);
      }
  return all;
}

// p: the shape; of each operand the offset, both distances and the swizzle. In: 64 kB of shared memory, then for each
// thread 4 registers of the left operand and what its sums are before.
Program type_program(const std::vector<WgmmaShape>& list) {
  std::string before, body =
                          "for (int i = t; i < 16384; i += 128) reinterpret_cast<u32*>(s)[i] = a.in[i];\n"
                          "fence_for_copies(); __syncthreads();\nu32 x[4];\n"
                          "for (int i = 0; i < 4; ++i) x[i] = a.in[16384 + 4 * t + i];\n"
                          "u64 l = operand_descriptor(s + a.p[1], a.p[2], a.p[3], Swizzle(a.p[4]));\n"
                          "u64 r = operand_descriptor(s + a.p[5], a.p[6], a.p[7], Swizzle(a.p[8]));\n";
  for (size_t i = 0; i < list.size(); ++i) {
    std::string product = cat("P", i);
    before += cuda::wgmma_text(product, list[i]);
    body += cat("if (a.p[0] == ", i, ") { ", product, "::Sums d; constexpr int n = sizeof d / 4;\n",
                "const u32* in = a.in + 16384 + 512 + n * t; for (int i = 0; i < n; ++i) memcpy_word(d[i], in[i]);\n",
                "wgmma_fence(); ", product, "::run(d, ", list[i].a_in_registers ? "x" : "l",
                ", r, true); wgmma_commit(); wgmma_wait<0>();\n",
                "for (int i = 0; i < n; ++i) memcpy_word(a.out[n * t + i], d[i]); }\n");
  }
  before +=
      "namespace tsr::dev {\ntemplate <class A, class B> void memcpy_word(A& to, const B& from) {\n"
      "static_assert(sizeof(A) == 4 && sizeof(B) == 4); to = *reinterpret_cast<const A*>(&from); }\n}\n";
  return program(body, before);
}

struct Layout {
  const char* name;
  int offset, leap, step;
  dev::Swizzle swizzle;
};

std::vector<Layout> layouts(bool across) {
  using S = dev::Swizzle;
  if (across)
    return {{"none", 0, 128, 256, S::none},
            {"32", 0, 512, 256, S::bytes_32},
            {"64", 0, 1024, 512, S::bytes_64},
            {"128", 0, 2048, 1024, S::bytes_128}};
  return {{"none", 0, 128, 256, S::none},        {"none-wide", 0, 4096, 128, S::none},
          {"32", 0, 16, 256, S::bytes_32},       {"64", 0, 16, 512, S::bytes_64},
          {"64+32", 32, 16, 512, S::bytes_64},   {"128", 0, 16, 1024, S::bytes_128},
          {"128+64", 64, 16, 1024, S::bytes_128}};
}

size_t sum_words(const WgmmaShape& s) {
  return static_cast<size_t>(s.sum == DType::f16 ? s.columns / 4 : s.columns / 2);
}

constexpr size_t kImage = 16384, kRegisters = 512, kThreads = 128;

void add_layouts(std::vector<MicroKernel>& all, const Program& p, const std::vector<WgmmaShape>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const WgmmaShape& s = list[i];
    for (const Layout& l : layouts(s.a_across))
      for (const Layout& r : layouts(s.b_across)) {
        // All of one against the same of the other, where both are in shared memory; and some mixtures.
        bool same = std::string(l.name) == r.name, first = std::string(l.name) == "none";
        if (s.a_in_registers ? !first : !same && !(first && s.columns == 64)) continue;
        MicroKernel m;
        m.name = cat("wgmma/", type_name(s), "/n", s.columns, s.a_in_registers ? "/registers" : cat("/", l.name),
                     s.a_across ? "-across" : "", "/", r.name, s.b_across ? "-across" : "");
        m.program = p, m.threads = kThreads;
        m.p = {static_cast<int>(i),         l.offset,         l.leap, l.step,
               static_cast<int>(l.swizzle), 32768 + r.offset, r.leap, r.step,
               static_cast<int>(r.swizzle)};
        m.in.resize(kImage + kRegisters + kThreads * sum_words(s)), m.out.resize(kThreads * sum_words(s));
        Random random(m.name);
        fill_exact(s.a, m.in.data(), 0, 32768 * 8 / info(s.a).bits, random);
        fill_exact(s.b, m.in.data() + kImage / 2, 0, 32768 * 8 / info(s.b).bits, random);
        fill_exact(s.a, m.in.data() + kImage, 0, kRegisters * 32 / info(s.a).bits, random);
        fill_exact(s.sum, m.in.data() + kImage + kRegisters, 0,
                   static_cast<int64_t>(m.out.size()) * 32 / info(s.sum).bits, random);
        all.push_back(std::move(m));
      }
  }
}

// In the layout "none" of both operands.
int64_t place_of(const WgmmaShape& s, int row, int k) {
  int each = 128 / info(s.a).bits;
  return int64_t{row / 8 * 256 + k / each * 128 + row % 8 * 16} * 8 / info(s.a).bits + k % each;
}

// One term alone of each sum: special numbers by others; `odd`: which columns' half of them.
MicroKernel special(const Program& p, const WgmmaShape& s, int odd) {
  MicroKernel m;
  m.name = cat("wgmma/", type_name(s), "/special", odd);
  m.program = p, m.threads = kThreads;
  m.p = {0, 0, 128, 256, 0, 32768, 128, 256, 0};
  m.in.resize(kImage + kRegisters + kThreads * sum_words(s)), m.out.resize(kThreads * sum_words(s));
  auto put = [&](DType t, uint32_t* image, int row, uint32_t bits) {
    auto bytes = static_cast<size_t>(info(t).bits / 8);
    std::memcpy(reinterpret_cast<char*>(image) + place_of(s, row, 1) * static_cast<int64_t>(bytes), &bits, bytes);
  };
  for (int row = 0; row < kSumRows; ++row) put(s.a, m.in.data(), row, special_bits(s.a, row % 16));
  for (int column = 0; column < s.columns; ++column)
    put(s.b, m.in.data() + kImage / 2, column, special_bits(s.b, column * 2 + odd));
  return m;
}

// The result has equal columns.
MicroKernel hard(const Program& p, const WgmmaShape& s) {
  MicroKernel m;
  m.name = cat("wgmma/", type_name(s), "/sums");
  m.program = p, m.threads = kThreads, m.all_words = true;
  m.p = {0, 0, 128, 256, 0, 32768, 128, 256, 0};
  size_t words = sum_words(s);
  m.in.resize(kImage + kRegisters + kThreads * words), m.out.resize(kThreads * words);
  int depth = cuda::wgmma_depth(s);
  HardSums h = hard_sums(m.name, s.a, s.b, s.sum, depth);
  for (int row = 0; row < kSumRows; ++row)
    for (int k = 0; k < depth; ++k) {
      store(s.a, m.in.data(), place_of(s, row, k), h.a[static_cast<size_t>(row * depth + k)]);
      if (row < s.columns) store(s.b, m.in.data() + kImage / 2, place_of(s, row, k), h.b[static_cast<size_t>(k)]);
    }
  for (int row = 0; row < kSumRows; ++row)
    for (int column = 0; column < s.columns; ++column) {
      int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2, slot = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
      store(s.sum, m.in.data() + kImage + kRegisters,
            static_cast<int64_t>(thread) * static_cast<int64_t>(words) * 32 / info(s.sum).bits + slot,
            h.before[static_cast<size_t>(row)]);
    }
  return m;
}

}  // namespace

std::vector<MicroKernel> warpgroup_products() {
  std::vector<MicroKernel> all;
  for (const WgmmaShape& type : types()) {
    std::vector<WgmmaShape> list = shapes(type);  // 8 columns, from shared memory, is the first
    Program p = type_program(list);
    add_layouts(all, p, list);
    if (type.sum == DType::i32) continue;
    all.push_back(hard(p, list[0]));
    for (int odd : {0, 1}) all.push_back(special(p, list[0], odd));
  }
  return all;
}

}  // namespace tsr::calibration
