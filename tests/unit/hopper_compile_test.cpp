// SPDX-License-Identifier: Apache-2.0
// NVIDIA's compiler takes every wrapper of an instruction, and products of a warpgroup in all types.
#include <gtest/gtest.h>

#include "device_body.hpp"
#include "engines/cuda/toolkit/wgmma_text.hpp"
#include "expect_error.hpp"
#include "runtime/jit/nvrtc.hpp"

namespace tsr {
namespace {

void expect_compiles(const Program& p, const char* device) {
  auto kernel = get_kernel(p, *find_device_record(device));
  EXPECT_EQ(kernel->info().spill_bytes, 0) << kernel->info().log;
  EXPECT_EQ(kernel->info().log.find("serializ"), std::string::npos) << kernel->info().log;
}

// From compute capability 8.0 on.
const char* const kAmpere =
    "u32 x[4], y[2], z[1]; matrix_load(x, s + 16 * t); matrix_load<true>(y, s + 16 * t); matrix_load(z, s + 16 * t);\n"
    "matrix_load<true>(x, s + 512 + 16 * t); matrix_load(y, s + 512 + 16 * t); matrix_load<true>(z, s + 512 + 16 * "
    "t);\n"
    "piece_load<4>(s + 4 * t, a.in + t); piece_load<8>(s + 8 * t, a.in + 2 * t, 4); pieces_commit();\n"
    "piece_load<16>(s + 16 * t, a.in + 4 * t, int(a.in[0])); pieces_commit(); pieces_arrive(b); pieces_wait<1>();\n"
    "float d[4] = {}; mma<f16>(d, x, y); mma<bf16>(d, x, y); mma<tf32>(d, x, y); u32 h[2] = {z[0], 0}; mma_half(h, x, "
    "y);\n"
    "i32 i[4] = {}; mma<i8>(i, x, y); mma<i8, u8>(i, x, y); mma<u8, i8>(i, x, y); mma<u8>(i, x, y);\n"
    "a.out[t] = __float_as_uint(d[0] + d[1] + d[2] + d[3]) + h[0] + h[1] + i[0] + i[1] + i[2] + i[3];";

const char* const kHopper =
    "wait_for_previous(); u32 x[4], y[2], z[1] = {1}; matrix_load(x, s); matrix_load(y, s); float d[4] = {};\n"
    "mma<e4m3>(d, x, y); mma<e4m3, e5m2>(d, x, y); mma<e5m2, e4m3>(d, x, y); mma<e5m2>(d, x, y); a.out[t] = "
    "__float_as_uint(d[0]);\n"
    "matrix_store(s, x); matrix_store<true>(s, x); matrix_store(s, y); matrix_store<true>(s, y); matrix_store(s, z);"
    "matrix_store<true>(s, z); fence_for_copies();\n"
    "barrier_init(b, 1); barriers_ready(); barrier_arrive_many(b, 2); barrier_announce(b, 3); barrier_expect_at(b, 1, "
    "4);"
    "if (barrier_passed(b, 0)) barrier_end(b);\n"
    "bulk_store(a.out, s, 16); bulk_add(reinterpret_cast<float*>(a.out), reinterpret_cast<float*>(s), 16);"
    "bulk_add(reinterpret_cast<f16*>(a.out), reinterpret_cast<f16*>(s), 16);"
    "bulk_add(reinterpret_cast<bf16*>(a.out), reinterpret_cast<bf16*>(s), 16); tensor_add<2>(&a.map, {0, 0}, s);"
    "tensor_add<3>(&a.map, {0, 0, 0}, s); stores_commit(); stores_wait<0>();\n"
    "u32* p = reinterpret_cast<u32*>(s); remote_store(p, 1, remote_load(p + 1, 1)); remote_copy(s, s + 16, 16, b, 1);"
    "launch_next();";

TEST(HopperCompile, wrappers_of_instructions) {
  if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  Program ampere = body_program(kAmpere);
  expect_compiles(ampere, "h200");
  ampere.include = "device/ptx/pieces.cuh";
  ampere.generated =
      "#include \"device/block.cuh\"\n#include \"device/ptx/matrix.cuh\"\n#include "
      "\"device/ptx/mma.cuh\"\n#include \"device/tensor_map.cuh\"\n" +
      ampere.generated;
  expect_compiles(ampere, "a100");
  expect_compiles(body_program(kHopper), "h200");
}

struct Types {
  DType a, b, sum;
};

std::vector<Types> product_types() {
  std::vector<Types> all = {{DType::f16, DType::f16, DType::f32},
                            {DType::f16, DType::f16, DType::f16},
                            {DType::bf16, DType::bf16, DType::f32},
                            {DType::f32, DType::f32, DType::f32}};
  for (DType a : {DType::e4m3, DType::e5m2})
    for (DType b : {DType::e4m3, DType::e5m2})
      for (DType sum : {DType::f32, DType::f16}) all.push_back({a, b, sum});
  for (DType a : {DType::i8, DType::u8})
    for (DType b : {DType::i8, DType::u8}) all.push_back({a, b, DType::i32});
  return all;
}

// One kernel with the products of these types by few, some and most columns; the calibration compiles all numbers.
Program some_widths(const Types& t, bool registers, bool across) {
  std::string before, body;
  for (int columns : {8, 96, 256}) {
    cuda::WgmmaShape shape{.columns = columns, .a = t.a, .b = t.b, .sum = t.sum, .a_in_registers = registers};
    shape.b_across = across, shape.a_across = across && !registers;
    if (!cuda::check_wgmma(shape)) continue;
    before += cuda::wgmma_text(cat("P", columns), shape);
    body += cat("{ P", columns, "::Sums d; wgmma_fence(); P", columns, "::run(d, ", registers ? "x" : "m",
                ", m, false); wgmma_commit(); wgmma_wait<0>(); a.out[t] += *reinterpret_cast<u32*>(&d[1]); }\n");
  }
  return body_program(
      "u64 m = operand_descriptor(s, 16, 1024, Swizzle::bytes_128);\n"
      "u32 x[4] = {a.in[t], a.in[t + 1], a.in[t + 2], a.in[t + 3]};\n" +
          body,
      before);
}

TEST(HopperCompile, products_of_warpgroups_in_all_types) {
  if (!jit::nvrtc()) GTEST_SKIP() << jit::nvrtc().missing;
  for (const Types& t : product_types())
    for (bool registers : {false, true})
      for (bool across : {false, true})
        if (!across || info(t.a).bits == 16) expect_compiles(some_widths(t, registers, across), "h200");
}

TEST(HopperCompile, products_that_do_not_exist_are_refused) {
  using S = cuda::WgmmaShape;
  for (const S& s :
       {S{.columns = 12}, S{.columns = 264}, S{.columns = 0}, S{.a = DType::f16}, S{.sum = DType::f16},
        S{.columns = 40, .a = DType::i8, .b = DType::i8, .sum = DType::i32}, S{.a = DType::i8, .b = DType::i8},
        S{.a = DType::f32, .b = DType::f32, .b_across = true}, S{.a = DType::f64, .b = DType::f64},
        S{.a_in_registers = true, .a_across = true}, S{.a = DType::e4m3, .b = DType::i8}})
    expect_error([&] { cuda::wgmma_text("P", s); }, Status::bad_parameter, {});
}

}  // namespace
}  // namespace tsr
