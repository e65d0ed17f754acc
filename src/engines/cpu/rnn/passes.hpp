// SPDX-License-Identifier: Apache-2.0
// One execution of a network: its memory, the forward pass and the backward pass.
#pragma once

#include "engines/cpu/rnn/network.hpp"

namespace tsr::cpu {

class RnnMemory {
 public:
  RnnMemory(const Network& n, void* const* tensors, std::byte* workspace)
      : n(n), tensors(tensors), workspace(workspace) {}

  float* at(size_t offset) const { return reinterpret_cast<float*>(workspace + offset); }
  const void* weight(int64_t offset) const;  // element of the flat weight tensor

  void read_lengths();
  int64_t length(int64_t b) const { return integers(n.lengths_)[b]; }
  int64_t start(int64_t t) const { return integers(n.starts_)[t]; }
  int64_t count(int64_t t) const { return start(t + 1) - start(t); }  // rows of step t
  int64_t steps() const { return steps_; }

  // Between tensors of the node and rows of f32.
  void read_sequence(const RnnTensor& t, size_t to) const;
  void write_sequence(const RnnTensor& t, size_t from) const;
  void read_state(const RnnTensor& t, int64_t state, int64_t width, size_t to) const;  // 0 when absent
  void write_state(const RnnTensor& t, int64_t state, int64_t width, size_t from) const;

  // Multiplies rows of layer `layer`'s output with its dropout mask.
  void drop(int64_t layer, size_t rows) const;

  // One panel of columns of a product with few rows: c (+)= left right.
  void multiply(int64_t rows, int64_t columns, int64_t depth, size_t left, const float* right, float* c, int64_t stride,
                bool add) const;
  // Rows [0, n) of a matrix, columns from `first`, as the left side of products of that depth.
  void pack_left(const float* rows, int64_t stride, int64_t n, int64_t first, int64_t columns, int64_t depth,
                 size_t to) const;
  // All columns of a right side: `columns` neighbours of the weights from element `offset`.
  void pack_right(int64_t offset, int64_t columns, int64_t stride, int64_t depth, int64_t inner, size_t to) const;

  const Network& n;
  void* const* tensors;
  std::byte* workspace;

 private:
  int64_t* integers(size_t offset) const { return reinterpret_cast<int64_t*>(workspace + offset); }
  int64_t tensor_row(const RnnTensor& t, int64_t step, int64_t b) const;
  int64_t steps_ = 0;
};

class ForwardPass {
 public:
  explicit ForwardPass(const RnnMemory& m) : m_(m), n_(m.n), w_(m.n.w_) {}
  void run();

 private:
  void direction();
  void read_biases();
  void input_products(int64_t row, int64_t rows);
  void step(int64_t t, size_t packed, size_t next);
  void units(int64_t t, int64_t first, int64_t n, size_t packed, size_t next);
  void project(int64_t t, size_t next);
  void settle(int64_t t, int64_t b, int64_t first, int64_t n);

  const RnnMemory& m_;
  const Network& n_;
  const RnnWeights& w_;
  int64_t layer_ = 0, direction_ = 0;
  int64_t base_ = 0;  // the row that the memory of the gates starts with
};

class BackwardPass {
 public:
  explicit BackwardPass(const RnnMemory& m) : m_(m), n_(m.n), w_(m.n.w_) {}
  void run();

 private:
  void direction(size_t dy, size_t dx);
  void pack_weights();
  void state_gradients(int64_t t, int64_t later, size_t dy);
  void gate_gradients(int64_t t);
  void units(int64_t t, int64_t first, int64_t n);
  void input_gradients(size_t dx);
  void weight_gradients();
  void sum_columns(const float* rows, int64_t stride, const RnnPart& to) const;

  const RnnMemory& m_;
  const Network& n_;
  const RnnWeights& w_;
  int64_t layer_ = 0, direction_ = 0;
};

}  // namespace tsr::cpu
