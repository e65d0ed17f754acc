// SPDX-License-Identifier: Apache-2.0
// Attention: forward as one operation where the version has what the node asks for, otherwise spelled out as products,
// masks and softmax, in the order that the library's engines recognise; backward always spelled out.
#include <cmath>
#include <limits>

#include "cudnn/translations.hpp"
#include "graph/ops/list.hpp"
#include "graph/ops/sdpa_common.hpp"

namespace cudnn {
namespace {

using P = PointwiseMode;
using tessera::SdpaOptions;
namespace fwd = tsr::sdpa::fwd;
namespace bwd = tsr::sdpa::bwd;

struct Lengths {
  int64_t q = kAbsent, kv = kAbsent, cu_q = kAbsent, cu_kv = kAbsent;
};

// Keeps what lies on one side of a diagonal of the scores: by `left` of it, or `right` of it.
struct Band {
  P compare = P::cmp_ge;
  Lengths off;                              // for diagonals that end in the lower right corner
  int64_t left = kAbsent, right = kAbsent;  // how far the diagonal is moved
};

int64_t add_band(Writer& w, int64_t x, int64_t fill, const Band& m, int64_t y = kAbsent) {
  if (w.version() >= 92100) {
    if (y == kAbsent) y = w.temporary(w.tensor(x).dims);
    Node& node =
        w.add(Kind::operation_diagonal_band_mask).set(Attr::operation_diagonal_band_mask_comparison_mode, m.compare);
    set_tensor(node, Attr::operation_diagonal_band_mask_xdesc, x);
    set_tensor(node, Attr::operation_diagonal_band_mask_bdesc, fill);
    set_tensor(node, Attr::operation_diagonal_band_mask_seq_len_qdesc, m.off.q);
    set_tensor(node, Attr::operation_diagonal_band_mask_seq_len_kvdesc, m.off.kv);
    set_tensor(node, Attr::operation_diagonal_band_mask_cu_seq_len_qdesc, m.off.cu_q);
    set_tensor(node, Attr::operation_diagonal_band_mask_cu_seq_len_kvdesc, m.off.cu_kv);
    set_tensor(node, Attr::operation_diagonal_band_mask_left_bound_desc, m.left);
    set_tensor(node, Attr::operation_diagonal_band_mask_shift_right_bound_desc, m.right);
    set_tensor(node, Attr::operation_diagonal_band_mask_ydesc, y);
    return y;
  }
  if (m.off.cu_q != kAbsent || m.off.cu_kv != kAbsent) w.need(92400, "a mask by cumulative lengths");
  auto move = [&](P mode, int64_t a, int64_t by) {
    if (by == kAbsent) return a;
    DataType type = w.tensor(by).type == DataType::float_ ? DataType::float_ : DataType::int32;
    return w.pointwise({.mode = mode, .x = a, .b = by, .precision = type, .type = type});
  };
  int64_t row = w.index(x, 2, DataType::float_), col = w.index(x, 3, DataType::float_), first = row, second = col;
  if (m.left == kAbsent)
    first = move(P::add, move(P::sub, move(P::add, row, m.off.kv), m.off.q), m.right);
  else
    first = move(P::add, move(P::sub, move(P::add, col, m.left), m.off.kv), m.off.q), second = row;
  int64_t keep = w.pointwise(
      {.mode = m.compare, .x = first, .b = second, .precision = DataType::boolean, .type = DataType::boolean});
  return w.pointwise({.mode = P::binary_select, .x = x, .b = fill, .t = keep, .y = y});
}

// What both directions share.
class Attention {
 public:
  Attention(Writer& w, const tsr::Node& n)
      : w(w),
        n(n),
        o(tsr::attrs<SdpaOptions>(n)),
        slots(tsr::sdpa::slots(n)),
        shape(tsr::sdpa::shape(w.source(), n)),
        type(data_type(w.source().tensor(n.in[0]).dtype)),
        scores(shape.scores().to_vector()),
        rows({shape.b, shape.hq, shape.sq, 1}) {
    bool q = has(slots.seq_len_q) || has(slots.cu_seq_len_q), kv = has(slots.seq_len_kv) || has(slots.cu_seq_len_kv);
    q_length = length_or_size(slots.seq_len_q, slots.cu_seq_len_q, kv, shape.sq);
    kv_length = length_or_size(slots.seq_len_kv, slots.cu_seq_len_kv, q, shape.skv);
  }

 protected:
  bool has(int slot) const { return Writer::has(n, slot); }
  int64_t in(int slot) const { return w.in(n, slot); }
  int64_t length(int slot) const { return has(slot) ? w.per_batch(n.in[static_cast<size_t>(slot)]) : kAbsent; }
  // Lengths go in pairs: where only one is given, the other is the size.
  int64_t length_or_size(int slot, int cumulative, bool other, int64_t size) const {
    if (has(slot) || has(cumulative) || !other) return length(slot);
    std::vector<double> values(static_cast<size_t>(shape.b), static_cast<double>(size));
    return w.contents({shape.b, 1, 1, 1}, DataType::int32, values);
  }
  bool is_fp8() const { return type == DataType::fp8_e4m3 || type == DataType::fp8_e5m2; }
  bool masked() const { return o.left || o.right; }
  bool padded() const { return q_length != kAbsent && kv_length != kAbsent; }
  Lengths lengths() const { return {q_length, kv_length, length(slots.cu_seq_len_q), length(slots.cu_seq_len_kv)}; }
  int64_t minus_infinity() const { return w.scalar(DataType::float_, -std::numeric_limits<double>::infinity()); }
  int64_t scalar(double v) const { return w.scalar(DataType::float_, v); }

  int64_t scale() const {
    if (has(slots.scale) && o.scale != 1) refuse("two scales of the scores");
    if (has(slots.scale)) return in(slots.scale);
    return o.scale == 1 ? kAbsent : scalar(o.scale);
  }
  int64_t times(int64_t x, int64_t factor) const { return factor == kAbsent ? x : w.pointwise(P::mul, x, factor); }

  // The same memory with its last two dimensions the other way round.
  int64_t transposed(int slot) const {
    tsr::TensorId id = n.in[static_cast<size_t>(slot)];
    const tsr::Tensor& t = w.source().tensor(id);
    Ints dims = t.dims.to_vector(), strides = t.strides.to_vector();
    std::swap(dims[2], dims[3]);
    std::swap(strides[2], strides[3]);
    return w.view(id, dims, strides);
  }

  int64_t slopes() const {
    if (has(slots.alibi_slopes)) return in(slots.alibi_slopes);
    std::vector<double> values;
    for (int64_t head = 1; head <= shape.hq; ++head)
      values.push_back(std::exp2(-8.0 * static_cast<double>(head) / static_cast<double>(shape.hq)));
    return w.contents({1, shape.hq, 1, 1}, DataType::float_, values);
  }

  int64_t score_mod(int64_t s) const {
    return o.score_mod ? w.inline_subgraph(*o.score_mod, {s}, n.captures, translate) : s;
  }

  int64_t bias_and_alibi(int64_t s) const {
    if (has(slots.bias)) s = w.pointwise(P::add, s, in(slots.bias));
    if (!o.alibi && !has(slots.alibi_slopes)) return s;
    int64_t row = w.index(s, 2), col = w.index(s, 3);
    int64_t distance =
        w.pointwise({.mode = P::sub, .x = col, .b = row, .precision = DataType::int32, .type = DataType::int32});
    return w.pointwise(P::add, s, w.pointwise(P::mul, distance, slopes()));
  }

  int64_t padding(int64_t s) const {
    if (!padded()) return s;
    auto within = [&](int64_t axis, int64_t length) {
      return w.pointwise({.mode = P::cmp_lt,
                          .x = w.index(s, axis),
                          .b = length,
                          .precision = DataType::boolean,
                          .type = DataType::boolean});
    };
    int64_t row = within(2, q_length), col = within(3, kv_length);
    int64_t both = w.pointwise(
        {.mode = P::logical_and, .x = row, .b = col, .precision = DataType::boolean, .type = DataType::boolean});
    return w.pointwise({.mode = P::binary_select, .x = s, .b = minus_infinity(), .t = both});
  }

  int64_t band(int64_t s) const {
    bool corner = o.align == tessera::Align::bottom_right;
    bool counted = padded() || has(slots.cu_seq_len_q) || has(slots.cu_seq_len_kv);
    auto integer = [&](int64_t v) { return w.scalar(DataType::int32, static_cast<double>(v)); };
    if (o.right) {
      Band m{.compare = P::cmp_ge};
      if (corner && counted) m.off = lengths();
      if (corner && !counted) m.off = {.q = integer(shape.sq), .kv = integer(shape.skv)};
      if (*o.right != 0) m.right = integer(*o.right);
      s = add_band(w, s, minus_infinity(), m);
    }
    if (o.left) {
      Band m{.compare = P::cmp_gt};
      if (corner && counted) m.off = lengths();
      int64_t off = corner && !counted ? shape.skv - shape.sq : 0;
      m.left = counted ? integer(*o.left) : scalar(static_cast<double>(*o.left - off));
      s = add_band(w, s, minus_infinity(), m);
    }
    return s;
  }

  int64_t dropout_stream(int slot) const { return has(slot) ? in(slot) : w.scalar(DataType::int64, 0); }

  Writer& w;
  const tsr::Node& n;
  const SdpaOptions& o;
  const tsr::sdpa::Slots& slots;
  tsr::sdpa::Shape shape;
  DataType type;
  Ints scores, rows;  // sizes of the scores, and of one value for each of their rows
  int64_t q_length = kAbsent, kv_length = kAbsent;
};

class Forward : Attention {
 public:
  using Attention::Attention;

  void write() {
    if (!is_fp8() && (wants(fwd::kAmaxS) || wants(fwd::kAmaxO))) refuse("the largest magnitudes of 8-bit attention");
    if (!is_fp8() && (has(slots.descale_k) || has(slots.descale_v))) refuse("8-bit keys or values of wider queries");
    if (wants(fwd::kRngDump) && o.dropout == 0) refuse("a dropout mask without dropout");
    if (o.dropout == 1) refuse("dropout of everything");
    if (is_one_operation())
      one_operation();
    else
      spelled_out();
  }

 private:
  bool wants(int slot) const { return n.out[static_cast<size_t>(slot)] != tsr::kNone; }
  bool changes_scores() const {
    return masked() || has(slots.bias) || o.alibi || has(slots.alibi_slopes) || o.score_mod;
  }

  bool is_one_operation() const {
    bool special = changes_scores() || has(slots.sink) || wants(fwd::kMax) || wants(fwd::kSumExp);
    bool counted = has(slots.cu_seq_len_q) || has(slots.cu_seq_len_kv);
    bool sequences = has(slots.seq_len_q) || has(slots.seq_len_kv) || has(slots.page_table_k);
    int64_t since = 91301;
    if (has(slots.block_mask)) since = std::max<int64_t>(since, 91400);
    if (sequences) since = std::max<int64_t>(since, 91500);
    if (special) since = std::max<int64_t>(since, 92100);
    if (o.dropout > 0) since = std::max<int64_t>(since, 92200);
    if (counted) since = std::max<int64_t>(since, 92400);
    if (is_fp8()) since = std::max<int64_t>(since, 92500);
    if (o.stats_log2) since = std::max<int64_t>(since, 92700);
    bool half = type == DataType::half || type == DataType::bfloat16;
    bool lists_dropout = has(slots.dropout_mask) || has(slots.dropout_scale) || (o.dropout > 0 && wants(fwd::kStats));
    return w.version() >= since && (half || is_fp8()) && !lists_dropout;
  }

  void one_operation() {
    int64_t q = in(slots.q), k = in(slots.k), v = in(slots.v), out = w.out(n, fwd::kO), factor = scale();
    int64_t stats = w.out(n, fwd::kStats), subgraph_in = kAbsent, subgraph_out = kAbsent;
    std::vector<Node> modifications, softmax;
    if (changes_scores()) {
      modifications = w.aside([&] {
        subgraph_in = w.temporary(scores);
        subgraph_out = band(bias_and_alibi(score_mod(subgraph_in)));
      });
    }
    bool old = w.version() < 92100;
    if (!old && (stats != kAbsent || wants(fwd::kMax) || wants(fwd::kSumExp) || has(slots.sink))) {
      softmax = w.aside([&] {
        add_softmax(w, {.x = w.temporary(scores),
                        .rows = rows,
                        .sink = in(slots.sink),
                        .y = w.temporary(scores),
                        .stats = stats,
                        .max = w.out(n, fwd::kMax),
                        .sum_exp = w.out(n, fwd::kSumExp),
                        .stats_log2 = o.stats_log2});
      });
    }
    std::vector<Field> tensors = optional_tensors();
    Node& node = w.add(Kind::operation_sdpa_fwd);
    set_tensor(node, Attr::operation_sdpa_fwd_qdesc, q);
    set_tensor(node, Attr::operation_sdpa_fwd_kdesc, k);
    set_tensor(node, Attr::operation_sdpa_fwd_vdesc, v);
    set_tensor(node, Attr::operation_sdpa_fwd_odesc, out);
    set_tensor(node, Attr::operation_sdpa_fwd_scaledesc, factor);
    if (old) set_tensor(node, Attr::operation_sdpa_fwd_statsdesc, stats);
    if (!softmax.empty()) node.set(Attr::operation_sdpa_fwd_softmax_desc, std::move(softmax));
    if (!modifications.empty()) {
      Node graph{Kind::operationgraph, {{Attr::operationgraph_ops, std::move(modifications)}}};
      node.set(Attr::operation_sdpa_fwd_subgraph, std::vector{std::move(graph)})
          .set(Attr::operation_sdpa_fwd_subgraph_input_uid, Ints{subgraph_in})
          .set(Attr::operation_sdpa_fwd_subgraph_output_uid, Ints{subgraph_out});
    }
    if (o.dropout > 0) node.set(Attr::operation_sdpa_fwd_dropout_probability, static_cast<float>(o.dropout));
    node.fields.insert(node.fields.end(), tensors.begin(), tensors.end());
  }

  // Inputs and outputs that are handed over as they are.
  std::vector<Field> optional_tensors() {
    Node list{Kind::operation_sdpa_fwd, {}};
    set_tensor(list, Attr::operation_sdpa_fwd_block_mask_desc, in(slots.block_mask));
    set_tensor(list, Attr::operation_sdpa_fwd_page_table_kdesc, in(slots.page_table_k));
    set_tensor(list, Attr::operation_sdpa_fwd_page_table_vdesc, in(slots.page_table_v));
    set_tensor(list, Attr::operation_sdpa_fwd_seq_len_qdesc, q_length);
    set_tensor(list, Attr::operation_sdpa_fwd_seq_len_kvdesc, kv_length);
    set_tensor(list, Attr::operation_sdpa_fwd_cu_seq_len_qdesc, length(slots.cu_seq_len_q));
    set_tensor(list, Attr::operation_sdpa_fwd_cu_seq_len_kvdesc, length(slots.cu_seq_len_kv));
    if (o.dropout > 0) {
      set_tensor(list, Attr::operation_sdpa_fwd_dropout_seed_desc, dropout_stream(slots.dropout_seed));
      set_tensor(list, Attr::operation_sdpa_fwd_dropout_offset_desc, dropout_stream(slots.dropout_offset));
      set_tensor(list, Attr::operation_sdpa_fwd_dropout_rng_dump_desc, w.out(n, fwd::kRngDump));
    }
    if (!is_fp8()) return list.fields;
    set_tensor(list, Attr::operation_sdpa_fwd_descale_qdesc, or_one(slots.descale_q));
    set_tensor(list, Attr::operation_sdpa_fwd_descale_kdesc, or_one(slots.descale_k));
    set_tensor(list, Attr::operation_sdpa_fwd_descale_vdesc, or_one(slots.descale_v));
    if (has_block_scales()) {
      if (wants(fwd::kAmaxO)) set_tensor(list, Attr::operation_sdpa_fwd_amax_odesc, w.out(n, fwd::kAmaxO));
      return list.fields;
    }
    set_tensor(list, Attr::operation_sdpa_fwd_descale_sdesc, or_one(slots.descale_s));
    set_tensor(list, Attr::operation_sdpa_fwd_scale_sdesc, or_one(slots.scale_s));
    set_tensor(list, Attr::operation_sdpa_fwd_scale_odesc, or_one(fwd::kScaleO));
    set_tensor(list, Attr::operation_sdpa_fwd_amax_sdesc, amax(fwd::kAmaxS));
    set_tensor(list, Attr::operation_sdpa_fwd_amax_odesc, amax(fwd::kAmaxO));
    return list.fields;
  }

  int64_t or_one(int slot) { return has(slot) ? in(slot) : w.contents({1, 1, 1, 1}, DataType::float_, {1}); }

  bool has_block_scales() const {
    return is_fp8() && has(slots.descale_q) &&
           w.source().tensor(n.in[static_cast<size_t>(slots.descale_q)]).dtype == tsr::DType::e8m0;
  }

  // The largest magnitudes are always computed.
  int64_t amax(int slot) { return wants(slot) ? w.out(n, slot) : w.temporary({1, 1, 1, 1}); }

  void spelled_out() {
    if (has(slots.block_mask)) refuse("a block mask that this version's attention operation does not take");
    if (has(slots.cu_seq_len_q) || has(slots.cu_seq_len_kv))
      refuse("cumulative lengths outside the attention operation");
    if (o.stats_log2) refuse("stats_log2 outside the attention operation");
    if (has_block_scales()) refuse("block scales outside the attention operation");
    int64_t s = w.temporary(scores);
    add_matmul(w, {.a = in(slots.q), .b = keys(), .c = s, .m = q_length, .n = kv_length});
    s = times(s, scale());
    if (is_fp8()) s = times(times(s, or_one(slots.descale_q)), or_one(slots.descale_k));
    s = band(padding(bias_and_alibi(score_mod(s))));
    bool drops = o.dropout > 0 || has(slots.dropout_mask);
    int64_t p = w.temporary(scores, drops || is_fp8() ? DataType::float_ : value_type());
    int64_t max = w.out(n, fwd::kMax), sum_exp = w.out(n, fwd::kSumExp), stats = w.out(n, fwd::kStats);
    // Statistics belong to the pattern even when nobody asked for them.
    Softmax softmax{
        .x = s, .rows = rows, .sink = in(slots.sink), .y = p, .stats = stats, .max = max, .sum_exp = sum_exp};
    if (stats == kAbsent && max == kAbsent && sum_exp == kAbsent && !softmax_is_operation(w, softmax))
      softmax.stats = w.temporary(rows);
    add_softmax(w, softmax);
    if (drops) p = dropped(p);
    if (is_fp8()) p = narrowed(p);
    int64_t out = w.out(n, fwd::kO), product = is_fp8() ? w.temporary(w.tensor(out).dims) : out;
    add_matmul(w, {.a = p, .b = values(), .c = product, .m = q_length, .k = kv_length});
    if (is_fp8()) rescale(product, out);
  }

  DataType value_type() const { return data_type(w.source().tensor(n.in[static_cast<size_t>(slots.v)]).dtype); }

  // Probabilities of 8 bits for the second product.
  int64_t narrowed(int64_t p) {
    w.reduce(ReduceMode::amax, p, {1, 1, 1, 1}, amax(fwd::kAmaxS));
    return w.pointwise({.mode = P::mul, .x = p, .b = or_one(slots.scale_s), .type = type});
  }

  void rescale(int64_t product, int64_t out) {
    int64_t exact = times(times(product, or_one(slots.descale_s)), or_one(slots.descale_v));
    w.pointwise({.mode = P::mul, .x = exact, .b = or_one(fwd::kScaleO), .y = out});
    w.reduce(ReduceMode::amax, exact, {1, 1, 1, 1}, amax(fwd::kAmaxO));
  }

  int64_t keys() {
    if (!has(slots.page_table_k)) return transposed(slots.k);
    Ints dims = {shape.b, shape.hk, shape.d, shape.skv};
    int64_t k = w.temporary(dims, type, {shape.hk * shape.d * shape.skv, shape.d * shape.skv, 1, shape.d});
    return loaded(slots.k, slots.page_table_k, k);
  }

  int64_t values() {
    if (!has(slots.page_table_v)) return in(slots.v);
    return loaded(slots.v, slots.page_table_v, w.temporary({shape.b, shape.hv, shape.skv, shape.dv}, type));
  }

  int64_t loaded(int container, int table, int64_t y) {
    if (!has(slots.seq_len_kv)) refuse("pages: cuDNN needs seq_len_kv");
    add_paged_load(w, in(container), in(table), kv_length, y);
    return y;
  }

  int64_t dropped(int64_t p) {
    int64_t y = w.temporary(scores, is_fp8() ? DataType::float_ : value_type());
    int64_t factor = has(slots.dropout_scale) ? in(slots.dropout_scale) : scalar(1 / (1 - o.dropout));
    if (has(slots.dropout_mask)) {
      w.pointwise({.mode = P::mul, .x = w.pointwise(P::mul, p, factor), .b = in(slots.dropout_mask), .y = y});
      return y;
    }
    int64_t mask = wants(fwd::kRngDump) ? w.out(n, fwd::kRngDump) : w.temporary(scores);
    add_bernoulli(w, 1 - o.dropout, dropout_stream(slots.dropout_seed), dropout_stream(slots.dropout_offset), mask);
    w.pointwise({.mode = P::mul, .x = w.pointwise(P::mul, p, mask), .b = factor, .y = y});
    return y;
  }
};

class Backward : Attention {
 public:
  using Attention::Attention;

  void write() {
    refuse_what_is_missing();
    w.caveat = "attention gradients are spelled out: infinite scores give NaN";
    int64_t mask = kAbsent;
    if (o.dropout > 0) {
      mask = w.temporary(scores);
      add_bernoulli(w, 1 - o.dropout, dropout_stream(slots.dropout_seed), dropout_stream(slots.dropout_offset), mask);
    }
    int64_t keep = o.dropout > 0 ? scalar(1 / (1 - o.dropout)) : kAbsent;
    int64_t q = in(slots.q), k = transposed(slots.k), v = transposed(slots.v), grad = in(bwd::kDo);
    int64_t factor = scale();
    int64_t sums = row_sums(grad);

    int64_t raw = w.temporary(scores);
    add_matmul(w, {.a = q, .b = k, .c = raw, .m = q_length, .n = kv_length});
    int64_t scaled = times(raw, factor);
    int64_t distance = w.pointwise(P::sub, bias_and_alibi(score_mod(scaled)), in(bwd::kStats));
    int64_t e = w.pointwise(P::exp, band(padding(distance)));
    int64_t p = times(times(e, mask), keep);
    summed_product({.a = flipped(p), .b = grad, .c = w.out(n, bwd::kDv), .m = kv_length, .k = q_length});

    int64_t dp = w.temporary(scores);
    add_matmul(w, {.a = grad, .b = v, .c = dp, .m = q_length, .n = kv_length});
    int64_t ds = times(w.pointwise(P::mul, w.pointwise(P::sub, times(dp, mask), sums), e), keep);
    if (int64_t dbias = w.out(n, bwd::kDbias); dbias != kAbsent)
      w.reduce(ReduceMode::add, ds, w.tensor(dbias).dims, dbias);
    if (o.score_mod_bwd) {
      auto own = n.captures.begin() + static_cast<std::ptrdiff_t>(o.score_mod->captures.size());
      ds = w.inline_subgraph(*o.score_mod_bwd, {ds, scaled}, {own, n.captures.end()}, translate);
    }
    ds = times(ds, factor);
    summed_product({.a = flipped(ds), .b = q, .c = w.out(n, bwd::kDk), .m = kv_length, .k = q_length});
    gradient_of_q(ds, k);
  }

 private:
  void refuse_what_is_missing() const {
    if (is_fp8()) refuse("8-bit attention gradients");
    for (int slot : {bwd::kAmaxDq, bwd::kAmaxDk, bwd::kAmaxDv, bwd::kAmaxDp})
      if (n.out[static_cast<size_t>(slot)] != tsr::kNone) refuse("the largest magnitudes of 8-bit attention");
    if (has(slots.block_mask)) refuse("a block mask in attention gradients");
    if (has(slots.cu_seq_len_q) || has(slots.cu_seq_len_kv)) refuse("cumulative lengths in attention gradients");
    if (has(slots.dropout_mask)) refuse("a dropout mask in attention gradients");
    if (o.stats_log2) refuse("stats_log2: cuDNN's gradients take natural logarithms");
    // Spelled out without o it is no attention, but products, which know of offsets and not of lengths.
    if (has(bwd::kDelta) && (is_packed(slots.q) || is_packed(slots.k)))
      refuse("known sums of do o in gradients of packed sequences");
    // What is one operation for us is many here, with roundings of their own.
    bool together = w.source().producer(n.in[bwd::kStats]) != tsr::kNone;
    if (together && o.dropout > 0) refuse("dropout in attention and its gradients at once, whose numbers are rounded");
    if (together && o.left == 1 && o.right == 0) refuse("gradients of single keys, which cancel to 0 exactly");
  }

  bool is_packed(int slot) const { return w.source().tensor(n.in[static_cast<size_t>(slot)]).ragged != tsr::kNone; }

  // (1 - dropout) times the sums of do o over each row, in memory; the gradient of the sink on the way.
  int64_t row_sums(int64_t grad) {
    if (has(bwd::kDelta)) return in(bwd::kDelta);
    int64_t sums = w.reduce(ReduceMode::add, w.pointwise(P::mul, grad, in(bwd::kO)), rows);
    if (int64_t dsink = w.out(n, bwd::kDsink); dsink != kAbsent) {
      if (q_length != kAbsent) refuse("the gradient of a sink: spelled out, it sums over rows beyond the lengths too");
      int64_t share = w.pointwise(P::exp, w.pointwise(P::sub, in(slots.sink), in(bwd::kStats)));
      w.reduce(ReduceMode::add, w.pointwise(P::mul, share, sums), w.tensor(dsink).dims, dsink);
    }
    int64_t kept = w.scratch(rows);
    w.pointwise({.mode = P::mul, .x = sums, .b = scalar(1 - o.dropout), .y = kept});
    return kept;
  }

  // The transpose of scores, as the type that products take: a view by strides.
  int64_t flipped(int64_t s) {
    Ints strides = packed(scores);
    std::swap(strides[2], strides[3]);
    return reshaped(s, w.temporary({scores[0], scores[1], scores[3], scores[2]}, type, strides));
  }

  int64_t reshaped(int64_t x, int64_t y) {
    add_reshape(w, x, y, ReshapeMode::view_only);
    return y;
  }

  // Where heads share keys, each has a result of its own first.
  void summed_product(Product p) {
    int64_t y = p.c;
    Ints dims = w.tensor(y).dims;
    bool shared = dims[1] != shape.hq;
    dims[1] = shape.hq;
    if (shared) p.c = w.temporary(dims, type);
    add_matmul(w, p);
    if (shared) w.reduce(ReduceMode::add, p.c, w.tensor(y).dims, y);
  }

  // The usual engines add up parts of dq in f32; with a gradient of the bias they store it at once.
  void gradient_of_q(int64_t ds, int64_t k) {
    const Tensor& keys = w.tensor(k);
    Ints dims = {keys.dims[0], keys.dims[1], keys.dims[3], keys.dims[2]};
    Ints strides = {keys.strides[0], keys.strides[1], keys.strides[3], keys.strides[2]};
    int64_t k_again = reshaped(k, w.temporary(dims, DataType::float_, strides));
    int64_t dq = w.out(n, bwd::kDq);
    bool direct = n.out[bwd::kDbias] != tsr::kNone;
    int64_t sum = direct ? dq : w.scratch(w.tensor(dq).dims);
    add_matmul(w, {.a = ds, .b = k_again, .c = sum, .m = q_length, .k = kv_length});
    if (!direct) w.pointwise({.mode = P::identity, .x = sum, .y = dq});
  }
};

}  // namespace

void sdpa_fwd(Writer& w, const tsr::Node& n) { Forward(w, n).write(); }

void sdpa_bwd(Writer& w, const tsr::Node& n) { Backward(w, n).write(); }

void band_mask(Writer& w, const tsr::Node& n) {
  enum In { kX, kFill, kSeqQ, kSeqKv, kCuQ, kCuKv, kLeft, kShift };
  auto compare = tsr::attrs<tessera::BandMaskOptions>(n).compare;
  Band m{
      .compare = compare == tessera::PointwiseMode::cmp_ge ? P::cmp_ge : P::cmp_gt,
      .off = {w.per_batch(n.in[kSeqQ]), w.per_batch(n.in[kSeqKv]), w.per_batch(n.in[kCuQ]), w.per_batch(n.in[kCuKv])},
      .left = w.in(n, kLeft),
      .right = w.in(n, kShift)};
  if (compare != tessera::PointwiseMode::cmp_ge && compare != tessera::PointwiseMode::cmp_gt)
    refuse("band_mask: only comparisons by > and >= are described");
  add_band(w, w.in(n, kX), w.in(n, kFill), m, w.out(n, 0));
}

}  // namespace cudnn
