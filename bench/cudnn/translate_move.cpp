// SPDX-License-Identifier: Apache-2.0
// Operations that move, pack or draw elements.
#include <numeric>

#include "cudnn/translations.hpp"
#include "graph/op.hpp"

namespace cudnn {

using tsr::attrs;
using P = PointwiseMode;

void reshape(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::ReshapeOptions>(n);
  const tsr::Tensor &x = w.source().tensor(n.in[0]), &y = w.source().tensor(n.out[0]);
  bool logical = o.mode == tessera::ReshapeMode::logical;
  bool packed = x.strides == tsr::packed_strides(x.dims) && y.strides == tsr::packed_strides(y.dims);
  if (logical && !packed) w.need(92200, "a reshape that is not a view");
  int64_t from = w.in(n, 0), to = w.out(n, 0);
  add_reshape(w, from, to, logical ? ReshapeMode::logical : ReshapeMode::view_only);
}

void add_reshape(Writer& w, int64_t x, int64_t y, ReshapeMode mode) {
  Node& node = w.add(Kind::operation_reshape);
  set_tensor(node, Attr::operation_reshape_xdesc, x);
  set_tensor(node, Attr::operation_reshape_ydesc, y);
  if (w.version() >= 92200) node.set(Attr::operation_reshape_mode, mode);
}

void transpose(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::TransposeOptions>(n);
  const tsr::Tensor& x = w.source().tensor(n.in[0]);
  int64_t to = w.out(n, 0);
  if (w.version() < 92200) {  // a copy of x, described the other way round
    Ints dims, strides;
    for (int64_t p : o.perm) {
      dims.push_back(x.dims[static_cast<int>(p)]);
      strides.push_back(x.strides[static_cast<int>(p)]);
    }
    w.pointwise({.mode = P::identity, .x = w.view(n.in[0], dims, strides), .y = to});
    return;
  }
  int64_t from = w.in(n, 0);
  Ints perm(w.tensor(to).dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  for (size_t i = 0; i < o.perm.size(); ++i)
    perm[static_cast<size_t>(w.axis(x, static_cast<int64_t>(i)))] = w.axis(x, o.perm[i]);
  w.converted(w.tensor(from).type, to, [&](int64_t y) {
    Node& node = w.add(Kind::operation_transpose).set(Attr::operation_transpose_permutation, perm);
    set_tensor(node, Attr::operation_transpose_xdesc, from);
    set_tensor(node, Attr::operation_transpose_ydesc, y);
  });
}

void slice(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::SliceOptions>(n);
  const tsr::Tensor& x = w.source().tensor(n.in[0]);
  w.need(92200, "slice");
  int64_t from = w.in(n, 0), to = w.out(n, 0);
  w.converted(w.tensor(from).type, to, [&](int64_t y) {
    Node& node =
        w.add(Kind::operation_slice)
            .set(Attr::operation_slice_start_indices, w.spread(x, o.start, 0))
            .set(Attr::operation_slice_limit_indices, w.spread(x, o.limit.empty() ? x.dims.to_vector() : o.limit, 1))
            .set(Attr::operation_slice_strides, w.spread(x, o.stride, 1));
    set_tensor(node, Attr::operation_slice_xdesc, from);
    set_tensor(node, Attr::operation_slice_ydesc, y);
  });
}

void concat(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::ConcatOptions>(n);
  Uids inputs;
  for (size_t i = 0; i < n.in.size(); ++i) inputs.uids.push_back(w.in(n, static_cast<int>(i)));
  int64_t y = w.out(n, 0);
  Node& node = w.add(Kind::operation_concat)
                   .set(Attr::operation_concat_input_descs, inputs)
                   .set(Attr::operation_concat_axis, Ints{w.axis(w.source().tensor(n.in[0]), o.axis)});
  if (o.inplace_index) node.set(Attr::operation_concat_inplace_index, Ints{*o.inplace_index});
  set_tensor(node, Attr::operation_concat_output_desc, y);
}

void paged_load(Writer& w, const tsr::Node& n) {
  int64_t y = w.out(n, 0), lengths = w.per_batch(n.in[2]);
  bool transposed = attrs<tessera::PagedLoadOptions>(n).transposed;
  const Ints sizes = w.tensor(y).dims;
  if (transposed && sizes[2] == sizes[3]) refuse("paged_load: a square result does not show that it is transposed");
  if (lengths == kAbsent) {  // cuDNN needs them: everything
    Ints dims(w.rank(), 1);
    dims[0] = sizes[0];
    auto steps = static_cast<double>(sizes[transposed ? 3 : 2]);
    lengths = w.contents(dims, DataType::int32, std::vector<double>(static_cast<size_t>(dims[0]), steps));
  }
  add_paged_load(w, w.in(n, 0), w.in(n, 1), lengths, y);
}

void add_paged_load(Writer& w, int64_t container, int64_t table, int64_t lengths, int64_t y) {
  Node& node = w.add(Kind::operation_paged_cache_load);
  set_tensor(node, Attr::operation_paged_cache_load_container_desc, container);
  set_tensor(node, Attr::operation_paged_cache_load_page_table_desc, table);
  set_tensor(node, Attr::operation_paged_cache_load_sequence_desc, lengths);
  set_tensor(node, Attr::operation_paged_cache_load_ydesc, y);
}

void block_scale_quantize(Writer& w, const tsr::Node& n) {
  w.need(90700, "block_scale_quantize");
  const auto& o = attrs<tessera::BlockScaleOptions>(n);
  int64_t x = w.in(n, 0), y = w.out(n, 0), scale = w.out(n, 1);
  Node& node =
      w.add(Kind::operation_block_scale_quantize)
          .set(Attr::operation_block_scale_quantize_math_prec, data_type(n.compute))
          .set(Attr::operation_block_scale_quantize_block_size, std::vector{static_cast<int32_t>(o.block.back())});
  set_tensor(node, Attr::operation_block_scale_quantize_xdesc, x);
  set_tensor(node, Attr::operation_block_scale_quantize_ydesc, y);
  set_tensor(node, Attr::operation_block_scale_quantize_scale_desc, scale);
}

void block_scale_dequantize(Writer& w, const tsr::Node& n) {
  w.need(90700, "block_scale_dequantize");
  const auto& o = attrs<tessera::BlockScaleOptions>(n);
  std::vector<int32_t> block(o.block.begin(), o.block.end());
  if (block.size() < 2) block.insert(block.begin(), 1);  // clients always tell two
  int64_t x = w.in(n, 0), scale = w.in(n, 1), y = w.out(n, 0);
  Node& node = w.add(Kind::operation_block_scale_dequantize)
                   .set(Attr::operation_block_scale_dequantize_math_prec, data_type(n.compute))
                   .set(Attr::operation_block_scale_dequantize_block_size, block);
  if (o.neg_scale) {
    w.need(91300, "neg_scale");
    node.set(Attr::operation_block_scale_dequantize_neg_scale, true);
  }
  set_tensor(node, Attr::operation_block_scale_dequantize_xdesc, x);
  set_tensor(node, Attr::operation_block_scale_dequantize_scale_desc, scale);
  set_tensor(node, Attr::operation_block_scale_dequantize_ydesc, y);
}

namespace {

void add_rng(Writer& w, Node distribution, int64_t seed, int64_t offset, int64_t y) {
  Node& node = w.add(Kind::operation_rng).set(Attr::operation_rng_desc, std::vector{std::move(distribution)});
  set_tensor(node, Attr::operation_rng_seed, seed);
  set_tensor(node, Attr::operation_rng_offset_desc, offset);
  set_tensor(node, Attr::operation_rng_ydesc, y);
}

int64_t integer_or(Writer& w, const tsr::Node& n, int slot, int64_t option) {
  return Writer::has(n, slot) ? w.in(n, slot) : w.scalar(DataType::int64, static_cast<double>(option));
}

// What is kept is divided by how much is kept; the rest is multiplied by 0.
int64_t dropout_factor(Writer& w, double p) {
  w.caveat = "dropout multiplies by its mask: NaN and infinity are not dropped";
  return w.scalar(DataType::float_, 1 / (1 - p));
}

}  // namespace

void add_bernoulli(Writer& w, double keep, int64_t seed, int64_t offset, int64_t y) {
  Node part{Kind::rng, {{Attr::rng_distribution, RngDistribution::bernoulli}}};
  part.set(Attr::rng_bernoulli_dist_probability, keep);
  add_rng(w, std::move(part), seed, offset, y);
}

void rng(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::RngOptions>(n);
  int64_t seed = integer_or(w, n, 0, o.seed), offset = integer_or(w, n, 1, o.offset), y = w.out(n, 0);
  if (o.distribution == tessera::Distribution::bernoulli) return add_bernoulli(w, o.p, seed, offset, y);
  Node part{Kind::rng, {{Attr::rng_distribution, static_cast<RngDistribution>(o.distribution)}}};
  if (o.distribution == tessera::Distribution::uniform)
    part.set(Attr::rng_uniform_dist_minimum, o.low).set(Attr::rng_uniform_dist_maximum, o.high);
  else
    part.set(Attr::rng_normal_dist_mean, o.mean).set(Attr::rng_normal_dist_standard_deviation, o.stddev);
  add_rng(w, std::move(part), seed, offset, y);
}

void dropout(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::DropoutOptions>(n);
  int64_t x = w.in(n, 0), seed = integer_or(w, n, 1, o.seed), offset = integer_or(w, n, 2, o.offset);
  int64_t y = w.out(n, 0), mask = w.out(n, 1);
  if (mask == kAbsent) mask = w.temporary(w.tensor(x).dims);
  add_bernoulli(w, 1 - o.p, seed, offset, mask);
  int64_t kept = w.pointwise(P::mul, x, mask);
  int64_t factor = o.p == 1 ? w.scalar(DataType::float_, 0) : dropout_factor(w, o.p);
  w.pointwise({.mode = P::mul, .x = kept, .b = factor, .y = y});
}

void dropout_bwd(Writer& w, const tsr::Node& n) {
  const auto& o = attrs<tessera::DropoutOptions>(n);
  if (o.p == 1) refuse("gradients of dropout of everything");
  tsr::DType type = w.source().tensor(n.in[1]).dtype;
  int64_t mask = w.in(n, 1);
  if (type != tsr::DType::boolean && type != tsr::DType::bit)  // any number but 0 counts as 1
    mask = w.pointwise({.mode = P::cmp_neq, .x = mask, .b = w.scalar(DataType::float_, 0), .type = DataType::boolean});
  int64_t kept = w.pointwise(P::mul, w.in(n, 0), mask);
  w.pointwise({.mode = P::mul, .x = kept, .b = dropout_factor(w, o.p), .y = w.out(n, 0)});
}

}  // namespace cudnn
