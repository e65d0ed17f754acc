// SPDX-License-Identifier: Apache-2.0
// Options of the operations, one struct each, made for designated initialisers: conv_fprop(x, w, {.pad = {1, 1}}).
// The same structs are the attributes of graph nodes; docs/operations.md explains each field with its formula.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "tessera/types.hpp"

namespace tsr {
struct Subgraph;
}

namespace tessera {

// A sub-graph given to an operation; made by tessera::subgraph(...) or `{ s -> ... }` in the text form.
using Subgraph = std::shared_ptr<const tsr::Subgraph>;

struct Ratio {
  int64_t num = 1, den = 1;
  Ratio() = default;
  Ratio(int64_t n, int64_t d = 1) : num(n), den(d) {}  // NOLINT(google-explicit-constructor): `.window = {3, 3}`
  bool operator==(const Ratio&) const = default;
};

// A value for each spatial dimension, or one for all of them: `.pad = {1, 2}`, `.pad = 1`.
template <class T>
struct Each : std::vector<T> {
  using std::vector<T>::vector;
  Each(const std::vector<T>& values) : std::vector<T>(values) {}  // NOLINT(google-explicit-constructor)
  Each(int64_t all) : std::vector<T>{T(all)} {}                   // NOLINT(google-explicit-constructor)
};

enum class PointwiseMode : uint8_t {
  add,
  mul,
  min,
  max,
  sqrt,
  add_square,
  div,
  mod,
  pow,
  sub,
  abs,
  ceil,
  cos,
  exp,
  floor,
  log,
  neg,
  rsqrt,
  sin,
  tan,
  erf,
  identity,
  reciprocal,
  atan2,
  floor_mod,
  relu,
  tanh,
  sigmoid,
  elu,
  gelu,
  softplus,
  swish,
  gelu_tanh,
  relu_bwd,
  tanh_bwd,
  sigmoid_bwd,
  elu_bwd,
  gelu_bwd,
  softplus_bwd,
  swish_bwd,
  gelu_tanh_bwd,
  cmp_eq,
  cmp_neq,
  cmp_gt,
  cmp_ge,
  cmp_lt,
  cmp_le,
  logical_and,
  logical_or,
  logical_not,
  gen_index,
  select,
};

struct PointwiseOptions {
  PointwiseMode mode = PointwiseMode::identity;
  double alpha1 = 1, alpha2 = 1;                                                 // factors of x and b
  double lower = 0, upper = std::numeric_limits<double>::infinity(), slope = 0;  // relu
  double alpha = 1;                                                              // elu
  double beta = 1;                                                               // softplus, swish
  int64_t axis = 0;                                                              // gen_index
};

enum class ReduceMode : uint8_t { add, mul, min, max, amax, avg, norm1, norm2, mul_no_zeros };

struct ReduceOptions {
  ReduceMode mode = ReduceMode::add;
  Ints axes;                   // empty: the axes in which the output is 1, or all of them
  bool deterministic = false;  // forbid engines whose result depends on timing
  Ints runs;                   // instead of axes: how many neighbours of each dimension are reduced; 0: all of them
};

struct ReduceByOptions {
  Ints axes;
  double init = 0;
  Subgraph combine;  // { accumulator element -> value }
};

struct MatmulOptions {
  double padding_value = 0;  // what C holds beyond the per-batch sizes
  bool tf32 = false;         // operands of f32 may be rounded to 10 bits of mantissa, as tensor cores take them
  bool fast_sums = false;    // sums of products of 8-bit floats may have the 14 bits that tensor cores keep
};

enum class MoeMode : uint8_t { none, gather, scatter };

struct MoeOptions {
  MoeMode mode = MoeMode::none;
  int64_t top_k = 1;  // scatter: output rows of each token
};

struct MoeBwdOptions {
  int64_t experts = 0;  // 0: one for each offset
};

enum class ConvMode : uint8_t { cross_correlation, convolution };

struct ConvOptions {
  Each<int64_t> stride, pad, post_pad, dilation;  // post_pad defaults to pad
  ConvMode mode = ConvMode::cross_correlation;
  double alpha = 1, beta = 0;  // result = alpha * conv + beta * c
  Ints size;                   // conv_dgrad: spatial size of dx; conv_wgrad: of dw
  int64_t groups = 0;          // 0: from the sizes; where they leave it open (dgrad, wgrad), 1
  bool tf32 = false;           // operands of f32 may be rounded to 10 bits of mantissa, as tensor cores take them
  bool fast_sums = false;      // sums of products of 8-bit floats may have the 14 bits that tensor cores keep
};

enum class CausalActivation : uint8_t { none, silu };

struct CausalConvOptions {
  CausalActivation activation = CausalActivation::none;
  bool reversed = false;  // filter tap j meets x[t-j] instead of x[t-(k-1-j)]
};

enum class NormMode : uint8_t { layer, instance, batch, group, rms, ada_layer };
enum class Phase : uint8_t { training, inference };

struct NormOptions {
  NormMode mode = NormMode::layer;
  Phase phase = Phase::training;
  double eps = 1e-5;
  double momentum = 0.1;       // weight of the new value in running statistics
  int64_t groups = 1;          // group norm
  bool zero_centered = false;  // the stored scale is (scale - 1)
  Ints axes;                   // layer, rms, ada_layer: normalised axes; empty: those in which scale is not 1
};

struct BnFinalizeOptions {
  double eps = 1e-5, momentum = 0.1;
  int64_t count = 0;  // elements behind each sum; 0: the accum_count input tells
  Phase phase = Phase::training;
};

struct LrnOptions {
  int64_t n = 5;  // elements of the window
  double alpha = 1e-4, beta = 0.75, k = 2;
};

enum class SoftmaxMode : uint8_t { softmax, log_softmax };

struct SoftmaxOptions {
  SoftmaxMode mode = SoftmaxMode::softmax;
  Ints axes{-1};            // normalised together
  bool stats_log2 = false;  // stats in powers of 2 instead of e
};

enum class ResampleMode : uint8_t { nearest, bilinear, avg_pool_include, avg_pool_exclude, max_pool };
enum class PaddingMode : uint8_t { automatic, zero, neg_inf, edge };

struct ResampleOptions {
  ResampleMode mode = ResampleMode::max_pool;
  Each<Ratio> window, stride, pad, post_pad;     // stride defaults to window where that pools, post_pad to pad
  PaddingMode padding = PaddingMode::automatic;  // neg_inf for max_pool, edge for nearest and bilinear, else zero
  Ints size;  // spatial size of the result when the window arithmetic does not fix it
  double alpha = 1;
};

struct GridOptions {
  Ints size;  // affine_grid: n, c, h, w
};

enum class Distribution : uint8_t { bernoulli, uniform, normal };

struct RngOptions {
  Distribution distribution = Distribution::bernoulli;
  double p = 0.5;            // bernoulli: probability of 1
  double low = 0, high = 1;  // uniform
  double mean = 0, stddev = 1;
  int64_t seed = 0, offset = 0;
  Ints size;  // dims of the result
};

struct DropoutOptions {
  double p = 0.5;  // probability of dropping
  int64_t seed = 0, offset = 0;
};

enum class ReshapeMode : uint8_t { view, logical };

struct ReshapeOptions {
  Ints size;
  ReshapeMode mode = ReshapeMode::logical;
};

struct TransposeOptions {
  Ints perm;
};

struct SliceOptions {
  Ints start, limit, stride;
};

struct ConcatOptions {
  int64_t axis = 0;
  std::optional<int64_t> inplace_index;
};

enum class GatherMode : uint8_t { rows, elements };

struct GatherOptions {
  int64_t axis = 0;
  GatherMode mode = GatherMode::rows;  // elements: every element has an index of its own
};

struct ScatterAddOptions {
  int64_t axis = 0;
  GatherMode mode = GatherMode::rows;
  int64_t size = 0;  // of the axis; 0: that of x, or of the declared result
};

struct ArgmaxOptions {
  int64_t axis = -1;
};

struct TopKOptions {
  int64_t k = 1;
  int64_t axis = -1;
};

struct CumsumOptions {
  int64_t axis = -1;
  bool exclusive = false;  // an element is not part of its own sum
  bool reverse = false;    // sums begin at the end
};

struct CrossEntropyOptions {
  int64_t axis = -1;  // of the classes
};

struct BlockScaleOptions {
  Ints block{32};          // quantize: block length; dequantize: lengths along the last dimensions, innermost last
  int64_t axis = -1;       // quantize: the axis that is cut into blocks
  bool neg_scale = false;  // dequantize: the scale's sign is flipped
};

struct PagedLoadOptions {
  int64_t size = 0;         // steps of the result; 0: those of its declared sizes, or all pages of the table
  bool transposed = false;  // the result is [b, h, d, s] instead of [b, h, s, d]
};

struct RopeOptions {
  double scale = 1;
  int64_t rope_dim = 0;  // 0: the whole head dimension
};

struct BandMaskOptions {
  PointwiseMode compare = PointwiseMode::cmp_ge;
};

enum class Align : uint8_t { top_left, bottom_right };

struct SdpaOptions {
  double scale = 1;
  std::optional<int64_t> left, right;  // keep col + left > row + off and col <= row + off + right
  Align align = Align::top_left;       // bottom_right: off = length of k - length of q
  bool alibi = false;                  // adds slope * (col - row); slopes 2^(-8(i+1)/heads) unless given
  double dropout = 0;                  // probability of dropping
  int64_t max_seq_kv = 0;              // paged k and v: longest sequence; 0: all pages of the table
  bool stats_log2 = false;
  Subgraph score_mod;      // { s -> ... } on scaled scores
  Subgraph score_mod_bwd;  // { ds s -> ... } its gradient, backward only
};

enum class RnnMode : uint8_t { relu, tanh, lstm, gru };
enum class RnnInput : uint8_t { linear, skip };
enum class RnnBias : uint8_t { none, input, recurrent, both };
enum class RnnLayout : uint8_t { seq_major, batch_major };

struct RnnOptions {
  RnnMode mode = RnnMode::lstm;
  int64_t hidden = 0;
  int64_t proj = 0;  // 0: no projection
  int64_t layers = 1;
  bool bidirectional = false;
  RnnInput input = RnnInput::linear;
  RnnBias bias = RnnBias::both;
  RnnLayout layout = RnnLayout::seq_major;
  bool packed = false;                       // x and y hold only the valid steps, time by time
  std::optional<double> clip_min, clip_max;  // lstm cell state
  bool clip_nan = false;                     // NaN becomes clip_min instead of staying NaN
  double dropout = 0;                        // between layers, when training
  int64_t seed = 0;                          // of dropout
  Phase phase = Phase::training;
};

struct CtcOptions {
  int64_t blank = 0;
  bool log_probs = false;      // logits are already log-probabilities (no softmax inside)
  bool zero_infinity = false;  // impossible alignments cost 0 with gradient 0
};

enum class AggMode : uint8_t { sum, mean, max, min };

struct AggOptions {
  AggMode mode = AggMode::sum;
};

struct AggBwdOptions {
  AggMode mode = AggMode::sum;
  int64_t sources = 0, edges = 0;  // rows of dnode and dedge; by default edges is the number of indices
  int64_t node_features = 0,
          edge_features = 0;  // widths of the parts of dy; concat has the rest; both 0: all are the node's
};

}  // namespace tessera
