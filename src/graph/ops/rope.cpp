// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: pairs of a head's elements are turned by angles that grow with the position.
#include "graph/ops/rope.hpp"
#include "graph/gradient.hpp"

#include "graph/ops/list.hpp"

namespace tsr {
namespace {

void backward(Gradient& g) {
  g.refuse(1, "angles count as constants");
  g.add(0, g.make(ops::rope_bwd, {g.d(), g.in(1)}, g.node().attrs));
}

}  // namespace

const OpSpec ops::rope = {
    .name = "rope",
    .family = Family::other,
    .in = {{"x"}, {"freqs"}},
    .out = {{"y"}},
    .defaults = tessera::RopeOptions{},
    .fields = rope_fields,
    .infer = rope_infer,
    .terms = rope_terms,
    .formula =
        "P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: y[P+k] = scale (x[P+k] c_k - x[P+r/2+k] "
        "s_k), "
        "y[P+r/2+k] = scale (x[P+r/2+k] c_k + x[P+k] s_k), the first P elements are multiplied by scale",
    .shapes =
        "x [b, h, s, d], freqs [1, 1, s, r] or [s, 1, 1, r] in radians (positions may be more, only r/2 columns are "
        "read) -> y as x; "
        "r = rope_dim or d, even; real types",
    .example = "x = input f32[2,3,5,8]\nfreqs = input f32[1,1,5,4]\ny = rope x freqs rope_dim=4\noutput y",
    .gradient = backward,
};

}  // namespace tsr
