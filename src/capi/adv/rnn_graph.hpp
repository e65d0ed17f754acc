// SPDX-License-Identifier: Apache-2.0
// Graphs of recurrent networks. The graph's own operations do not read the state of a dropout descriptor; with dropout
// between layers a network is therefore cut into its layers, with operations of dropout between them. Packed sequences
// may come with tables of their rows: then the network computes with padded ones.
#pragma once

#include "capi/call.hpp"
#include "graph/ops/rnn_layout.hpp"

namespace tsr::capi {

// Tensors of the calls.
enum RnnId : int64_t {
  kRnnX = 1,
  kRnnWeights,
  kRnnHx,
  kRnnCx,
  kRnnLengths,
  kRnnY,
  kRnnHy,
  kRnnCy,
  kRnnDy,
  kRnnDhy,
  kRnnDcy,
  kRnnDx,
  kRnnDhx,
  kRnnDcx,
  kRnnDweights,
  kRnnRows,     // of packed sequences: the row of each batch and step
  kRnnPlaces,   // and the other way round: batch and step of each row, as one number
  kRnnPadding,  // what y holds past the sequences' ends
  kRnnSeed,     // of dropout
  kRnnOffset,
  // In the reserve space: what gradients need of the forward pass, and what they keep for one another.
  kRnnKeptX,
  kRnnKeptDweights,
  kRnnKeptSeed,
  kRnnKeptOffset,
};

class RnnGraph {
 public:
  RnnGraph(Maker& m, const tessera::RnnOptions& o, int64_t input_size, double dropout, DType compute);
  void forward();   // writes y, hy, cy
  void backward();  // writes dx, dhx, dcx and the gradient of the weights

 private:
  // Layers that one operation computes.
  struct Group {
    tessera::RnnOptions options;
    int64_t first_layer, matrices, biases;  // elements of the weights
    TensorId x = kNone, y = kNone, mask = kNone, weights = kNone;
  };
  std::vector<TensorId> run(Group& g, TensorId y, TensorId hy, TensorId cy);
  TensorId drop(Group& g, TensorId y);
  TensorId slice(TensorId t, int64_t first, int64_t count);
  TensorId layers_of(TensorId states, const Group& g);
  TensorId weights_of(const Group& g);
  TensorId state_result(int64_t id);
  void join(int64_t id, std::vector<TensorId> parts);
  void join_weights(const std::vector<TensorId>& parts);
  TensorId pad(TensorId y);
  TensorId unpack(TensorId rows);
  void pack(TensorId padded, int64_t id);
  TensorId reshape(TensorId t, const tessera::Ints& size);
  TensorId gather(TensorId rows, TensorId table, TensorId lengths);
  bool unpacks() const { return m_[kRnnRows] != kNone; }
  TensorId sequence_result(int64_t id);
  bool cut() const { return groups_.size() > 1; }

  Maker& m_;
  RnnWeights layout_;
  double dropout_;
  DType compute_;
  std::vector<Group> groups_;
};

}  // namespace tsr::capi
