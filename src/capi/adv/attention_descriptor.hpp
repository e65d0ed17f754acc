// SPDX-License-Identifier: Apache-2.0
// cudnnAttnDescriptor_t: attention of several heads with projections before and behind it, and where their weights lie.
#pragma once

#include <array>

#include "capi/legacy/dropout.hpp"

struct cudnnAttnStruct {
  bool set = false;
  unsigned mode = 0;
  int heads = 0;
  double scale = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT, precision = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnDropoutDescriptor_t dropout = nullptr, post_dropout = nullptr;  // of probabilities, of results
  int q = 0, k = 0, v = 0;                                             // sizes of vectors
  int q_proj = 0, k_proj = 0, v_proj = 0, o_proj = 0;                  // and behind projections; 0: none
  int max_q = 0, max_kv = 0, max_batch = 0, max_beam = 0;

  bool one_to_one() const { return mode & CUDNN_ATTN_QUERYMAP_ONE_TO_ONE; }
  bool has_biases() const { return mode & CUDNN_ATTN_ENABLE_PROJ_BIASES; }
  int v_out() const { return v_proj ? v_proj : v; }
  int out() const { return o_proj ? o_proj : heads * v_out(); }  // size of a result's vectors
};

namespace tsr::capi {

constexpr int kAttnKinds = CUDNN_ATTN_WKIND_COUNT;

// Weights and biases, one behind the other. To callers those of queries, keys and values are [heads, projected, vector]
// and those of results [heads, result, projected]; as matrices they are [vector, heads * projected] and
// [heads * projected, result], row-major.
struct AttnWeights {
  struct Part {
    int64_t offset = 0, rows = 0, columns = 0;  // as a matrix; a bias is one row
    Dims dims, strides;                         // as callers see it
    bool exists() const { return rows > 0; }
  };
  std::array<Part, kAttnKinds> parts;
  int64_t total = 0;
};
AttnWeights attn_weights(const cudnnAttnStruct& a);

// A descriptor that has been set.
const cudnnAttnStruct& given_attn(cudnnAttnDescriptor_t d);

}  // namespace tsr::capi
