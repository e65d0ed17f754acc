// SPDX-License-Identifier: Apache-2.0
// Names under which users of PyTorch, NumPy, JAX and ONNX look for operations.
#include "graph/op.hpp"

namespace tsr {

std::span<const ElsewhereName> names_elsewhere() {
  constexpr std::string_view kRows = "whose batches broadcast", kSizes = "with the option size";
  constexpr std::string_view kLimits = "with the options lower and upper";
  static constexpr ElsewhereName kNames[] = {
      {"attention", "sdpa_fwd"},
      {"amax", "reduce_max"},
      {"amin", "reduce_min"},
      {"bmm", "matmul", kRows},
      {"cast", "identity", "whose result has the other type"},
      {"clamp", "relu", kLimits},
      {"clip", "relu", kLimits},
      {"conv", "conv_fprop"},
      {"conv1d", "conv_fprop"},
      {"conv2d", "conv_fprop"},
      {"conv3d", "conv_fprop"},
      {"conv_transpose", "conv_dgrad"},
      {"convert", "identity", "whose result has the other type"},
      {"deconv", "conv_dgrad"},
      {"divide", "div"},
      {"dot", "matmul"},
      {"einsum", "matmul", "with transpose and reshape around it"},
      {"expand", "add", "which broadcasts, as all pointwise operations do"},
      {"flatten", "reshape", kSizes},
      {"gemm", "matmul", kRows},
      {"index_select", "gather"},
      {"linear", "matmul", "and add of the bias"},
      {"multiply", "mul"},
      {"negative", "neg"},
      {"nll_loss", "cross_entropy", "of logits"},
      {"permute", "transpose", "with the option perm"},
      {"power", "pow"},
      {"prod", "reduce_mul"},
      {"scaled_dot_product_attention", "sdpa_fwd"},
      {"scatter", "scatter_add"},
      {"sdpa", "sdpa_fwd"},
      {"sort", "top_k"},
      {"split", "slice", "once for each part"},
      {"squeeze", "reshape", kSizes},
      {"stack", "concat", "after reshape"},
      {"subtract", "sub"},
      {"take", "gather"},
      {"unsqueeze", "reshape", kSizes},
      {"view", "reshape", kSizes},
      {"where", "select", "with the condition last"},
  };
  return kNames;
}

}  // namespace tsr
