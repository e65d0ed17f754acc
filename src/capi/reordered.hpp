// SPDX-License-Identifier: Apache-2.0
// The order in which tensor cores read filters of INT8x32, and biases beside them, as cudnnReorderFilterAndBias leaves
// them: transposing the memory by an order and reshaping the result gives the plain tensor.
#pragma once

#include "capi/types.hpp"
#include "tessera/options.hpp"

namespace tsr::capi {

struct Reordered {
  Dims memory;  // packed
  std::vector<int64_t> order;
};
// [channels / 32, taps, filters / 8, 2, 8, 4, 4], the taps of all spatial dimensions as one; eight filters are 4 x 2,
// the channels of a vector 8 x 4. `w` is [filters, channels, spatial..]; what is no multiple of 32 is refused.
Reordered reordered_filter(const Dims& w);
// [channels / 32, 2, 4, 4] of 4 x 2 x 4.
Reordered reordered_bias(int64_t channels);

}  // namespace tsr::capi
