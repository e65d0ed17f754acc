// SPDX-License-Identifier: Apache-2.0
// Strided copies on a GPU: in words of up to 16 bytes where both sides lie in runs, in tiles through shared memory
// where they lie in runs along different axes, element by element otherwise.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "engines/cuda/move/args.cuh"
#include "graph/copies.hpp"
#include "planner/engine.hpp"

namespace tsr::cuda {

// Vectorised types hold plain elements in another order.
DType plain_type(const Tensor& t);
// Can these elements be copied, converting them on the way where types differ?
Reason check_copy(const Graph& g, const Copy& c, TensorId target);

std::unique_ptr<Step> make_copy_step(const Graph& g, const std::vector<Copy>& copies, TensorId target, const Device& d);

// One side of a transposition: bytes of an element, elements along its runs, and how many of them can be moved at once.
struct TileSide {
  int64_t bytes, run, at_once;
};
// A tile that suits both sides.
struct TileChoice {
  TileChoice(const TileSide& from, const TileSide& to);
  int square;  // side of the squares that are moved, in elements
  int down;    // squares from its first row to its last
  bool from_words, to_words;
  int64_t rows, columns;
  int64_t shared_bytes;
};

// Bytes, up to 16, that can be moved at once at this distance (in bytes) from the tensor's start.
int64_t aligned_bytes(const Tensor& t, int64_t distance);
// Can elements be moved whole?
Reason check_alignment(const Tensor& t);
// The largest power of two, up to `most`, of which all these are multiples.
int64_t common_power(int64_t most, std::initializer_list<int64_t> values);
// The unsigned type of that many bytes in device code.
std::string word_type(int64_t bytes);

}  // namespace tsr::cuda
