// SPDX-License-Identifier: Apache-2.0
// cuDNN's programs let tensor cores round operands of f32 to 10 bits of mantissa unless they say otherwise: by math
// type, by leaving out engines with the note TENSOR_CORE, or for the whole process by NVIDIA_TF32_OVERRIDE=0.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tsr::capi {

inline bool may_use_tf32() {
  const char* text = std::getenv("NVIDIA_TF32_OVERRIDE");
  return !text || std::string_view(text) != "0";
}

}  // namespace tsr::capi
