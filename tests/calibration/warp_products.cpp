// SPDX-License-Identifier: Apache-2.0
// Products of warps, for all types: whole numbers in all places, products of special numbers, sums that are hard to
// add.
#include <cstring>

#include "micro_kernel.hpp"
#include "sums.hpp"

namespace tsr::calibration {
namespace {

struct Kind {
  const char* call;
  DType a, b, sum;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {{"mma<f16>", DType::f16, DType::f16, DType::f32},
                                        {"mma<bf16>", DType::bf16, DType::bf16, DType::f32},
                                        {"mma<tf32>", DType::f32, DType::f32, DType::f32},
                                        {"mma_half", DType::f16, DType::f16, DType::f16},
                                        {"mma<e4m3>", DType::e4m3, DType::e4m3, DType::f32},
                                        {"mma<e4m3, e5m2>", DType::e4m3, DType::e5m2, DType::f32},
                                        {"mma<e5m2, e4m3>", DType::e5m2, DType::e4m3, DType::f32},
                                        {"mma<e5m2>", DType::e5m2, DType::e5m2, DType::f32},
                                        {"mma<i8>", DType::i8, DType::i8, DType::i32},
                                        {"mma<i8, u8>", DType::i8, DType::u8, DType::i32},
                                        {"mma<u8, i8>", DType::u8, DType::i8, DType::i32},
                                        {"mma<u8>", DType::u8, DType::u8, DType::i32}};
  return all;
}

// Sums of a lane: four words, or two.
std::string sums(const Kind& k, const std::string& from) {
  std::string type = k.sum == DType::f32 ? "float" : k.sum == DType::i32 ? "i32" : "u32";
  std::string count = k.sum == DType::f16 ? "2" : "4";
  return type + " d[" + count + "]; for (int i = 0; i < " + count + "; ++i) d[i] = *reinterpret_cast<const " + type +
         "*>(" + from + " + i);";
}
std::string store_sums(const Kind& k, const std::string& to) {
  std::string count = k.sum == DType::f16 ? "2" : "4";
  return "for (int i = 0; i < " + count + "; ++i) (" + to + ")[i] = *reinterpret_cast<const u32*>(&d[i]);";
}

// A lane's registers: 4 of the left operand, 2 of the right one, 4 of the sums.
Program by_registers() {
  std::string body =
      "u32 x[4], y[2]; const u32* in = a.in + 10 * t;\n"
      "for (int i = 0; i < 4; ++i) x[i] = in[i];\nfor (int i = 0; i < 2; ++i) y[i] = in[4 + i];\n";
  for (size_t i = 0; i < kinds().size(); ++i)
    body += cat("if (a.p[0] == ", i, ") { ", sums(kinds()[i], "in + 6"), kinds()[i].call, "(d, x, y); ",
                store_sums(kinds()[i], "a.out + 4 * t"), " }\n");
  return program(body);
}

// 64 rows of 32 bytes, 8 columns behind them, then what is there before each row; the first column's sums.
Program by_rows() {
  std::string body =
      "for (int i = t; i < 576; i += 32) reinterpret_cast<u32*>(s)[i] = a.in[i];\n__syncthreads();\n"
      "u32 x[4], y[2]; matrix_load(y, s + 2048 + t % 8 * 32 + t / 8 % 2 * 16);\n"
      "for (int part = 0; part < 4; ++part) {\nmatrix_load(x, s + part * 512 + t % 16 * 32 + t / 16 * 16);\n"
      "const u32* before = a.in + 576 + part * 16 + t / 4;\n";
  for (size_t i = 0; i < kinds().size(); ++i) {
    const Kind& k = kinds()[i];
    if (k.sum == DType::i32) continue;
    bool half = k.sum == DType::f16;
    body += cat("if (a.p[0] == ", i, ") { ", half ? "u32 d[2] = {" : "float d[4] = {",
                half ? "before[0], before[8]};" : "__uint_as_float(before[0]), 0, __uint_as_float(before[8]), 0};",
                k.call, "(d, x, y); if (t % 4 == 0) for (int i = 0; i < 2; ++i) a.out[part * 16 + t / 4 + 8 * i] = ",
                half ? "d[i] & 0xffff" : "__float_as_uint(d[2 * i])", "; }\n");
  }
  return program(body + "}");
}

MicroKernel whole(const Kind& k, int number) {
  MicroKernel m;
  m.name = cat("mma/", k.call, "/whole");
  m.program = by_registers(), m.p[0] = number;
  m.in.resize(320), m.out.resize(128);
  Random r(m.name);
  for (int lane = 0; lane < 32; ++lane) {
    uint32_t* at = &m.in[static_cast<size_t>(lane) * 10];
    fill_exact(k.a, at, 0, 128 / info(k.a).bits, r);
    fill_exact(k.b, at + 4, 0, 64 / info(k.b).bits, r);
    fill_exact(k.sum, at + 6, 0, 4, r);
  }
  return m;
}

// One term alone of each sum: all special numbers by all others.
MicroKernel special(const Kind& k, int number) {
  MicroKernel m = whole(k, number);
  m.name = cat("mma/", k.call, "/special");
  m.in.assign(320, 0);
  // Element 0 of register 0 (and 1: the rows below) of lanes 1, 5, 9 ...: one place of the inner dimension.
  for (int row = 0; row < 16; ++row)
    m.in[static_cast<size_t>((row % 8 * 4 + 1) * 10 + row / 8)] = special_bits(k.a, row);
  for (int column = 0; column < 8; ++column)
    m.in[static_cast<size_t>((column * 4 + 1) * 10 + 4)] = special_bits(k.b, column * 2 + number % 2);
  return m;
}

MicroKernel hard(const Kind& k, int number) {
  MicroKernel m;
  m.name = cat("mma/", k.call, "/sums");
  m.program = by_rows(), m.p[0] = number, m.all_words = true;
  m.in.resize(640), m.out.resize(kSumRows);
  int depth = 256 / info(k.a).bits;
  HardSums h = hard_sums(m.name, k.a, k.b, k.sum, depth);
  for (size_t i = 0; i < h.a.size(); ++i) store(k.a, m.in.data(), static_cast<int64_t>(i), h.a[i]);
  for (int column = 0; column < 8; ++column)
    for (int i = 0; i < depth; ++i) store(k.b, m.in.data() + 512, column * depth + i, h.b[static_cast<size_t>(i)]);
  for (int row = 0; row < kSumRows; ++row) store(k.sum, m.in.data() + 576 + row, 0, h.before[static_cast<size_t>(row)]);
  return m;
}

}  // namespace

std::vector<MicroKernel> warp_products() {
  std::vector<MicroKernel> all;
  for (size_t i = 0; i < kinds().size(); ++i) {
    const Kind& k = kinds()[i];
    int number = static_cast<int>(i);
    all.push_back(whole(k, number));
    if (k.sum == DType::i32) continue;
    all.push_back(special(k, number));
    all.push_back(hard(k, number));
  }
  return all;
}

}  // namespace tsr::calibration
