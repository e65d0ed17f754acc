// SPDX-License-Identifier: Apache-2.0
// The graph of multi-head attention: projections of queries, keys and values, attention, the projection of its results.
#pragma once

#include "capi/adv/attention_descriptor.hpp"

namespace tsr::capi {

// Tensors of the calls; weights and their gradients follow one another by kind.
enum AttnId : int64_t {
  kAttnQ = 1,
  kAttnK,
  kAttnV,
  kAttnResiduals,
  kAttnOut,
  kAttnLengthsQ,
  kAttnLengthsKv,
  kAttnMask,       // 0 or -infinity for each query and key
  kAttnFirstStep,  // of the queries, when not all are given
  kAttnSeed,
  kAttnOffset,
  kAttnPostSeed,
  kAttnPostOffset,
  kAttnKeptSeed,  // copies in the reserve space
  kAttnKeptOffset,
  kAttnKeptPostSeed,
  kAttnKeptPostOffset,
  kAttnDout,
  kAttnDq,
  kAttnDk,
  kAttnDv,
  kAttnWeights = 40,
  kAttnDweights = 60,
};

class AttnGraph {
 public:
  // Dropouts are probabilities, 0 for none.
  AttnGraph(Maker& m, const cudnnAttnStruct& a, bool causal, double dropout, double post_dropout);
  void forward();
  void backward();

 private:
  TensorId result();  // all of the forward pass but residuals
  TensorId project(TensorId x, int kind, int to);
  TensorId heads_of(TensorId x, int64_t heads, bool repeat);
  TensorId attend(TensorId q, TensorId k, TensorId v);
  TensorId gather_heads(TensorId o);
  TensorId drop(TensorId x);
  TensorId only_valid(TensorId x);
  TensorId reshape(TensorId x, const Dims& dims);
  TensorId transpose(TensorId x, const tessera::Ints& perm);
  Dims dims(TensorId x) { return m_.graph().tensor(x).dims; }
  void copy(TensorId from, int64_t to);

  Maker& m_;
  const cudnnAttnStruct& a_;
  bool causal_;
  double dropout_, post_dropout_;
  DType type_, compute_;
};

}  // namespace tsr::capi
