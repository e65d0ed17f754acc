// SPDX-License-Identifier: Apache-2.0
// An attention node as engines see it: where its tensors lie, and everything about heads and lengths that forward and
// backward share. A Problem is made when the step is built; what depends on pointers is read at every run.
#pragma once

#include <memory>

#include "graph/ops/sdpa_common.hpp"
#include "planner/engine.hpp"

namespace tsr::attention {

using Tensors = void* const*;  // by TensorId, as in StepArgs

// Bounds of the band beyond this bound nothing, and sums with them stay in range.
constexpr int64_t kFar = int64_t{1} << 40;

// A few numbers in memory: one, or one for each batch or head.
struct Numbers {
  TensorId id = kNone;
  DType type = DType::f32;
  int64_t stride = 0;
  bool given() const { return id != kNone; }
  double read(Tensors t, double fallback) const { return given() ? load<double>(type, t[id], 0) : fallback; }
  double at(Tensors t, int64_t i) const { return load<double>(type, t[id], i * stride); }
  int64_t integer(Tensors t, int64_t i) const { return load<int64_t>(type, t[id], i * stride); }
};

// A tensor that broadcasts to the scores [b, h, sq, skv]: strides are 0 where it repeats.
struct Broadcast {
  TensorId id = kNone;
  DType type = DType::f32;
  int64_t batch = 0, head = 0, query = 0, key = 0;
  bool given() const { return id != kNone; }
};
Broadcast make_broadcast(const Tensor& t, TensorId id);

// A tensor [b, h, s, d] of sequences, possibly ragged, paged (the container is [blocks, h, steps, d]) or block-scaled.
// The functions are for pointers that the host can read.
struct Sequences {
  TensorId id = kNone;
  DType type = DType::f32;
  Dims dims, strides;
  TensorId offsets = kNone;
  DType offsets_type = DType::i32;
  int64_t multiplier = 1;
  std::shared_ptr<const Sequences> pages;  // page table: sequences of blocks' numbers
  TensorId scales = kNone;
  Tensor scale_tensor;
  Dims scale_block;

  bool given() const { return id != kNone; }
  int64_t batch_start(Tensors t, int64_t b) const;                // element offset
  int64_t steps(Tensors t, int64_t b, int64_t length) const;      // that exist, at most `length`
  int64_t room(Tensors t, int64_t b) const;                       // steps that the offsets leave room for
  int64_t row(Tensors t, int64_t b, int64_t h, int64_t s) const;  // element offset of a row that exists
  int64_t block(Tensors t, int64_t b, int64_t s) const;           // that holds a step, where there are pages
  int64_t run(int64_t s) const;                                   // steps from this one on that are equally far apart
};

struct Problem {
  Problem(const Graph& g, const Node& n);

  sdpa::Shape n;
  tessera::SdpaOptions options;
  int64_t group;  // neighbouring heads of q that share a head of k and one of v
  Sequences q, k, v;
  Numbers scale, seq_len_q, seq_len_kv, cu_seq_len_q, cu_seq_len_kv;
  Numbers descale_q, descale_k, descale_v, descale_s, scale_s;
  Numbers sink, slopes;
  Numbers dropout_seed, dropout_offset, dropout_scale;
  Broadcast bias, block_mask, dropout_mask;
  bool alibi = false, rounds_to_fp8 = false;
  sdpa::Open open;  // sides whose sequences may be longer than the sizes say

  int64_t groups() const { return n.hq / group; }
  // What kept probabilities are multiplied by, unless dropout_scale says otherwise.
  double keep_factor() const;
  // A random word keeps its probability when its upper 24 bits are below this.
  uint32_t keep_threshold() const;
};

bool is_forward(const Node& n);
bool is_backward(const Node& n);
// Why tensors of the node do not lie in memory as a Problem describes it.
Reason check_tensors(const Graph& g, const Node& n);

const Tensor* input(const Graph& g, const Node& n, int slot);  // null when the slot is empty
Numbers make_numbers(const Graph& g, const Node& n, int slot);
Sequences make_sequences(const Graph& g, TensorId id);
// An output of the region's only node, if anyone reads it.
Sequences make_output(const Region& r, int slot);

}  // namespace tsr::attention
