// SPDX-License-Identifier: Apache-2.0
#include "engines/cpu/onednn/faults.hpp"

namespace tsr::onednn {
namespace {

constexpr int kChannel = 1, kSpatial = 2;

bool has_channels_last(const Tensor& t) { return t.strides[kChannel] == 1; }

// Filters that are dilated in height, from channels last that do not fill blocks of 16: wrong from lines of 29 on, or
// reads beyond its memory.
bool dilates_partial_blocks(const Convolution& c) {
  constexpr int64_t kBlock = 16;
  size_t dims = c.shape.dilation.size();
  return dims > 1 && c.shape.dilation[dims - 2] > 0 && c.x.dims[kChannel] % kBlock != 0 && has_channels_last(c.x) &&
         has_channels_last(c.y);
}

// An element of the filter that lies in the padding for every result: its gradient stays as memory was.
bool has_unused_element(const Convolution& c) {
  for (int d = 0; d + kSpatial < c.x.rank(); ++d) {
    auto k = static_cast<size_t>(d);
    for (int64_t e = 0; e < c.w.dims[kSpatial + d]; ++e) {
      bool used = false;
      for (int64_t y = 0; y < c.y.dims[kSpatial + d] && !used; ++y) {
        int64_t x = y * c.shape.stride[k] - c.shape.pad[k] + e * (c.shape.dilation[k] + 1);
        used = x >= 0 && x < c.x.dims[kSpatial + d];
      }
      if (!used) return true;
    }
  }
  return false;
}

// Steps of more than one through a padded depth.
bool strides_padded_depth(const Convolution& c) {
  const ConvShape& s = c.shape;
  return s.stride.size() == 3 && s.stride[0] > 1 && (s.pad[0] > 0 || s.post_pad[0] > 0);
}

}  // namespace

// Seen with AVX-512; gradients of filters in versions 2.6.3 and 3.7.2, the rest in 2.6.3 alone.
bool is_wrong(const Convolution& c, const std::string& implementation) {
  bool is_gemm = implementation.find("gemm") != std::string::npos;
  if (!c.is_wgrad)  // reads the first image's part for all
    return is_gemm && c.reads_whole && c.x.dims[0] > 1 && dnnl::version()->major < 3;
  if (is_gemm || implementation.find("jit") == std::string::npos) return false;
  bool bf16 = c.x.dtype == DType::bf16;
  return strides_padded_depth(c) || (bf16 && (dilates_partial_blocks(c) || has_unused_element(c)));
}

}  // namespace tsr::onednn
