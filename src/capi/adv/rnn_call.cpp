// SPDX-License-Identifier: Apache-2.0
#include "capi/adv/rnn_call.hpp"

#include <algorithm>
#include <numeric>

#include "capi/adv/reserve.hpp"

namespace tsr::capi {
namespace {

size_t rounded(size_t bytes) { return (bytes + 255) / 256 * 256; }

bool all_equal(const std::vector<int32_t>& v) {
  return std::adjacent_find(v.begin(), v.end(), std::not_equal_to<>()) == v.end();
}

// Packed sequences of equal length are an ordinary tensor.
bool has_uneven_lengths(const cudnnRNNDataStruct& d) {
  if (!all_equal(d.lengths)) return true;
  return d.layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED && d.lengths[0] != d.steps;
}

Dims data_dims(const cudnnRNNDataStruct& d, bool uneven, int64_t vector) {
  switch (d.layout) {
    case CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED:
      if (uneven) return {std::accumulate(d.lengths.begin(), d.lengths.end(), int64_t{0}), vector};
      return {d.lengths[0], d.batch, vector};
    case CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED:
      return {d.batch, d.steps, vector};
    default:
      return {d.steps, d.batch, vector};
  }
}

// The graph's operations put 0 past the end of sequences; what is packed has no such place.
bool pads_with_more_than_0(const cudnnRNNDataStruct& y) {
  return y.padding && y.layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED &&
         std::any_of(y.padding->begin(), y.padding->end(), [](std::byte b) { return b != std::byte{0}; });
}

// Frameworks describe states with up to five dimensions, the last of size 1.
Shape without_trailing_ones(const Shape& s, int rank) {
  Shape short_one{s.type, {}, {}};
  for (int i = 0; i < s.dims.size(); ++i)
    if (i < rank || s.dims[i] != 1) short_one.dims.push_back(s.dims[i]), short_one.strides.push_back(s.strides[i]);
  return short_one;
}

}  // namespace

RnnCall::RnnCall(cudnnHandle_t handle, const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x,
                 const int32_t* device_lengths)
    : handle_(&given(handle, "handle")),
      rnn_(rnn),
      data_(x),
      device_lengths_(device_lengths),
      options_(options_of(rnn)),
      layout_(weights_of(rnn)),
      uneven_(has_uneven_lengths(x)) {
  demand(x.vector == rnn.input_size, CUDNN_STATUS_BAD_PARAM, "the vectors of x have ", x.vector,
         " elements, the inputSize of rnnDesc is ", rnn.input_size);
  demand(x.type == rnn.type, CUDNN_STATUS_BAD_PARAM, "x is ", name_of(x.type), ", the dataType of rnnDesc is ",
         name_of(rnn.type));
  demand(std::any_of(x.lengths.begin(), x.lengths.end(), [](int32_t n) { return n > 0; }), CUDNN_STATUS_BAD_PARAM,
         "all sequences of x have length 0");
  bool packs = x.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  options_.packed = packs && uneven_;
  if (x.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) options_.layout = tessera::RnnLayout::batch_major;
  if (options_.packed && handle->device.kind == DeviceKind::cuda) find_rows();
  int64_t states = options_.layers * layout_.directions();
  x_ = packed_shape(rnn.type, data_dims(x, uneven_, x.vector));
  y_ = packed_shape(rnn.type, data_dims(x, uneven_, layout_.directions() * layout_.outputs()));
  h_ = packed_shape(rnn.type, {states, x.batch, layout_.outputs()});
  c_ = packed_shape(rnn.type, {states, x.batch, layout_.hidden()});
  weights_ = packed_shape(rnn.type, {layout_.total()});
  kept_dweights_ = packed_shape(type_of_sums(rnn.type), {layout_.total()});
  reserve_.x = 0;
  reserve_.dweights = rounded(bytes_of(x_));
  reserve_.dropout = reserve_.dweights + rounded(bytes_of(kept_dweights_));
  reserve_.total = reserve_.dropout + rounded(kDropoutStateBytes);
}

// A GPU's engine does not know how many steps packed sequences have and would launch kernels for as many as there are
// rows. Padded ones it knows, and moving rows costs little.
void RnnCall::find_rows() {
  options_.packed = false, options_.layout = tessera::RnnLayout::batch_major;
  const std::vector<int32_t>& lengths = data_.lengths;  // falling
  size_t steps = static_cast<size_t>(lengths[0]);
  rows_.assign(lengths.size() * steps, 0);
  for (size_t t = 0; t < steps; ++t)
    for (size_t b = 0; b < lengths.size() && static_cast<size_t>(lengths[b]) > t; ++b) {
      rows_[b * steps + t] = static_cast<int32_t>(places_.size());
      places_.push_back(static_cast<int32_t>(b * steps + t));
    }
}

void RnnCall::check_y(const cudnnRNNDataStruct& y) const {
  demand(y.layout == data_.layout && y.steps == data_.steps && y.batch == data_.batch && y.lengths == data_.lengths &&
             y.type == data_.type,
         CUDNN_STATUS_BAD_PARAM, "xDesc and yDesc must have equal types, layouts, steps, batches and lengths");
  demand(y.vector == y_.dims.back(), CUDNN_STATUS_BAD_PARAM, "the vectors of y have ", y.vector,
         " elements, with rnnDesc they have ", y_.dims.back());
}

void RnnCall::use_states(const Shape* h, const Shape* c, const RnnBuffers& b) {
  auto use = [&](const Shape* given_shape, Shape& ours, const char* name) {
    Shape s = without_trailing_ones(given(given_shape, name), ours.dims.size());
    demand(s.dims == ours.dims && s.type == ours.type, CUDNN_STATUS_BAD_PARAM, name, " is ", s, ", needed is ",
           name_of(ours.type), " ", ours.dims);
    ours = s;
  };
  if (b.hx || b.hy || b.dhx || b.dhy) use(h, h_, "hDesc");
  if (options_.mode == tessera::RnnMode::lstm && (b.cx || b.cy || b.dcx || b.dcy)) use(c, c_, "cDesc");
}

size_t RnnCall::weight_bytes() const { return bytes_of(weights_); }

void RnnCall::check_weights(size_t bytes) const {
  demand(bytes >= weight_bytes(), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "weightSpaceSize is ", bytes,
         ", needed are ", weight_bytes());
}

double RnnCall::dropout(bool training) const {
  return training && rnn_.layers > 1 && rnn_.dropout ? static_cast<double>(rnn_.dropout->dropout) : 0;
}

RnnGraph RnnCall::graph(Maker& m, bool training) const {
  return {m, options_, rnn_.input_size, dropout(training), compute()};
}

// What all passes have in common.
Call RnnCall::common_call(const char* name, const RnnBuffers& b, bool training) const {
  Call c(handle_, name);
  const tessera::RnnOptions& o = options_;
  c.key(o.mode, o.hidden, o.proj, o.layers, o.bidirectional, o.input, o.bias, o.layout, o.packed, o.clip_nan)
      .key(o.clip_min.has_value(), o.clip_min.value_or(0), o.clip_max.value_or(0), training, dropout(training));
  bool lstm = o.mode == tessera::RnnMode::lstm;
  c.input(kRnnWeights, weights_, b.weights, "weightSpace")
      .optional_input(kRnnHx, &h_, b.hx)
      .optional_input(kRnnCx, lstm ? &c_ : nullptr, b.cx);
  Shape lengths = packed_shape(CUDNN_DATA_INT32, {data_.batch});
  c.key(uneven_, rows_.empty());
  if (uneven_ && device_lengths_)
    c.input(kRnnLengths, lengths, device_lengths_, "devSeqLengths");
  else if (uneven_)
    c.host_input(kRnnLengths, lengths, data_.lengths.data(), "the sequence lengths");
  if (rows_.empty()) return c;
  int64_t batch = data_.batch, rows = static_cast<int64_t>(places_.size());
  c.host_input(kRnnRows, packed_shape(CUDNN_DATA_INT32, {batch, 1, data_.lengths[0], 1}), rows_.data(), "rows")
      .host_input(kRnnPlaces, packed_shape(CUDNN_DATA_INT32, {1, 1, rows, 1}), places_.data(), "rows");
  return c;
}

Call RnnCall::forward_call(const RnnBuffers& b, bool training, const cudnnRNNDataStruct& y) const {
  Call c = common_call("rnn forward", b, training);
  bool lstm = options_.mode == tessera::RnnMode::lstm;
  c.input(kRnnX, x_, b.x, "x")
      .output(kRnnY, y_, b.y, "y")
      .optional_output(kRnnHy, &h_, b.hy)
      .optional_output(kRnnCy, lstm ? &c_ : nullptr, b.cy);
  bool pads = uneven_ && pads_with_more_than_0(y);
  c.key(pads);
  if (pads) c.scalar(kRnnPadding, y.type, y.padding->data());
  if (!training) return c;
  c.output(kRnnKeptX, x_, at(b.reserve, reserve_.x), "reserveSpace");
  if (dropout(training) > 0) {
    read_dropout_state(c, *rnn_.dropout, kRnnSeed, kRnnOffset);
    write_dropout_copy(c, at(b.reserve, reserve_.dropout), kRnnKeptSeed, kRnnKeptOffset);
  }
  return c;
}

void RnnCall::check_reserve(const RnnBuffers& b) const {
  demand(b.reserve, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "reserveSpace is a null pointer, training needs ",
         reserve_.total, " bytes");
  demand(b.reserve_bytes >= reserve_.total, CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "reserveSpaceSize is ",
         b.reserve_bytes, ", needed are ", reserve_.total);
}

void RnnCall::build_forward(Maker& m, bool training) const {
  graph(m, training).forward();
  if (!training) return;
  keep(m, kRnnX, kRnnKeptX, compute());
  keep(m, kRnnSeed, kRnnKeptSeed, DType::i64), keep(m, kRnnOffset, kRnnKeptOffset, DType::i64);
}

void RnnCall::forward(const RnnBuffers& b, bool training, const cudnnRNNDataStruct& y) const {
  if (training) check_reserve(b);
  forward_call(b, training, y).run_in(b.workspace, b.workspace_bytes, [&](Maker& m) { build_forward(m, training); });
  if (dropout(training) > 0) advance_dropout_state(handle_, *rnn_.dropout);
}

Call RnnCall::backward_call(const RnnBuffers& b) const {
  Call c = common_call("rnn backward", b, true);
  bool lstm = options_.mode == tessera::RnnMode::lstm;
  c.input(kRnnKeptX, x_, at(b.reserve, reserve_.x), "reserveSpace")
      .input(kRnnDy, y_, b.dy, "dy")
      .optional_input(kRnnDhy, &h_, b.dhy)
      .optional_input(kRnnDcy, lstm ? &c_ : nullptr, b.dcy)
      .output(kRnnDx, x_, b.dx, "dx")
      .optional_output(kRnnDhx, &h_, b.dhx)
      .optional_output(kRnnDcx, lstm ? &c_ : nullptr, b.dcx)
      .output(kRnnKeptDweights, kept_dweights_, at(b.reserve, reserve_.dweights), "reserveSpace");
  if (dropout(true) > 0) read_dropout_copy(c, at(b.reserve, reserve_.dropout), kRnnSeed, kRnnOffset);
  return c;
}

void RnnCall::backward_data(const RnnBuffers& b) const {
  check_reserve(b);
  backward_call(b).run_in(b.workspace, b.workspace_bytes, [&](Maker& m) { graph(m, true).backward(); });
}

void RnnCall::backward_weights(const RnnBuffers& b, bool adds) const {
  check_reserve(b);
  deliver_weights(handle_, layout_.total(), rnn_.type, at(b.reserve, reserve_.dweights), b.dweights, adds);
}

size_t RnnCall::workspace_bytes(bool training) const {
  RnnBuffers b;
  for (const void** p : {&b.x, &b.weights, &b.hx, &b.cx, &b.dy, &b.dhy, &b.dcy}) *p = kSomewhere;
  for (void** p : {&b.y, &b.hy, &b.cy, &b.dx, &b.dhx, &b.dcx, &b.reserve}) *p = kSomewhere;
  Call forward = forward_call(b, training, data_);
  size_t bytes = forward.workspace_bytes(*forward.plan([&](Maker& m) { build_forward(m, training); }));
  if (!training) return bytes;
  Call backward = backward_call(b);
  return std::max(bytes, backward.workspace_bytes(*backward.plan([&](Maker& m) { graph(m, true).backward(); })));
}

}  // namespace tsr::capi
