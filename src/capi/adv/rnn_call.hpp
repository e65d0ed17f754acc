// SPDX-License-Identifier: Apache-2.0
// Recurrent networks as calls, for the interface of version 8 and for that of versions before it.
#pragma once

#include "capi/adv/rnn_descriptor.hpp"
#include "capi/adv/rnn_graph.hpp"

namespace tsr::capi {

// The caller's memory: null where something is left out.
struct RnnBuffers {
  const void *x = nullptr, *weights = nullptr, *hx = nullptr, *cx = nullptr;
  void *y = nullptr, *hy = nullptr, *cy = nullptr;
  const void *dy = nullptr, *dhy = nullptr, *dcy = nullptr;
  void *dx = nullptr, *dhx = nullptr, *dcx = nullptr, *dweights = nullptr;
  void *workspace = nullptr, *reserve = nullptr;
  size_t workspace_bytes = 0, reserve_bytes = 0;
};

// Gradients of the data are asked for without x, those of the weights without anything that has to do with y. So the
// forward pass keeps x in the reserve space, and the gradient of the data leaves that of the weights there.
class RnnCall {
 public:
  // `device_lengths` may be null: then the lengths of x are used, which lie on the host.
  RnnCall(cudnnHandle_t handle, const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x,
          const int32_t* device_lengths = nullptr);

  // What y must be like, and the states; their descriptors may be strided otherwise.
  void check_y(const cudnnRNNDataStruct& y) const;
  void use_states(const Shape* h, const Shape* c, const RnnBuffers& b);
  void check_weights(size_t bytes) const;

  void forward(const RnnBuffers& b, bool training, const cudnnRNNDataStruct& y) const;
  void backward_data(const RnnBuffers& b) const;
  void backward_weights(const RnnBuffers& b, bool adds) const;

  size_t weight_bytes() const;
  size_t workspace_bytes(bool training) const;
  size_t reserve_bytes() const { return reserve_.total; }

 private:
  struct Reserve {
    size_t x, dweights, dropout, total;
  };
  Call common_call(const char* name, const RnnBuffers& b, bool training) const;
  Call forward_call(const RnnBuffers& b, bool training, const cudnnRNNDataStruct& y) const;
  Call backward_call(const RnnBuffers& b) const;
  void find_rows();
  void check_reserve(const RnnBuffers& b) const;
  RnnGraph graph(Maker& m, bool training) const;
  void build_forward(Maker& m, bool training) const;
  DType compute() const { return rnn_.type == CUDNN_DATA_DOUBLE ? DType::f64 : DType::f32; }
  double dropout(bool training) const;  // between layers

  cudnnHandle_t handle_;
  const cudnnRNNStruct& rnn_;
  const cudnnRNNDataStruct& data_;
  const int32_t* device_lengths_;
  tessera::RnnOptions options_;
  RnnWeights layout_;
  bool uneven_;                         // the graph needs to know lengths
  std::vector<int32_t> rows_, places_;  // of packed sequences, where the graph pads them
  Shape x_, y_, h_, c_, weights_, kept_dweights_;
  Reserve reserve_;
};

}  // namespace tsr::capi
