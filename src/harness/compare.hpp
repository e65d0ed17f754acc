// SPDX-License-Identifier: Apache-2.0
// Comparison with the oracle under a derived tolerance. Per output tensor:
//
//   tolerance(i) = 2 e + 4 eps sqrt(n) m + u(i)
//
//   e    largest error of the definition itself when every step is rounded to f32, and every virtual tensor to its type
//        (the narrow run), also when f32 inputs move by one and results of operations by two units in the last place,
//        to random sides (of attention and recurrent networks on 16-bit numbers also what they multiply in between, by
//        its rounding to these), when
//        virtual tensors of 16 bits stay unrounded, and when the graph is what it is recognised as
//   eps  relative spacing of the compute type, n the most terms that an element accumulates in the graph
//   m    largest finite magnitude of the tensor: another order of summation may move the result by that much
//   u    spacing of the stored type at the oracle's value
//
// The moved runs do not count where a step (comparison, floor, mod) of real numbers contributes. For outputs that
// nothing narrower than f64 contributes to, the oracle's own rounding counts too: 8 e / 2^29 + 64 eps sqrt(n) m, with
// the eps of f64 and m the largest magnitude of the tensor or of an input. Integers and truth values must be equal,
// except that twice as many elements may differ (by one, for integers) as differ in the narrow run.
#pragma once

#include "harness/buffers.hpp"

namespace tsr {

struct Oracle {
  GraphBuffers wide, narrow;             // outputs of the two runs of the definition
  GraphBuffers unrounded;                // of the wide run with 16-bit virtual tensors kept wide
  std::vector<GraphBuffers> nearby;      // narrow runs with values moved a little
  std::vector<GraphBuffers> recognised;  // of operations that the graph spells out, results moved a little
  Oracle(const Graph& g, const DataSpec& spec);
  Oracle(const Graph& g, const GraphBuffers& inputs);  // the values that `inputs` holds
};

// Empty when `actual` agrees; otherwise which tensor, where, both values and the tolerance.
std::string compare(const Graph& g, const Oracle& oracle, const GraphBuffers& actual);

}  // namespace tsr
