// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/rnn_layout.hpp"

#include <algorithm>

#include "graph/ops/phase.hpp"

namespace tsr {
namespace {

using tessera::RnnBias;
using tessera::RnnInput;
using tessera::RnnLayout;
using tessera::RnnMode;
using tessera::RnnOptions;

constexpr std::string_view kModes[] = {"relu", "tanh", "lstm", "gru"};
constexpr std::string_view kInputs[] = {"linear", "skip"};
constexpr std::string_view kBiases[] = {"none", "input", "recurrent", "both"};
constexpr std::string_view kLayouts[] = {"seq_major", "batch_major"};

int64_t gate_count(RnnMode m) { return m == RnnMode::lstm ? 4 : m == RnnMode::gru ? 3 : 1; }

void check_options(const Infer& ctx, const RnnOptions& o, int64_t input_size) {
  ctx.check(o.hidden > 0, "hidden=", o.hidden, " must be positive");
  ctx.check(o.layers > 0, "layers=", o.layers, " must be positive");
  ctx.check(o.proj >= 0 && o.proj <= o.hidden, "proj=", o.proj, " must be between 0 and hidden=", o.hidden);
  ctx.check(o.proj == 0 || o.mode == RnnMode::lstm, "proj=", o.proj, " applies to mode=lstm only");
  ctx.check(o.input == RnnInput::linear || input_size == o.hidden, "input=skip needs x of size hidden=", o.hidden,
            ", it has ", input_size);
  // Sizes of the weights must not leave 64 bits; the estimate is generous.
  double matrix =
      4.0 * static_cast<double>(o.hidden) * (static_cast<double>(input_size) + 3.0 * static_cast<double>(o.hidden));
  ctx.check(2 * static_cast<double>(o.layers) * matrix < 0x1p62, "hidden=", o.hidden, " and layers=", o.layers,
            " give more weights than fit into memory");
  ctx.check(o.dropout >= 0 && o.dropout < 1, "dropout=", o.dropout, " must be at least 0 and less than 1");
  ctx.check(!(o.clip_min || o.clip_max || o.clip_nan) || o.mode == RnnMode::lstm, "clipping applies to mode=lstm only");
  ctx.check(o.clip_min.has_value() == o.clip_max.has_value(), "clip_min and clip_max must be given both or not at all");
  ctx.check(!o.clip_nan || o.clip_min, "clip_nan needs clip_min and clip_max");
  ctx.check(!o.clip_min || *o.clip_min <= *o.clip_max, "clip_min must not be greater than clip_max");
  ctx.check(!o.packed || o.layout == RnnLayout::seq_major, "packed sequences have layout=seq_major");
}

}  // namespace

RnnWeights::RnnWeights(const RnnOptions& o, int64_t input_size)
    : gates_(gate_count(o.mode)),
      directions_(o.bidirectional ? 2 : 1),
      layers_(o.layers),
      hidden_(o.hidden),
      proj_(o.proj),
      input_size_(input_size),
      skip_(o.input == RnnInput::skip),
      input_bias_(o.bias == RnnBias::input || o.bias == RnnBias::both),
      recurrent_bias_(o.bias == RnnBias::recurrent || o.bias == RnnBias::both) {
  total_ = first_bias(layers_, 0);
}

int64_t RnnWeights::matrices(int64_t layer) const {
  return gates_ * hidden_ * (input_columns(layer) + outputs()) + proj_ * hidden_;
}

int64_t RnnWeights::first_matrix(int64_t layer, int64_t direction) const {
  // All layers after the first have equal sizes.
  int64_t before = layer == 0 ? 0 : directions_ * (matrices(0) + (layer - 1) * matrices(1));
  return before + direction * matrices(layer);
}

int64_t RnnWeights::first_bias(int64_t layer, int64_t direction) const {
  int64_t biases = (input_bias_ + recurrent_bias_) * gates_ * hidden_;
  return first_matrix(layers_, 0) + (layer * directions_ + direction) * biases;
}

RnnPart RnnWeights::input(int64_t layer, int64_t direction, int64_t gate) const {
  int64_t columns = input_columns(layer);
  return {first_matrix(layer, direction) + gate * hidden_ * columns, columns > 0 ? hidden_ : 0, columns};
}

RnnPart RnnWeights::recurrent(int64_t layer, int64_t direction, int64_t gate) const {
  int64_t first = first_matrix(layer, direction) + gates_ * hidden_ * input_columns(layer);
  return {first + gate * hidden_ * outputs(), hidden_, outputs()};
}

RnnPart RnnWeights::projection(int64_t layer, int64_t direction) const {
  if (proj_ == 0) return {};
  return {first_matrix(layer, direction) + matrices(layer) - proj_ * hidden_, proj_, hidden_};
}

RnnPart RnnWeights::input_bias(int64_t layer, int64_t direction, int64_t gate) const {
  if (!input_bias_) return {};
  return {first_bias(layer, direction) + gate * hidden_, hidden_, 1};
}

RnnPart RnnWeights::recurrent_bias(int64_t layer, int64_t direction, int64_t gate) const {
  if (!recurrent_bias_) return {};
  return {first_bias(layer, direction) + (gate + input_bias_ * gates_) * hidden_, hidden_, 1};
}

void rnn_fields(std::any& options, FieldVisitor& v) {
  auto& o = *std::any_cast<RnnOptions>(&options);
  v("mode", o.mode, kModes, "the cell");
  v("hidden", o.hidden, "size of its state");
  v("proj", o.proj, "size that the state is projected to; 0: it is not");
  v("layers", o.layers, "one above the other");
  v("bidirectional", o.bidirectional, "a second network reads from the end; results lie side by side");
  v("input", o.input, kInputs, "skip: x is added to the gates as it is");
  v("bias", o.bias, kBiases, "which biases there are");
  v("layout", o.layout, kLayouts, "whether steps or batches come first in x and y");
  v("packed", o.packed, "x and y hold only the valid steps, time by time");
  v("clip_min", o.clip_min, "lower limit of the state of lstm cells");
  v("clip_max", o.clip_max, "upper limit of the state of lstm cells");
  v("clip_nan", o.clip_nan, "a NaN becomes clip_min");
  v("dropout", o.dropout, "probability of dropping between layers, when training");
  v("seed", o.seed, "of dropout");
  v("phase", o.phase, kPhases, "training: keeps what gradients need");
}

RnnSizes check_rnn(const Infer& ctx, const RnnSlots& slots) {
  const auto& o = ctx.options<RnnOptions>();
  const Tensor& x = ctx.in(slots.x);
  for (int i = 0; i < ctx.in_count(); ++i)
    if (ctx.has(i) && i != slots.seq_lengths)
      ctx.check(is_real(ctx.in(i).dtype), ctx.describe(i), " must have a floating-point type, it has ",
                ctx.in(i).dtype);
  int rank = o.packed ? 2 : 3;
  ctx.check_rank(slots.x, rank, rank);
  ctx.check_rank(slots.seq_lengths, 1, 1);
  ctx.check_integer(slots.seq_lengths);
  ctx.check(!o.packed || ctx.has(slots.seq_lengths), "packed=true needs input seq_lengths");
  check_options(ctx, o, x.dims.back());

  RnnSizes s;
  bool batch_major = o.layout == RnnLayout::batch_major;
  s.batch = o.packed ? ctx.in(slots.seq_lengths).numel() : x.dims[batch_major ? 0 : 1];
  s.steps = x.dims[batch_major ? 1 : 0];
  ctx.check_dims(slots.seq_lengths, Dims{s.batch});
  RnnWeights w(o, x.dims.back());
  s.weights = w.total();
  s.y = x.dims;
  s.y[rank - 1] = w.directions() * w.outputs();
  s.hidden = {o.layers * w.directions(), s.batch, w.outputs()};
  s.cell = {o.layers * w.directions(), s.batch, w.hidden()};
  ctx.check(ctx.in(slots.weight).dims == Dims{s.weights}, ctx.describe(slots.weight), " must have sizes ",
            Dims{s.weights}, " for these options");
  for (int slot : {slots.c0, slots.dcn})
    if (slot >= 0 && ctx.has(slot))
      ctx.check(o.mode == RnnMode::lstm, ctx.describe(slot), " belongs to mode=lstm only");
  auto sizes = [&](int slot, const Dims& wanted) {
    if (slot >= 0) ctx.check_dims(slot, wanted);
  };
  sizes(slots.h0, s.hidden);
  sizes(slots.dhn, s.hidden);
  sizes(slots.c0, s.cell);
  sizes(slots.dcn, s.cell);
  sizes(slots.y, s.y);
  sizes(slots.dy, s.y);
  return s;
}

double rnn_flops(const Graph& g, const Node& n) {
  const auto& o = attrs<RnnOptions>(n);
  const Tensor& x = g.tensor(n.in[0]);
  RnnWeights w(o, x.dims.back());
  double rows = static_cast<double>(x.dims[0]) * (o.packed ? 1 : static_cast<double>(x.dims[1]));
  return 2 * rows * static_cast<double>(w.total());
}

double rnn_terms(const Graph& g, const Node& n) {
  const auto& o = attrs<RnnOptions>(n);
  const Tensor& x = g.tensor(n.in[0]);
  double rows = static_cast<double>(x.dims[0]) * (o.packed ? 1 : static_cast<double>(x.dims[1]));
  return static_cast<double>(std::max(x.dims.back(), 2 * o.hidden)) * std::max(rows, 1.0);
}

}  // namespace tsr
