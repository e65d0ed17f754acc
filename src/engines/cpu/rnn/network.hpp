// SPDX-License-Identifier: Apache-2.0
// A recurrent network made ready to run: sizes, where everything lies in the workspace, the large products.
//
// Sequences are rows of f32: row start[t] + b holds step t of sequence b. Padded sequences have a row for every step
// (those past the length are skipped and hold 0), packed ones only for the steps that exist. A pass walks over the
// steps in the order of its direction; a sequence that has no such step keeps its state.
#pragma once

#include <algorithm>
#include <memory>

#include "engines/cpu/product/plain.hpp"
#include "engines/cpu/rnn/cells.hpp"
#include "engines/rnn/tensors.hpp"

namespace tsr::cpu {

// Memory of one layer in one direction; offsets into the workspace, in bytes.
struct RnnTape {
  size_t gates = 0;         // [rows, gates * hidden] at stride_; of a few steps where nothing is kept
  size_t recurrent = 0;     // [rows, hidden] gru, likewise
  size_t old_h = 0;         // [rows, outputs] before the step
  size_t old_c = 0;         // [rows, hidden] lstm, before the step
  size_t full_h = 0;        // [rows, hidden] before the projection
  size_t projected_dh = 0;  // [rows, outputs] gradient of the projected state
};

class Network {
 public:
  enum class Pass : uint8_t { forward, backward };
  Network(const tessera::RnnOptions& o, const RnnTensors& t, Pass pass, int threads);

  size_t workspace_bytes() const { return bytes_; }
  void run(void* const* tensors, std::byte* workspace) const;

 private:
  friend class ForwardPass;
  friend class BackwardPass;
  friend class RnnMemory;

  size_t take(int64_t floats);  // from the workspace
  // Rows whose share of the gates is computed at once: enough to make use of the weights, few enough to stay in a
  // cache.
  static constexpr int64_t kFewRows = 128;
  int64_t few_rows() const { return std::min(rows_, kFewRows + batch_); }
  void lay_out();
  void plan_products();
  CellRun cell_run(int64_t n) const;  // n units of a cell; only the limits of the state are set
  const RnnTape& tape(int64_t layer, int64_t direction) const {
    return tapes_[static_cast<size_t>(keeps_ ? layer * w_.directions() + direction : 0)];
  }
  // Input of a layer; that of layer `layers` is the output of the network.
  size_t sequence(int64_t layer) const { return sequences_[static_cast<size_t>(keeps_ ? layer : layer % 2)]; }

  tessera::RnnOptions o_;
  RnnTensors t_;
  RnnWeights w_;
  int threads_;
  bool keeps_;                           // the backward pass needs everything
  int64_t batch_, steps_, rows_, sums_;  // sums: gates * hidden
  int64_t
      stride_;  // between rows of sums: no power of two, which would put a column of tiles into few lines of a cache
  size_t bytes_ = 0;
  size_t lengths_, starts_, h_, c_, full_h_, projected_, packed_h_[2], packed_full_, packed_x_, input_weights_,
      recurrent_weights_, projection_weights_, bias_, recurrent_bias_;
  size_t gradients_[2], dh_, dc_, full_dh_, packed_sums_, packed_dh_, recurrent_back_, projection_back_, dweight_;
  size_t scratch_;  // of the products
  std::vector<size_t> sequences_;
  std::vector<RnnTape> tapes_;
  struct Products {
    std::unique_ptr<PlainProduct> dx, dw, dr, dr_new, dp;
  };
  Products first_, later_;  // of layer 0, of the others
};

}  // namespace tsr::cpu
