// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: how the one flat `weight` tensor is laid out, and the checks that the operations share.
//
// For every layer, and in it for every direction (forward, then backward), come the matrices, row-major:
//   input weights      W_g [hidden, inputs]   for each gate g   (absent in layer 0 with input=skip)
//   recurrent weights  R_g [hidden, outputs]  for each gate g
//   projection         P   [proj, hidden]     with proj > 0
// and after the matrices of all layers, in the same order of layers and directions, the biases:
//   input biases       bW_g [hidden]          for each gate g   (bias = input or both)
//   recurrent biases   bR_g [hidden]          for each gate g   (bias = recurrent or both)
// `inputs` is the size of x in layer 0 and directions * outputs in later layers; `outputs` is proj, or hidden without
// projection. Gates: relu, tanh have one; lstm i, f, g, o; gru r, z, n. A run of matrices of equal kind is therefore
// what PyTorch calls weight_ih, weight_hh, weight_hr, bias_ih, bias_hh.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// A matrix inside the flat weight tensor; a bias is a matrix of one column. Empty when it does not exist.
struct RnnPart {
  int64_t offset = 0, rows = 0, columns = 0;
  int64_t size() const { return rows * columns; }
};

class RnnWeights {
 public:
  RnnWeights(const tessera::RnnOptions& o, int64_t input_size);

  int64_t gates() const { return gates_; }
  int64_t directions() const { return directions_; }
  int64_t hidden() const { return hidden_; }
  int64_t outputs() const { return proj_ > 0 ? proj_ : hidden_; }  // of one direction
  int64_t inputs(int64_t layer) const { return layer == 0 ? input_size_ : directions_ * outputs(); }
  int64_t total() const { return total_; }  // elements of the weight tensor

  RnnPart input(int64_t layer, int64_t direction, int64_t gate) const;
  RnnPart recurrent(int64_t layer, int64_t direction, int64_t gate) const;
  RnnPart projection(int64_t layer, int64_t direction) const;
  RnnPart input_bias(int64_t layer, int64_t direction, int64_t gate) const;
  RnnPart recurrent_bias(int64_t layer, int64_t direction, int64_t gate) const;

 private:
  int64_t matrices(int64_t layer) const;  // elements of one direction's matrices
  int64_t first_matrix(int64_t layer, int64_t direction) const;
  int64_t first_bias(int64_t layer, int64_t direction) const;
  int64_t input_columns(int64_t layer) const { return layer == 0 && skip_ ? 0 : inputs(layer); }

  int64_t gates_, directions_, layers_, hidden_, proj_, input_size_;
  bool skip_, input_bias_, recurrent_bias_;
  int64_t total_ = 0;
};

// --- shared by the operations
void rnn_fields(std::any& options, FieldVisitor& v);

// Sizes that follow from x, the sequence lengths and the options.
struct RnnSizes {
  int64_t batch, steps;  // steps: of the padded form; of packed sequences the number of rows, an upper bound
  Dims y, hidden, cell;  // sizes of y, of h0 and hn, of c0 and cn
  int64_t weights;
};
// Slots of the inputs that all operations have; -1 for those that an operation lacks.
struct RnnSlots {
  int x, weight, h0, c0, seq_lengths, y = -1, dy = -1, dhn = -1, dcn = -1;
};
constexpr RnnSlots kRnnFwdSlots = {.x = 0, .weight = 1, .h0 = 2, .c0 = 3, .seq_lengths = 4};
constexpr RnnSlots kRnnBwdDataSlots = {
    .x = 0, .weight = 1, .h0 = 4, .c0 = 5, .seq_lengths = 6, .y = 3, .dy = 2, .dhn = 7, .dcn = 8};
constexpr RnnSlots kRnnBwdWeightsSlots = {
    .x = 0, .weight = 1, .h0 = 3, .c0 = 4, .seq_lengths = 5, .dy = 2, .dhn = 6, .dcn = 7};
RnnSizes check_rnn(const Infer& ctx, const RnnSlots& slots);
// Multiplications and additions of one forward pass.
double rnn_flops(const Graph& g, const Node& n);
// Terms of the longest chain of additions: a row of the matrices, as often as there are steps.
double rnn_terms(const Graph& g, const Node& n);

}  // namespace tsr
