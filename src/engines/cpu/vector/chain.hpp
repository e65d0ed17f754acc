// SPDX-License-Identifier: Apache-2.0
// Chains: straight-line f32 code that runs strip by strip with its running value in vector registers. A step may fetch
// an operand (converting it on the way), applies a function, and may send the value to memory, to a reduction or to a
// block register. So a chain of operations touches memory only where values enter, leave or are used again.
#pragma once

#include <vector>

#include "planner/expr.hpp"

namespace tsr::cpu {

// How an operand lies in memory; `none` is no operand, `same` the running value itself, `scalar` one f32 for all. From
// `minifloat` on: minifloats of 8 bits, by their types.
enum class Format : uint8_t { none, same, scalar, f32, bf16, f16, e8m0, i32, i8, u8, boolean, minifloat };
constexpr Format minifloat_format(DType t) {
  return static_cast<Format>(static_cast<uint8_t>(Format::minifloat) + static_cast<uint8_t>(t));
}
constexpr DType minifloat_type(Format f) {
  return static_cast<DType>(static_cast<uint8_t>(f) - static_cast<uint8_t>(Format::minifloat));
}

struct ChainStep {
  enum Kind : uint8_t {
    take,       // the operand becomes the running value
    apply,      // `mode` of the running value and the operand
    select,     // the running value where `third` holds, else the operand
    select_by,  // the operand where the running value holds, else `third`
    round,      // to a narrower float (`third_format`) and back
    keep,       // into memory as f32 or `third_format`, through the caches or past them (`stream`)
    reduce,     // into the partial results at `third`
    prefetch,   // memory at `third`
    // The most frequent of these, each in one go.
    take_f32,
    add_scalar,
    sub_scalar,
    mul_scalar,
    add_f32,
    sub_f32,
    mul_f32,
    mul_add_f32,  // times the operand plus `third`
    keep_f32,
    stream_f32,
    exp_f32,
    reduce_max,
    reduce_add,
    reduce_square,  // sum of squares
  };
  Kind kind = take;
  Format format = Format::none, third_format = Format::none;
  tessera::PointwiseMode mode = tessera::PointwiseMode::identity;
  tessera::ReduceMode reduction = tessera::ReduceMode::add;
  bool swapped = false;  // the operand is the function's first argument
  bool scaled = false;   // the arguments are multiplied by alpha1 and alpha2 first
  bool stream = false;
  int slot = -1, third = -1;  // pointers among ChainArgs::slots
  float alpha1 = 1, alpha2 = 1;
  float lower = 0, upper = 0, slope = 0, one = 0;  // of the mode

  // Makes this the step that applies a pointwise operation.
  void set(const tessera::PointwiseOptions& o) {
    using M = tessera::PointwiseMode;
    kind = o.mode == M::select ? select : apply;
    mode = o.mode;
    alpha1 = static_cast<float>(o.alpha1), alpha2 = static_cast<float>(o.alpha2);
    scaled = alpha1 != 1 || alpha2 != 1;
    lower = static_cast<float>(o.lower), upper = static_cast<float>(o.upper), slope = static_cast<float>(o.slope);
    one = static_cast<float>(mode == M::elu || mode == M::elu_bwd ? o.alpha : o.beta);
  }
};

// f32 values that a reduction collects side by side, at most: the widest vector of any instruction set.
constexpr int64_t kPartials = 16;

struct ChainArgs {
  const ChainStep* steps;
  int count;
  void** slots;  // where the first element of each operand lies
  int64_t n;
  // Reductions collect kPartials values for the whole block, or one for each element (rows side by side).
  bool side_by_side;
  // The same for each of several rows: bytes from one to the next, for each slot. The slots are moved on.
  int64_t rows = 1;
  const int64_t* row_steps = nullptr;
  int slot_count = 0;
};

// Replaces steps by the ones that do the same in one go.
void shorten(std::vector<ChainStep>& steps);

constexpr int64_t format_bytes(Format f) {
  return f == Format::f32 || f == Format::i32    ? 4
         : f == Format::bf16 || f == Format::f16 ? 2
         : f == Format::scalar                   ? 0
                                                 : 1;
}

}  // namespace tsr::cpu
