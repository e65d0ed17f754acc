// SPDX-License-Identifier: Apache-2.0
// Gradient of rotary position embedding: the same turns backwards.
#include "graph/ops/rope.hpp"

#include "graph/ops/list.hpp"

namespace tsr {

const OpSpec ops::rope_bwd = {
    .name = "rope_bwd",
    .family = Family::other,
    .in = {{"dy"}, {"freqs"}},
    .out = {{"dx"}},
    .defaults = tessera::RopeOptions{},
    .fields = rope_fields,
    .infer = rope_infer,
    .terms = rope_terms,
    .formula =
        "P = d - r, c_k = cos(freqs[s, k]), s_k = sin(freqs[s, k]), k < r/2: dx[P+k] = scale (dy[P+k] c_k + "
        "dy[P+r/2+k] s_k), "
        "dx[P+r/2+k] = scale (dy[P+r/2+k] c_k - dy[P+k] s_k), the first P elements are multiplied by scale",
    .shapes =
        "dy [b, h, s, d], freqs [1, 1, s, r] or [s, 1, 1, r] in radians (positions may be more, only r/2 columns are "
        "read) -> dx as dy; "
        "r = rope_dim or d, even; real types",
    .example = "dy = input f32[2,3,5,8]\nfreqs = input f32[1,1,5,4]\ndx = rope_bwd dy freqs rope_dim=4\noutput dx",
    .no_gradient = kSecondDerivative,
};

}  // namespace tsr
