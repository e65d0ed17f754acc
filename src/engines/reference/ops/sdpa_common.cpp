// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/sdpa_common.hpp"

#include <algorithm>
#include <cmath>

#include "base/philox.hpp"
#include "engines/reference/block_scale.hpp"

namespace tsr::ref {
namespace {

using sdpa::Shape;
using sdpa::Slots;
using tessera::SdpaOptions;

// Steps that the offsets of packed sequences leave room for.
int64_t room(const Memory& m, int64_t b) {
  auto offset = [&](int64_t i) {
    return load<int64_t>(m.ragged->tensor.dtype, m.ragged->data, i) * m.tensor.ragged_multiplier;
  };
  return (offset(b + 1) - offset(b)) / std::max<int64_t>(1, m.tensor.strides[2]);
}

// Lengths of one side: given, as differences of prefix sums, or all steps. At most `full`, or what there is room for
// among the packed sequences of input `open`.
template <class R>
Ints lengths(const Context<R>& c, int seq_len, int cu_seq_len, int64_t batches, int64_t full, std::optional<int> open) {
  Ints n(static_cast<size_t>(batches), full);
  if (c.has(seq_len)) n = c.integers(seq_len);
  if (c.has(cu_seq_len)) {
    Ints cu = c.integers(cu_seq_len);
    for (size_t i = 0; i < n.size(); ++i) n[i] = cu[i + 1] - cu[i];
  }
  for (size_t b = 0; b < n.size(); ++b) {
    int64_t most = open ? std::max(full, room(c.in_memory(*open), static_cast<int64_t>(b))) : full;
    n[b] = std::clamp<int64_t>(n[b], 0, most);
  }
  return n;
}

int64_t longest(const Ints& lengths, int64_t least) {
  for (int64_t n : lengths) least = std::max(least, n);
  return least;
}

// Times one factor for the tensor, or one for each block of it.
template <class R>
Array<R> dequantized(const Context<R>& c, int slot, int descale, const Ints& length, int64_t steps, const Dims& block) {
  bool blocks = c.has(descale) && c.in_tensor(descale).dtype == DType::e8m0;
  if (!blocks) return scaled_input(c, slot, descale, length, steps);
  Array<R> x = c.in(slot, &length), factors = read_scales<R>(c.in_memory(descale), block_axis(block));
  Dims index = Dims::filled(4, 0);
  for (int64_t i = 0; i < x.size(); ++i, next_index(index, x.dims)) x[i] *= factors.at(scale_index(index, block));
  return x;
}

// Step `s` of a batch lies in block page_table[s / block_size] of the container.
template <class R>
Array<R> gather_pages(const Context<R>& c, const Array<R>& container, int page_table, const Shape& n,
                      const Ints& length) {
  Array<int64_t> table = c.template in<int64_t>(page_table);
  int64_t blocks = container.dims[0], heads = container.dims[1], block_size = container.dims[2], d = container.dims[3];
  Array<R> x({n.b, heads, n.skv, d});
  for (int64_t b = 0; b < n.b; ++b)
    for (int64_t s = 0; s < length[static_cast<size_t>(b)]; ++s) {
      int64_t block = table.at(b, 0, s / block_size, 0);
      require(block >= 0 && block < blocks, "page table ", describe(c.in_tensor(page_table)), ": batch ", b,
              " names block ", block, " of ", blocks);
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < d; ++i) x.at(b, h, s, i) = container.at(block, h, s % block_size, i);
    }
  return x;
}

template <class R>
void read_inputs(const Context<R>& c, const Slots& s, Attention<R>& a) {
  sdpa::Open open = sdpa::open_sides(c.graph(), c.node());
  auto packed = [](bool yes, int slot) { return yes ? std::optional(slot) : std::nullopt; };
  a.len_q = lengths(c, s.seq_len_q, s.cu_seq_len_q, a.n.b, a.n.sq, packed(open.q, s.q));
  a.len_kv = lengths(c, s.seq_len_kv, s.cu_seq_len_kv, a.n.b, a.n.skv, packed(open.kv, s.k));
  a.n.sq = longest(a.len_q, a.n.sq), a.n.skv = longest(a.len_kv, a.n.skv);
  a.q = dequantized(c, s.q, s.descale_q, a.len_q, a.n.sq, sdpa::kBlockOfQk);
  a.k = dequantized(c, s.k, s.descale_k, a.len_kv, a.n.skv, sdpa::kBlockOfQk);
  a.v = dequantized(c, s.v, s.descale_v, a.len_kv, a.n.skv, sdpa::kBlockOfV);
  if (sdpa::has(c.node(), s.page_table_k)) a.k = gather_pages(c, a.k, s.page_table_k, a.n, a.len_kv);
  if (sdpa::has(c.node(), s.page_table_v)) a.v = gather_pages(c, a.v, s.page_table_v, a.n, a.len_kv);
  bool blocks = c.has(s.descale_v) && c.in_tensor(s.descale_v).dtype == DType::e8m0;
  a.rounds_to_fp8 = is_fp8(c.in_tensor(s.q).dtype) && !blocks;
  a.scale = static_cast<R>(c.template options<SdpaOptions>().scale) * c.template scalar<R>(s.scale, R(1));
}

template <class R>
Array<R> narrow_products(const Attention<R>& a) {
  Array<R> sums(a.n.scores());
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    for (int64_t col = 0; col < a.len_kv[static_cast<size_t>(b)]; ++col) {
      NarrowSum<R> sum;
      for (int64_t i = 0; i < a.n.d; ++i) sum.add(a.q.at(b, h, row, i), a.k.at(b, a.k_head(h), col, i));
      sums.at(b, h, row, col) = sum.total();
    }
  });
  return sums;
}

// Within the diagonal band: col <= row + off + right and col + left > row + off.
bool in_band(const SdpaOptions& o, int64_t row, int64_t col, int64_t len_q, int64_t len_kv) {
  int64_t off = o.align == tessera::Align::bottom_right ? len_kv - len_q : 0;
  int64_t beyond = col - row - off;
  return (!o.right || beyond <= *o.right) && (!o.left || -beyond < *o.left);
}

template <class R>
Array<R> alibi_slopes(const Context<R>& c, const Slots& s, int64_t heads) {
  if (c.has(s.alibi_slopes)) return c.in(s.alibi_slopes);
  Array<R> slopes({1, heads, 1, 1});
  for (int64_t h = 0; h < heads; ++h) slopes[h] = std::exp2(static_cast<R>(-8 * (h + 1)) / static_cast<R>(heads));
  return slopes;
}

template <class R>
void masked_scores(const Context<R>& c, const Slots& s, Attention<R>& a) {
  const auto& o = c.template options<SdpaOptions>();
  Array<R> modified = o.score_mod ? call_on_scores(c, a, *o.score_mod, {a.scaled}) : a.scaled;
  Array<R> bias, slopes;
  Array<int64_t> blocks;
  bool alibi = o.alibi || c.has(s.alibi_slopes);
  if (c.has(s.bias)) bias = c.in(s.bias);
  if (c.has(s.block_mask)) blocks = c.template in<int64_t>(s.block_mask);
  if (alibi) slopes = alibi_slopes(c, s, a.n.hq);
  a.scores = Array<R>(a.n.scores(), kMinusInf<R>);
  each_row(a, [&](int64_t b, int64_t h, int64_t row) {
    int64_t len_q = a.len_q[static_cast<size_t>(b)], len_kv = a.len_kv[static_cast<size_t>(b)];
    for (int64_t col = 0; col < len_kv; ++col) {
      if (!in_band(o, row, col, len_q, len_kv)) continue;
      if (c.has(s.block_mask) && blocks.broadcast_at({b, h, row / sdpa::kMaskBlock, col / sdpa::kMaskBlock}) == 0)
        continue;
      R v = modified.at(b, h, row, col);
      if (c.has(s.bias)) v += bias.broadcast_at({b, h, row, col});
      if (alibi) v += slopes[h] * static_cast<R>(col - row);
      a.scores.at(b, h, row, col) = v;
    }
  });
}

// Element i of the row-major scores, as the sizes say, is kept by the random word i of (seed, offset).
template <class R>
void dropout(const Context<R>& c, const Slots& s, Attention<R>& a) {
  double p = c.template options<SdpaOptions>().dropout;
  a.keep = Array<R>(a.n.scores(), R(1));
  R factor = c.has(s.dropout_mask) ? R(1) : p < 1 ? R(1) / static_cast<R>(1 - p) : R(0);
  a.keep_factor = c.template scalar<R>(s.dropout_scale, factor);
  if (c.has(s.dropout_mask)) {
    Array<R> mask = c.in(s.dropout_mask);
    Dims index = Dims::filled(4, 0);
    for (int64_t i = 0; i < a.keep.size(); ++i, next_index(index, a.keep.dims)) a.keep[i] = mask.broadcast_at(index);
  }
  if (p == 0) return;
  auto seed = static_cast<uint64_t>(c.integers(s.dropout_seed)[0]);
  auto offset = static_cast<uint64_t>(c.integers(s.dropout_offset)[0]);
  Dims index = Dims::filled(4, 0);
  for (int64_t i = 0; i < a.keep.size(); ++i, next_index(index, a.keep.dims)) {
    int64_t row = (index[0] * a.n.hq + index[1]) * a.declared.sq + index[2];
    auto word = static_cast<uint64_t>(row * a.declared.skv + index[3]);
    a.keep[i] = bernoulli(random_word(seed, offset, word), 1 - p) ? R(1) : R(0);
  }
}

}  // namespace

template <class R>
Attention<R> attention(const Context<R>& c, bool narrow) {
  const Slots& s = sdpa::slots(c.node());
  Attention<R> a;
  a.n = a.declared = sdpa::shape(c.graph(), c.node());
  read_inputs(c, s, a);
  a.scaled = narrow && a.rounds_to_fp8 ? narrow_products(a)
                                       : row_products(a, a.q, a.k, [&](int64_t h) { return a.k_head(h); });
  multiply(a.scaled, a.scale);
  masked_scores(c, s, a);
  dropout(c, s, a);
  return a;
}

// For longer sequences than the sizes say it works on tensors that are as much larger.
template <class R>
Array<R> call_on_scores(const Context<R>& c, const Attention<R>& a, const Subgraph& s,
                        const std::vector<Array<R>>& params, size_t first_capture) {
  Dims declared = a.declared.scores(), longer = a.n.scores();
  if (declared == longer) return c.call(s, params, first_capture)[0];
  Subgraph large = s;
  for (TensorId t = 0; t < s.graph.tensor_count(); ++t) {
    bool captured = std::find(s.captures.begin(), s.captures.end(), t) != s.captures.end();
    if (captured || s.graph.tensor(t).is_constant() || !(s.graph.tensor(t).dims == declared)) continue;
    large.graph.edit(t).dims = longer;
    large.graph.edit(t).strides = packed_strides(longer);
  }
  return c.call(large, params, first_capture)[0];
}

template <class R>
void drop(const Attention<R>& a, Array<R>& p) {
  for (int64_t i = 0; i < p.size(); ++i) p[i] *= a.keep[i] * a.keep_factor;
}

template <class R>
Array<R> read_sequences(const Context<R>& c, int slot, const Ints& length, int64_t steps) {
  Memory m = c.in_memory(slot);
  if (m.ragged) m.tensor.dims[2] = steps;
  return read<R>(m, &length);
}

template <class R>
void write_sequences(const Context<R>& c, int slot, const Array<R>& x, const Ints& length) {
  if (!c.wants(slot)) return;
  Memory m = c.out_memory(slot);
  if (m.ragged) m.tensor.dims[2] = x.dims[2];
  Array<R> y(m.tensor.dims);
  Dims index = Dims::filled(4, 0);
  for (int64_t i = 0; i < y.size(); ++i, next_index(index, y.dims)) y[i] = x[x.flat(index)];
  write(m, y, &length);
}

template <class R>
Array<R> scaled_input(const Context<R>& c, int slot, int factor, const Ints& length, int64_t steps) {
  Array<R> x = read_sequences(c, slot, length, steps);
  if (c.has(factor)) multiply(x, c.in(factor)[0]);
  return x;
}

template <class R>
Array<R> amax(const Array<R>& x) {
  Array<R> largest({1, 1, 1, 1});
  for (R v : x.data)
    if (std::isnan(v) || std::fabs(v) > largest[0]) largest[0] = std::fabs(v);
  return largest;
}

template <class R>
void multiply(Array<R>& x, R factor) {
  for (R& v : x.data) v *= factor;
}

template <class R>
void round_for_products(const Context<R>& c, Array<R>& x, bool narrow, int factor, DType type, uint64_t jitter) {
  if (narrow) multiply(x, c.template scalar<R>(factor, R(1)));
  for (R& v : x.data)
    v = narrow && jitter == 0 ? static_cast<R>(round_to(type, v))
                              : round_somewhere(v, is_fp8(type) ? DType::bf16 : type, jitter);
}

template Attention<double> attention(const Context<double>&, bool);
template Attention<float> attention(const Context<float>&, bool);
template Array<double> call_on_scores(const Context<double>&, const Attention<double>&, const Subgraph&,
                                      const std::vector<Array<double>>&, size_t);
template Array<float> call_on_scores(const Context<float>&, const Attention<float>&, const Subgraph&,
                                     const std::vector<Array<float>>&, size_t);
template void drop(const Attention<double>&, Array<double>&);
template void drop(const Attention<float>&, Array<float>&);
template Array<double> read_sequences(const Context<double>&, int, const Ints&, int64_t);
template Array<float> read_sequences(const Context<float>&, int, const Ints&, int64_t);
template void write_sequences(const Context<double>&, int, const Array<double>&, const Ints&);
template void write_sequences(const Context<float>&, int, const Array<float>&, const Ints&);
template Array<double> scaled_input(const Context<double>&, int, int, const Ints&, int64_t);
template Array<float> scaled_input(const Context<float>&, int, int, const Ints&, int64_t);
template Array<double> amax(const Array<double>&);
template Array<float> amax(const Array<float>&);
template void multiply(Array<double>&, double);
template void multiply(Array<float>&, float);
template void round_for_products(const Context<double>&, Array<double>&, bool, int, DType, uint64_t);
template void round_for_products(const Context<float>&, Array<float>&, bool, int, DType, uint64_t);

}  // namespace tsr::ref
