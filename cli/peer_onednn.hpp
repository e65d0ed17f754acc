// SPDX-License-Identifier: Apache-2.0
// oneDNN called directly, in the layouts that it likes best and without the cost of getting there: what the oneDNN
// engine is compared with. Empty where oneDNN is not built in or lacks the operation.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/dtype.hpp"

namespace tsr::cli {

// The oneDNN that the library is built with.
struct LinkedOneDnn {
  std::string version, runtime;
  std::string isa, limit;  // instructions that it uses, and why not all of the processor's
  std::string unusable;    // why the engine does not use it
};
std::optional<LinkedOneDnn> linked_onednn();

using PeerWork = std::function<void()>;  // one execution with thread_count() threads

PeerWork peer_matmul(int64_t m, int64_t n, int64_t k, DType type);

enum class PeerConv : uint8_t { fprop, dgrad, wgrad };
struct PeerConvSizes {
  int64_t n, c, h, w, k, r, s, stride, pad;
};
PeerWork peer_conv(PeerConv what, const PeerConvSizes& z, DType type);

PeerWork peer_lstm(int64_t steps, int64_t batch, int64_t inputs, int64_t hidden);  // f32

}  // namespace tsr::cli
