// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/rnn_graph.hpp"

namespace tsr::capi {

using tessera::RnnOptions;
using M = tessera::PointwiseMode;

RnnGraph::RnnGraph(Maker& m, const RnnOptions& o, int64_t input_size, double dropout, DType compute)
    : m_(m), layout_(o, input_size), dropout_(dropout), compute_(compute) {
  int64_t each = dropout > 0 ? 1 : o.layers;
  for (int64_t l = 0; l < o.layers; l += each) {
    Group g{.options = o, .first_layer = l, .matrices = 0, .biases = 0};
    g.options.layers = each;
    if (l > 0) g.options.input = tessera::RnnInput::linear;
    RnnWeights with(g.options, layout_.inputs(l));
    RnnOptions plain = g.options;
    plain.bias = tessera::RnnBias::none;
    g.matrices = RnnWeights(plain, layout_.inputs(l)).total();
    g.biases = with.total() - g.matrices;
    groups_.push_back(g);
  }
}

void RnnGraph::forward() {
  std::vector<TensorId> hy, cy;
  TensorId x = unpack(m_[kRnnX]);
  for (Group& g : groups_) {
    bool last = &g == &groups_.back();
    g.x = x;
    bool direct = last && m_[kRnnPadding] == kNone;
    auto r = run(g, direct ? sequence_result(kRnnY) : kNew, state_result(kRnnHy), state_result(kRnnCy));
    hy.push_back(r[1]), cy.push_back(r[2]);
    if (direct) pack(r[0], kRnnY);
    if (last && !direct) m_.pointwise({.mode = M::identity}, {pad(r[0])}, compute_, m_.result(kRnnY));
    if (!last) x = drop(g, r[0]);
  }
  join(kRnnHy, hy), join(kRnnCy, cy);
}

void RnnGraph::backward() {
  TensorId x = unpack(m_[kRnnKeptX]);
  for (Group& g : groups_) {
    g.x = x, g.weights = weights_of(g);
    if (&g != &groups_.back()) x = drop(g, run(g, kNew, kNone, kNone)[0]);
  }
  std::vector<TensorId> dhx, dcx, dweights;
  TensorId dy = unpack(m_[kRnnDy]);
  for (size_t i = groups_.size(); i-- > 0;) {
    const Group& g = groups_[i];
    TensorId h0 = layers_of(m_[kRnnHx], g), c0 = layers_of(m_[kRnnCx], g), lengths = m_[kRnnLengths];
    TensorId dhn = layers_of(m_[kRnnDhy], g), dcn = layers_of(m_[kRnnDcy], g);
    TensorId dx = i == 0 ? sequence_result(kRnnDx) : kNew;
    auto data = m_.add(ops::rnn_bwd_data, {g.x, g.weights, dy, kNone, h0, c0, lengths, dhn, dcn},
                       {dx, state_result(kRnnDhx), state_result(kRnnDcx)}, g.options, compute_);
    auto weights = m_.add(ops::rnn_bwd_weights, {g.x, g.weights, dy, h0, c0, lengths, dhn, dcn},
                          {cut() ? kNew : m_.result(kRnnKeptDweights)}, g.options, compute_);
    dhx.insert(dhx.begin(), data[1]), dcx.insert(dcx.begin(), data[2]);
    dweights.insert(dweights.begin(), weights[0]);
    if (i == 0) pack(data[0], kRnnDx);
    if (i > 0)
      dy = m_.add(ops::dropout_bwd, {data[0], groups_[i - 1].mask}, {kNew}, tessera::DropoutOptions{.p = dropout_},
                  compute_)[0];
  }
  join(kRnnDhx, dhx), join(kRnnDcx, dcx), join_weights(dweights);
}

std::vector<TensorId> RnnGraph::run(Group& g, TensorId y, TensorId hy, TensorId cy) {
  if (g.weights == kNone) g.weights = weights_of(g);
  return m_.add(ops::rnn_fwd, {g.x, g.weights, layers_of(m_[kRnnHx], g), layers_of(m_[kRnnCx], g), m_[kRnnLengths]},
                {y, hy, cy}, g.options, compute_);
}

// Layers have streams of their own: far behind any offset that calls can have moved on to.
TensorId RnnGraph::drop(Group& g, TensorId y) {
  constexpr double kApart = 0x1p40;
  TensorId offset =
      m_.pointwise({.mode = M::add},
                   {m_[kRnnOffset], m_.constant(static_cast<double>(g.first_layer) * kApart, DType::i64)}, DType::i64);
  auto r = m_.add(ops::dropout, {y, m_[kRnnSeed], offset}, {kNew, m_.inferred(DType::boolean)},
                  tessera::DropoutOptions{.p = dropout_}, compute_);
  g.mask = r[1];
  return r[0];
}

// Rows of the first dimension.
TensorId RnnGraph::slice(TensorId t, int64_t first, int64_t count) {
  Dims d = m_.graph().tensor(t).dims;
  tessera::SliceOptions o;
  for (int i = 0; i < d.size(); ++i) o.start.push_back(i == 0 ? first : 0), o.limit.push_back(i ? d[i] : first + count);
  return m_.add(ops::slice, {t}, {m_.inferred(m_.graph().tensor(t).dtype)}, o, compute_)[0];
}

TensorId RnnGraph::layers_of(TensorId states, const Group& g) {
  if (states == kNone || !cut()) return states;
  return slice(states, g.first_layer * layout_.directions(), g.options.layers * layout_.directions());
}

// All biases lie behind all matrices.
TensorId RnnGraph::weights_of(const Group& g) {
  TensorId all = m_[kRnnWeights];
  if (!cut()) return all;
  int64_t matrix = 0, bias = 0;
  for (const Group& other : groups_) {
    bias += other.matrices;
    if (other.first_layer < g.first_layer) matrix += other.matrices, bias += other.biases;
  }
  TensorId matrices = slice(all, matrix, g.matrices);
  if (g.biases == 0) return matrices;
  TensorId both = m_.inferred(m_.graph().tensor(all).dtype);
  return m_.add(ops::concat, {matrices, slice(all, bias, g.biases)}, {both}, tessera::ConcatOptions{}, compute_)[0];
}

// Where an operation puts final states or their gradients: the caller's memory, or a piece of it to be.
TensorId RnnGraph::state_result(int64_t id) {
  TensorId t = m_.result(id);
  return t == kNone || !cut() ? t : m_.inferred(m_.graph().tensor(t).dtype);
}

void RnnGraph::join(int64_t id, std::vector<TensorId> parts) {
  if (m_.result(id) == kNone || !cut()) return;
  m_.add(ops::concat, std::move(parts), {m_.result(id)}, tessera::ConcatOptions{}, compute_);
}

void RnnGraph::join_weights(const std::vector<TensorId>& parts) {
  std::vector<TensorId> pieces;
  for (size_t i = 0; i < parts.size(); ++i) pieces.push_back(slice(parts[i], 0, groups_[i].matrices));
  for (size_t i = 0; i < parts.size(); ++i)
    if (groups_[i].biases > 0) pieces.push_back(slice(parts[i], groups_[i].matrices, groups_[i].biases));
  join(kRnnKeptDweights, pieces);
}

// The padding's value past the end of each sequence.
TensorId RnnGraph::pad(TensorId y) {
  bool batch_major = groups_[0].options.layout == tessera::RnnLayout::batch_major;
  int64_t batch = m_.graph().tensor(m_[kRnnLengths]).dims[0];
  TensorId lengths = reshape(m_[kRnnLengths], batch_major ? tessera::Ints{batch, 1, 1} : tessera::Ints{1, batch, 1});
  TensorId step = m_.pointwise({.mode = M::gen_index, .axis = batch_major ? 1 : 0}, {y}, DType::i32);
  TensorId inside = m_.inferred(DType::boolean);
  m_.pointwise({.mode = M::cmp_lt}, {step, lengths}, DType::i32, inside);
  return m_.pointwise({.mode = M::select}, {y, m_[kRnnPadding], inside}, compute_);
}

TensorId RnnGraph::reshape(TensorId t, const tessera::Ints& size) {
  DType type = m_.graph().tensor(t).dtype;
  tessera::ReshapeOptions o{.size = size, .mode = tessera::ReshapeMode::logical};
  return m_.add(ops::reshape, {t}, {m_.inferred(type)}, o, is_integer(type) ? type : compute_)[0];
}

// Rows [n, f] in the order of a table, as if they were pages of one step each; 0 beyond the lengths.
TensorId RnnGraph::gather(TensorId rows, TensorId table, TensorId lengths) {
  Dims d = m_.graph().tensor(rows).dims;
  return m_.add(ops::paged_load, {reshape(rows, {d[0], 1, 1, d[1]}), table, lengths},
                {m_.inferred(m_.graph().tensor(rows).dtype)}, tessera::PagedLoadOptions{}, compute_)[0];
}

// [batch, steps, f] of packed rows.
TensorId RnnGraph::unpack(TensorId rows) {
  if (!unpacks()) return rows;
  Dims table = m_.graph().tensor(m_[kRnnRows]).dims;
  TensorId padded = gather(rows, m_[kRnnRows], reshape(m_[kRnnLengths], {table[0], 1, 1, 1}));
  return reshape(padded, {table[0], table[2], m_.graph().tensor(rows).dims[1]});
}

void RnnGraph::pack(TensorId padded, int64_t id) {
  if (!unpacks()) return;
  Dims d = m_.graph().tensor(padded).dims;
  TensorId rows = gather(reshape(padded, {d[0] * d[1], d[2]}), m_[kRnnPlaces], kNone);
  tessera::ReshapeOptions o{.size = {}, .mode = tessera::ReshapeMode::logical};
  m_.add(ops::reshape, {rows}, {m_.result(id)}, o, compute_);
}

// Where an operation puts a sequence: the caller's memory, or what is to be packed there.
TensorId RnnGraph::sequence_result(int64_t id) {
  return unpacks() ? m_.inferred(m_.graph().tensor(m_.result(id)).dtype) : m_.result(id);
}

}  // namespace tsr::capi
