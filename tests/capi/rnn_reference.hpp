// SPDX-License-Identifier: Apache-2.0
// Recurrent networks in plain loops, one sequence and one step at a time.
#pragma once

#include <algorithm>

#include "flat.hpp"

namespace client {

// A network and its data. Rows of x and y are found by `row`, so that layouts are the caller's affair.
struct RnnCase {
  cudnnRNNMode_t mode = CUDNN_LSTM;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDirectionMode_t direction = CUDNN_UNIDIRECTIONAL;
  cudnnRNNInputMode_t input = CUDNN_LINEAR_INPUT;
  int inputs = 3, hidden = 4, proj = 0, layers = 1;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
  std::vector<int> lengths = {4, 4};
  int steps = 4;
  double clip = 0;  // cells stay within -clip .. clip; 0: wherever they are

  int batch() const { return static_cast<int>(lengths.size()); }
  int directions() const { return direction == CUDNN_BIDIRECTIONAL ? 2 : 1; }
  int outputs() const { return proj ? proj : hidden; }
  int gates() const { return mode == CUDNN_LSTM ? 4 : mode == CUDNN_GRU ? 3 : 1; }
  int rows() const {
    if (layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED) return steps * batch();
    int n = 0;
    for (int l : lengths) n += l;
    return n;
  }
  int row(int t, int b) const {
    if (layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) return t * batch() + b;
    if (layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED) return b * steps + t;
    int n = b;
    for (int s = 0; s < t; ++s)
      for (int l : lengths) n += l > s;
    return n;
  }
};

// Where matrices and biases begin among the weights, as the library says; -1 where there is none.
struct RnnOffsets {
  struct Part {
    int matrix = -1, bias = -1;
  };
  std::vector<std::vector<Part>> parts;  // by pseudo-layer and linLayerID
};

struct RnnValues {
  Values x, w, h, c;  // given
  Values y, hy, cy;   // computed
};

class RnnReference {
 public:
  RnnReference(const RnnCase& c, const RnnOffsets& o) : c_(c), o_(o) {}

  void forward(RnnValues& v) const {
    int d = c_.directions(), out = c_.outputs();
    v.y.assign(static_cast<size_t>(c_.rows() * d * out), 0);
    v.hy.assign(static_cast<size_t>(c_.layers * d * c_.batch() * out), 0);
    v.cy.assign(static_cast<size_t>(c_.layers * d * c_.batch() * c_.hidden), 0);
    for (int b = 0; b < c_.batch(); ++b) {
      std::vector<Values> sequence;
      for (int t = 0; t < c_.lengths[static_cast<size_t>(b)]; ++t)
        sequence.push_back(slice(v.x, c_.row(t, b), c_.inputs));
      for (int l = 0; l < c_.layers; ++l) {
        std::vector<Values> next(sequence.size());
        for (int k = 0; k < d; ++k) direction(v, b, l * d + k, k == 1, sequence, next);
        sequence = next;
      }
      for (size_t t = 0; t < sequence.size(); ++t) put(v.y, c_.row(static_cast<int>(t), b), sequence[t]);
    }
  }

 private:
  static Values slice(const Values& v, int row, int width) {
    auto first = v.begin() + static_cast<std::ptrdiff_t>(row) * width;
    return {first, first + width};
  }
  static void put(Values& v, int row, const Values& part) {
    std::copy(part.begin(), part.end(), v.begin() + static_cast<std::ptrdiff_t>(row) * static_cast<int>(part.size()));
  }
  static double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

  // Matrix `id` of a pseudo-layer times x, and its bias.
  Values linear(const Values& w, int layer, int id, int rows, const Values& x) const {
    RnnOffsets::Part p = o_.parts[static_cast<size_t>(layer)][static_cast<size_t>(id)];
    Values y(static_cast<size_t>(rows), 0);
    for (size_t i = 0; i < y.size(); ++i) {
      if (p.matrix < 0) y[i] = x[i];  // the input is skipped
      for (size_t j = 0; p.matrix >= 0 && j < x.size(); ++j)
        y[i] += w[static_cast<size_t>(p.matrix) + i * x.size() + j] * x[j];
      if (p.bias >= 0) y[i] += w[static_cast<size_t>(p.bias) + i];
    }
    return y;
  }

  void direction(RnnValues& v, int b, int layer, bool backwards, const std::vector<Values>& xs,
                 std::vector<Values>& ys) const {
    Values h = slice(v.h, layer * c_.batch() + b, c_.outputs());
    Values c = c_.mode == CUDNN_LSTM ? slice(v.c, layer * c_.batch() + b, c_.hidden) : Values();
    for (size_t i = 0; i < xs.size(); ++i) {
      size_t t = backwards ? xs.size() - 1 - i : i;
      step(v.w, layer, xs[t], h, c);
      ys[t].insert(ys[t].end(), h.begin(), h.end());
    }
    put(v.hy, layer * c_.batch() + b, h);
    if (c_.mode == CUDNN_LSTM) put(v.cy, layer * c_.batch() + b, c);
  }

  void step(const Values& w, int layer, const Values& x, Values& h, Values& c) const {
    int gates = c_.gates(), hidden = c_.hidden;
    std::vector<Values> a, r;
    for (int g = 0; g < gates; ++g) {
      a.push_back(linear(w, layer, g, hidden, x));
      r.push_back(linear(w, layer, gates + g, hidden, h));
    }
    Values full(static_cast<size_t>(hidden));
    for (size_t i = 0; i < full.size(); ++i) {
      auto sum = [&](size_t g) { return a[g][i] + r[g][i]; };
      if (c_.mode == CUDNN_RNN_RELU) full[i] = std::max(0.0, sum(0));
      if (c_.mode == CUDNN_RNN_TANH) full[i] = std::tanh(sum(0));
      if (c_.mode == CUDNN_GRU) {
        double z = sigmoid(sum(1)), n = std::tanh(a[2][i] + sigmoid(sum(0)) * r[2][i]);
        full[i] = (1 - z) * n + z * h[i];
      }
      if (c_.mode == CUDNN_LSTM) {
        c[i] = sigmoid(sum(1)) * c[i] + sigmoid(sum(0)) * std::tanh(sum(2));
        if (c_.clip > 0) c[i] = std::clamp(c[i], -c_.clip, c_.clip);
        full[i] = sigmoid(sum(3)) * std::tanh(c[i]);
      }
    }
    h = c_.proj ? linear(w, layer, 2 * gates, c_.proj, full) : full;
  }

  const RnnCase& c_;
  const RnnOffsets& o_;
};

}  // namespace client
