// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/faults.hpp"

#include <oneapi/dnnl/dnnl.hpp>

namespace tsr::onednn {
namespace {

constexpr int kChannel = 1;

int major_version() { return dnnl::version()->major; }
bool has_channels_last(const Tensor& t) { return t.strides[kChannel] == 1; }

}  // namespace

// Version 2.6.3, with AVX-512: wrong values or a segmentation fault where x has more than 16 channels, not a multiple
// of 16, and lines of dy are longer than 28. The sizes come from inside its code; what is asked here holds for all.
bool bf16_wgrad_is_wrong(const Tensor& x, const Tensor& dy, const Ints& dilation) {
  constexpr int64_t kBlock = 16;
  bool dilated_height = dilation.size() > 1 && dilation[dilation.size() - 2] > 1;
  return major_version() < 3 && dilated_height && x.dims[kChannel] % kBlock != 0 && has_channels_last(x) &&
         has_channels_last(dy);
}

}  // namespace tsr::onednn
