// SPDX-License-Identifier: Apache-2.0
// The instruction by which a warpgroup multiplies matrices, as device code for one shape: it names a register for each
// of its sums, so that no template can write it.
#pragma once

#include <string>

#include "base/dtype.hpp"
#include "base/error.hpp"

namespace tsr::cuda {

struct WgmmaShape {
  int columns = 64;                        // 8 to 256, a multiple of 8; of integers beyond 32 of 16
  DType a = DType::bf16, b = DType::bf16;  // f32 stands for tf32
  DType sum = DType::f32;                  // f32, f16 or i32
  bool a_in_registers = false;
  bool a_across = false, b_across = false;  // elements follow each other across the inner dimension; 16-bit types alone
};

// Why there is no such instruction, if there is none.
Reason check_wgmma(const WgmmaShape& s);
// Elements along the inner dimension that one instruction takes: 32 bytes.
int wgmma_depth(const WgmmaShape& s);
// `struct NAME`: constants kColumns and kDepth, the type Sums of a thread's registers, and run(sums, a, b, add). Raises
// if there is no such instruction.
std::string wgmma_text(const std::string& name, const WgmmaShape& s);

}  // namespace tsr::cuda
