// SPDX-License-Identifier: Apache-2.0
// Operations as functions, so that building a graph reads like the mathematics:
//
//   Tensor y = relu(conv_fprop(x, w, {.pad = {1, 1}}) + b);
//   Results r = sdpa_fwd(q, k, v, {.scale = 0.125, .right = 0}, {{"bias", b}}, {"stats"});
//   Tensor lse = r["stats"];
//
// Optional inputs are given by name, optional outputs are asked for by name; docs/operations.md lists them.
#pragma once

#include <any>

#include "tessera/graph.hpp"

namespace tessera {

using Named = std::vector<std::pair<std::string_view, Tensor>>;
using Wanted = std::vector<std::string_view>;

// The outputs of an operation. Converts to its first output.
class Results {
 public:
  explicit Results(std::vector<std::pair<std::string, Tensor>> outputs) : outputs_(std::move(outputs)) {}
  Tensor operator[](std::string_view name) const;              // raises when it was not asked for
  Tensor operator[](int64_t i) const;                          // in the order of the operation's outputs
  operator Tensor() const { return outputs_.front().second; }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<std::pair<std::string, Tensor>> outputs_;
};

// Any operation by its name in the text form. `options` holds the operation's options struct, or nothing for defaults.
// All inputs by position as far as they go, then by name.
Results call(std::string_view op, const std::vector<Tensor>& inputs, std::any options = {}, const Named& named = {},
             const Wanted& wanted = {});

// --- pointwise. The alphas, clips, slopes and betas are in PointwiseOptions; its mode is set by the function.
Tensor pointwise(PointwiseMode mode, const std::vector<Tensor>& inputs, PointwiseOptions options = {});
Tensor operator+(Tensor a, Tensor b);
Tensor operator-(Tensor a, Tensor b);
Tensor operator*(Tensor a, Tensor b);
Tensor operator/(Tensor a, Tensor b);
Tensor operator+(Tensor a, double b);
Tensor operator-(Tensor a, double b);
Tensor operator*(Tensor a, double b);
Tensor operator/(Tensor a, double b);
Tensor operator+(double a, Tensor b);
Tensor operator-(double a, Tensor b);
Tensor operator*(double a, Tensor b);
Tensor operator/(double a, Tensor b);
Tensor operator-(Tensor a);
Tensor relu(Tensor x, PointwiseOptions options = {});
Tensor gelu(Tensor x);
Tensor gelu_tanh(Tensor x);
Tensor sigmoid(Tensor x);
Tensor tanh(Tensor x);
Tensor swish(Tensor x, PointwiseOptions options = {});
Tensor silu(Tensor x);  // swish with beta = 1
Tensor elu(Tensor x, PointwiseOptions options = {});
Tensor softplus(Tensor x, PointwiseOptions options = {});
Tensor exp(Tensor x);
Tensor log(Tensor x);
Tensor sqrt(Tensor x);
Tensor rsqrt(Tensor x);
Tensor erf(Tensor x);
Tensor abs(Tensor x);
Tensor max(Tensor a, Tensor b);
Tensor min(Tensor a, Tensor b);
Tensor pow(Tensor a, Tensor b);
Tensor max(Tensor a, double b);
Tensor min(Tensor a, double b);
Tensor pow(Tensor a, double b);
Tensor sin(Tensor x);
Tensor cos(Tensor x);
Tensor identity(Tensor x);
Tensor select(Tensor condition, Tensor yes, Tensor no);

// --- reductions
Tensor reduce(Tensor x, ReduceOptions options);
Tensor sum(Tensor x, const Ints& axes = {});
Tensor mean(Tensor x, const Ints& axes = {});
Tensor argmax(Tensor x, int64_t axis = -1);
Results top_k(Tensor x, int64_t k, int64_t axis = -1, const Wanted& wanted = {});
Tensor cumsum(Tensor x, CumsumOptions options = {});

// --- linear algebra and convolution
Tensor matmul(Tensor a, Tensor b, MatmulOptions options = {}, const Named& named = {});
Tensor moe_matmul(Tensor token, Tensor weight, Tensor first_token_offset, MoeOptions options = {},
                  const Named& named = {});
Tensor conv_fprop(Tensor x, Tensor w, ConvOptions options = {}, const Named& named = {});
Tensor conv_dgrad(Tensor dy, Tensor w, ConvOptions options = {}, const Named& named = {});
Tensor conv_wgrad(Tensor dy, Tensor x, ConvOptions options = {}, const Named& named = {});
Tensor causal_conv1d(Tensor x, Tensor weight, CausalConvOptions options = {}, const Named& named = {});

// --- normalisation: the mode is set by the function
Results layer_norm(Tensor x, Tensor scale, Tensor bias, NormOptions options = {}, const Wanted& wanted = {});
Results rms_norm(Tensor x, Tensor scale, NormOptions options = {}, const Wanted& wanted = {});
Results batch_norm(Tensor x, Tensor scale, Tensor bias, NormOptions options = {}, const Named& named = {},
                   const Wanted& wanted = {});
Results norm(NormMode mode, Tensor x, NormOptions options = {}, const Named& named = {}, const Wanted& wanted = {});
Results norm_bwd(NormMode mode, Tensor x, Tensor dy, NormOptions options = {}, const Named& named = {},
                 const Wanted& wanted = {});

// --- softmax, attention, position
Results softmax(Tensor x, const Ints& axes = {-1}, const Named& named = {}, const Wanted& wanted = {});
Results log_softmax(Tensor x, const Ints& axes = {-1}, const Named& named = {}, const Wanted& wanted = {});
Results sdpa_fwd(Tensor q, Tensor k, Tensor v, SdpaOptions options = {}, const Named& named = {},
                 const Wanted& wanted = {});
Results sdpa_bwd(Tensor q, Tensor k, Tensor v, Tensor o, Tensor d_o, Tensor stats, SdpaOptions options = {},
                 const Named& named = {}, const Wanted& wanted = {});
Results cross_entropy(Tensor logits, Tensor target, CrossEntropyOptions options = {}, const Wanted& wanted = {});
Tensor rope(Tensor x, Tensor freqs, RopeOptions options = {});

// --- pooling, movement, random numbers, quantisation, recurrence
Results resample(Tensor x, ResampleOptions options, const Wanted& wanted = {});
Results max_pool(Tensor x, ResampleOptions options, const Wanted& wanted = {});
Tensor avg_pool(Tensor x, ResampleOptions options);  // padding counts; avg_pool_exclude of resample leaves it out
Tensor reshape(Tensor x, const Ints& size, ReshapeMode mode = ReshapeMode::logical);
Tensor transpose(Tensor x, const Ints& perm);
Tensor slice(Tensor x, SliceOptions options);
Tensor concat(const std::vector<Tensor>& inputs, int64_t axis);
Tensor gather(Tensor x, Tensor index, GatherOptions options = {});
Tensor embedding(Tensor table, Tensor ids);  // rows of the table
Tensor scatter_add(Tensor updates, Tensor index, ScatterAddOptions options = {}, const Named& named = {});
Results dropout(Tensor x, DropoutOptions options = {}, const Named& named = {}, const Wanted& wanted = {});
Results block_scale_quantize(Tensor x, BlockScaleOptions options = {});
Tensor block_scale_dequantize(Tensor x, Tensor scale, BlockScaleOptions options = {});
Results rnn_fwd(Tensor x, Tensor weight, RnnOptions options, const Named& named = {}, const Wanted& wanted = {});
Results ctc_loss(Tensor logits, Tensor labels, Tensor label_lengths, Tensor input_lengths, CtcOptions options = {},
                 const Wanted& wanted = {});

// --- gradients: adds the operations that compute the derivatives of `loss` to its graph and returns one tensor of them
// for each input. The loss has one element, or `seed` has its sizes (a vector-Jacobian product); see docs/gradient.md.
std::vector<Tensor> gradient(Tensor loss, const std::vector<Tensor>& inputs, Tensor seed = {});

}  // namespace tessera
