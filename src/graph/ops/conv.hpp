// SPDX-License-Identifier: Apache-2.0
// What the three convolutions share: x [n, c, ..], w [k, c / groups, ..] and y [n, k, ..] are tied together by
//   y[n, k, p] = sum over c, q of x[n, group(k) + c, p stride - pad + q dilation] w[k, c, q]
// The forward operation computes y, the others the gradients with respect to x (dgrad) and w (wgrad).
#pragma once

#include "graph/gradient.hpp"
#include "graph/op.hpp"

namespace tsr {

// The options with a value for every spatial dimension: stride and dilation default to 1, pad to 0, post_pad to pad.
tessera::ConvOptions with_defaults(const tessera::ConvOptions& o, int spatial);
// Number of groups that the sizes of x and w imply.
int64_t conv_groups(const Dims& x, const Dims& w);

void conv_fields(std::any& options, FieldVisitor& v);
// Checks the options themselves and that c is given exactly when beta asks for it. `c_slot` is the slot of c.
void check_conv_options(Infer& ctx, int spatial, int c_slot);
// Elements that the filter spans in spatial dimension i, after checking its size.
int64_t filter_reach(const Infer& ctx, int64_t taps, int64_t dilation, int i);
// Sizes of y, after checking that the filter fits into the padded input.
Dims conv_output(const Infer& ctx, const Dims& x, const Dims& w);
// Groups of an operation whose sizes leave them open: `declared` when the author gave the output, else the option,
// else 1.
int64_t open_groups(const Infer& ctx, std::optional<int64_t> declared);

// What the rules share: hands over the gradient of c; the options of the convolutions that give the others.
tessera::ConvOptions conv_gradient(Gradient& g, TensorId d, int c_slot);

double conv_flops(const Dims& y, const Dims& w);

}  // namespace tsr
