// SPDX-License-Identifier: Apache-2.0
// How each operation of ours is said in cuDNN's terms. Each adds operations to the writer or refuses.
#pragma once

#include "cudnn/writer.hpp"

namespace cudnn {

void translate(Writer& w, const tsr::Node& n);  // any operation

// translate_norm.cpp
void norm_fwd(Writer& w, const tsr::Node& n);
void norm_bwd(Writer& w, const tsr::Node& n);
void gen_stats(Writer& w, const tsr::Node& n);
void bn_finalize(Writer& w, const tsr::Node& n);
void bn_bwd_weights(Writer& w, const tsr::Node& n);

// translate_softmax.cpp
void softmax(Writer& w, const tsr::Node& n);
void softmax_bwd(Writer& w, const tsr::Node& n);
struct Softmax {
  int64_t x;
  Ints rows;  // sizes of x, 1 where it is normalised
  int64_t sink = kAbsent, y = kAbsent, stats = kAbsent, max = kAbsent, sum_exp = kAbsent;
  bool stats_log2 = false, log = false;
};
bool softmax_is_operation(const Writer& w, const Softmax& s);  // one operation; otherwise it is spelled out
void add_softmax(Writer& w, const Softmax& s);

// translate_attention.cpp
void sdpa_fwd(Writer& w, const tsr::Node& n);
void sdpa_bwd(Writer& w, const tsr::Node& n);
void band_mask(Writer& w, const tsr::Node& n);

// translate_move.cpp
void reshape(Writer& w, const tsr::Node& n);
void transpose(Writer& w, const tsr::Node& n);
void slice(Writer& w, const tsr::Node& n);
void concat(Writer& w, const tsr::Node& n);
void paged_load(Writer& w, const tsr::Node& n);
void block_scale_quantize(Writer& w, const tsr::Node& n);
void block_scale_dequantize(Writer& w, const tsr::Node& n);
void rng(Writer& w, const tsr::Node& n);
void dropout(Writer& w, const tsr::Node& n);
void dropout_bwd(Writer& w, const tsr::Node& n);
void add_reshape(Writer& w, int64_t x, int64_t y, ReshapeMode mode);
void add_paged_load(Writer& w, int64_t container, int64_t table, int64_t lengths, int64_t y);
// A mask of random numbers that are 1 with probability `keep`.
void add_bernoulli(Writer& w, double keep, int64_t seed, int64_t offset, int64_t y);

// What matrix products of any operation share; absent overrides are left out.
struct Product {
  int64_t a, b, c;
  int64_t m = kAbsent, n = kAbsent, k = kAbsent;
};
void add_matmul(Writer& w, const Product& p, DataType compute = DataType::float_, double padding = 0);

}  // namespace cudnn
