// SPDX-License-Identifier: Apache-2.0
// Golden values: what PyTorch computed in f64 (tests/golden/index.jsonl, data.npz). One function for each group of
// operations turns a case into the text of a graph whose tensors carry the case's names.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/dims.hpp"

namespace tsr {

struct GoldenCase {
  std::string id, op;
  nlohmann::json attrs;
  // Sizes of an array of the case, by name; input or output.
  std::map<std::string, Dims> in, out;
  // "NAME = input f64[sizes]" statements for the given inputs (all when empty); integer arrays become i64.
  std::string declare(const std::vector<std::string>& names = {}) const;
};

// Text of the graph, or nullopt when the operation belongs to another group. Every array in `out` must be an output.
std::optional<std::string> golden_basic(const GoldenCase& c);      // pointwise, reductions, matmul
std::optional<std::string> golden_softmax(const GoldenCase& c);    // softmax, log_softmax and their gradients
std::optional<std::string> golden_attention(const GoldenCase& c);  // sdpa
std::optional<std::string> golden_norm(const GoldenCase& c);       // layer, instance, batch, group and rms norm
std::optional<std::string> golden_recurrent(const GoldenCase& c);  // rnn, lstm, gru, ctc
std::optional<std::string> golden_conv(const GoldenCase& c);       // convolution, pooling, lrn, spatial transformer

// The same gradients from the forward operation and `grad`, given the text of the case; nullopt for a case without any.
std::optional<std::string> golden_gradient(const GoldenCase& c, const std::string& text);

}  // namespace tsr
