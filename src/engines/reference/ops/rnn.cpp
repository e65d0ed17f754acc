// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/rnn.hpp"

#include <algorithm>

#include "base/philox.hpp"
#include "engines/reference/ops/rnn_cell.hpp"

namespace tsr::ref {
namespace {

using tessera::Phase;
using tessera::RnnLayout;
using tessera::RnnOptions;

template <class R>
std::vector<R> state_row(const Array<R>& states, int64_t state, int64_t b) {
  int64_t n = states.dims[2], first = states.pos(state, b, 0);
  return std::vector<R>(states.data.begin() + first, states.data.begin() + first + n);
}

template <class R>
void set_state_row(Array<R>& states, int64_t state, int64_t b, const std::vector<R>& row) {
  std::copy(row.begin(), row.end(), states.data.begin() + states.pos(state, b, 0));
}

// What the output of `layer` is multiplied with on its way to the next one.
template <class R>
Array<R> dropout_mask(const RnnProblem<R>& p, int64_t layer) {
  const RnnOptions& o = p.options;
  Array<R> mask(Dims{p.steps, p.batch, p.layout.inputs(layer + 1)}, 1);
  if (o.phase == Phase::inference || o.dropout == 0) return mask;
  for (int64_t i = 0; i < mask.size(); ++i) {
    auto word = random_word(static_cast<uint64_t>(o.seed), 0, static_cast<uint64_t>(layer * mask.size() + i));
    mask[i] = bernoulli(word, 1 - o.dropout) ? 1 / (1 - static_cast<R>(o.dropout)) : R(0);
  }
  return mask;
}

template <class R>
void multiply(Array<R>& a, const Array<R>& b) {
  for (int64_t i = 0; i < a.size(); ++i) a[i] *= b[i];
}

template <class R>
struct Run {
  RnnResult<R> result;
  std::vector<Array<R>> inputs;   // of each layer
  std::vector<RnnTape<R>> tapes;  // by state index
};

template <class R>
Run<R> run_forward(const RnnProblem<R>& p) {
  Run<R> run{{{}, p.h0, p.c0}, {}, {}};
  Array<R> sequence = p.x;
  for (int64_t layer = 0; layer < p.options.layers; ++layer) {
    run.inputs.push_back(sequence);
    int64_t outputs = p.layout.outputs();
    Array<R> y(Dims{p.steps, p.batch, p.layout.directions() * outputs});
    for (int64_t direction = 0; direction < p.layout.directions(); ++direction) {
      RnnCell<R> cell(p, layer, direction);
      RnnTape<R> tape = cell.make_tape();
      for (int64_t b = 0; b < p.batch; ++b) {
        std::vector<R> h = state_row(p.h0, cell.state(), b), c = state_row(p.c0, cell.state(), b);
        int64_t length = p.lengths[static_cast<size_t>(b)];
        for (int64_t k = 0; k < length; ++k) {
          int64_t t = cell.time(k, length);
          cell.forward(sequence.data.data() + sequence.pos(t, b, 0), t, b, h, c, tape);
          for (int64_t j = 0; j < outputs; ++j) y.at(t, b, direction * outputs + j) = h[static_cast<size_t>(j)];
        }
        set_state_row(run.result.hn, cell.state(), b, h);
        set_state_row(run.result.cn, cell.state(), b, c);
      }
      run.tapes.push_back(std::move(tape));
    }
    if (layer + 1 == p.options.layers) {
      run.result.y = std::move(y);
      break;
    }
    p.round(y);
    multiply(y, dropout_mask(p, layer));
    p.round(y);
    sequence = std::move(y);
  }
  return run;
}

// Position of step t of sequence b in the tensor, or -1 when it is not there.
class Rows {
 public:
  template <class R>
  explicit Rows(const RnnProblem<R>& p) : steps_(p.steps), batch_(p.batch) {
    bool batch_major = p.options.layout == RnnLayout::batch_major;
    int64_t row = 0;
    for (int64_t t = 0; t < steps_; ++t)
      for (int64_t b = 0; b < batch_; ++b) {
        bool valid = t < p.lengths[static_cast<size_t>(b)];
        if (p.options.packed)
          rows_.push_back(valid ? row++ : -1);
        else
          rows_.push_back(!valid ? -1 : batch_major ? b * steps_ + t : t * batch_ + b);
      }
  }
  int64_t operator()(int64_t t, int64_t b) const { return rows_[static_cast<size_t>(t * batch_ + b)]; }

 private:
  int64_t steps_, batch_;
  Ints rows_;
};

template <class R>
void check_lengths(const RnnProblem<R>& p, int64_t rows) {
  int64_t total = 0;
  for (size_t b = 0; b < p.lengths.size(); ++b) {
    require(p.lengths[b] >= 0 && p.lengths[b] <= p.steps, "seq_lengths[", b, "] = ", p.lengths[b], " is not in 0..",
            p.steps);
    require(!p.options.packed || b == 0 || p.lengths[b] <= p.lengths[b - 1],
            "seq_lengths of packed sequences must not grow, [", b, "] does");
    total += p.lengths[b];
  }
  require(!p.options.packed || total == rows, "seq_lengths add up to ", total, ", the packed sequences have ", rows,
          " steps");
}

}  // namespace

template <class R>
RnnProblem<R> read_rnn(const Context<R>& c, const RnnSlots& slots) {
  const auto& o = c.template options<RnnOptions>();
  Array<R> x = c.in(slots.x);
  RnnProblem<R> p{o, RnnWeights(o, x.dims.back()), 0, 0, {}, {}, c.in(slots.weight), {}, {}};
  if (c.in_tensor(slots.x).dtype == c.in_tensor(slots.weight).dtype) p.operand = c.in_tensor(slots.x).dtype;
  for (int i = 0; i < static_cast<int>(c.node().out.size()); ++i)
    if (p.jitter == 0 && c.wants(i)) p.jitter = c.out_memory(i).jitter;
  bool batch_major = o.layout == RnnLayout::batch_major;
  p.steps = x.dims[batch_major ? 1 : 0];
  if (!o.packed) p.batch = x.dims[batch_major ? 0 : 1];
  if (c.has(slots.seq_lengths))
    p.lengths = c.integers(slots.seq_lengths);
  else
    p.lengths.assign(static_cast<size_t>(p.batch), p.steps);
  if (o.packed) {
    p.batch = static_cast<int64_t>(p.lengths.size());
    check_lengths(p, x.dims[0]);
    p.steps = p.batch > 0 ? p.lengths[0] : 0;
  }
  check_lengths(p, x.dims[0]);
  int64_t states = o.layers * p.layout.directions();
  p.x = unpack_sequences(p, x);
  p.h0 = Array<R>(Dims{states, p.batch, p.layout.outputs()});
  p.c0 = Array<R>(Dims{states, p.batch, p.layout.hidden()});
  if (c.has(slots.h0)) p.h0 = c.in(slots.h0);
  if (c.has(slots.c0)) p.c0 = c.in(slots.c0);
  return p;
}

template <class R>
Array<R> unpack_sequences(const RnnProblem<R>& p, const Array<R>& packed) {
  int64_t width = packed.dims.back();
  Array<R> padded(Dims{p.steps, p.batch, width});
  Rows row(p);
  for (int64_t t = 0; t < p.steps; ++t)
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t j = 0; j < width && row(t, b) >= 0; ++j) padded.at(t, b, j) = packed[row(t, b) * width + j];
  return padded;
}

template <class R>
Array<R> pack_sequences(const RnnProblem<R>& p, const Array<R>& padded, const Dims& dims) {
  int64_t width = dims.back();
  Array<R> packed(dims);
  Rows row(p);
  for (int64_t t = 0; t < p.steps; ++t)
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t j = 0; j < width && row(t, b) >= 0; ++j) packed[row(t, b) * width + j] = padded.at(t, b, j);
  return packed;
}

template <class R>
RnnResult<R> rnn_forward(const RnnProblem<R>& p) {
  return run_forward(p).result;
}

template <class R>
RnnGradients<R> rnn_backward(const RnnProblem<R>& p, const Array<R>& dy, const Array<R>& dhn, const Array<R>& dcn) {
  Run<R> run = run_forward(p);
  RnnGradients<R> result{{}, dhn, dcn, Array<R>(p.weight.dims)};
  Array<R> dsequence = dy;
  for (int64_t layer = p.options.layers - 1; layer >= 0; --layer) {
    const Array<R>& x = run.inputs[static_cast<size_t>(layer)];
    Array<R> dx(x.dims);
    int64_t outputs = p.layout.outputs();
    for (int64_t direction = 0; direction < p.layout.directions(); ++direction) {
      RnnCell<R> cell(p, layer, direction);
      const RnnTape<R>& tape = run.tapes[static_cast<size_t>(cell.state())];
      for (int64_t b = 0; b < p.batch; ++b) {
        std::vector<R> dh = state_row(dhn, cell.state(), b), dc = state_row(dcn, cell.state(), b);
        int64_t length = p.lengths[static_cast<size_t>(b)];
        for (int64_t k = length - 1; k >= 0; --k) {
          int64_t t = cell.time(k, length);
          int64_t at = x.pos(t, b, 0);
          for (int64_t j = 0; j < outputs; ++j)
            dh[static_cast<size_t>(j)] += dsequence.at(t, b, direction * outputs + j);
          cell.backward(x.data.data() + at, t, b, tape, dh, dc, dx.data.data() + at, result.dweight);
        }
        set_state_row(result.dh0, cell.state(), b, dh);
        set_state_row(result.dc0, cell.state(), b, dc);
      }
    }
    if (layer > 0) multiply(dx, dropout_mask(p, layer - 1));
    dsequence = std::move(dx);
  }
  result.dx = std::move(dsequence);
  return result;
}

template <class R>
RnnGradients<R> rnn_backward(const Context<R>& c, const RnnProblem<R>& p, const RnnSlots& slots) {
  Array<R> dhn(p.h0.dims), dcn(p.c0.dims);
  if (c.has(slots.dhn)) dhn = c.in(slots.dhn);
  if (c.has(slots.dcn)) dcn = c.in(slots.dcn);
  return rnn_backward(p, unpack_sequences(p, c.in(slots.dy)), dhn, dcn);
}

template RnnProblem<double> read_rnn(const Context<double>&, const RnnSlots&);
template RnnProblem<float> read_rnn(const Context<float>&, const RnnSlots&);
template Array<double> pack_sequences(const RnnProblem<double>&, const Array<double>&, const Dims&);
template Array<float> pack_sequences(const RnnProblem<float>&, const Array<float>&, const Dims&);
template RnnResult<double> rnn_forward(const RnnProblem<double>&);
template RnnResult<float> rnn_forward(const RnnProblem<float>&);
template RnnGradients<double> rnn_backward(const Context<double>&, const RnnProblem<double>&, const RnnSlots&);
template RnnGradients<float> rnn_backward(const Context<float>&, const RnnProblem<float>&, const RnnSlots&);

}  // namespace tsr::ref
