// SPDX-License-Identifier: Apache-2.0
// What resample and its gradient share. Output element o of a dimension looks at x from position s = o stride - pad on;
// windows, strides and padding are ratios, and all arithmetic with them is exact.
#pragma once

#include "graph/op.hpp"

namespace tsr {

// The options with a value for every spatial dimension and the padding that automatic stands for. The window defaults
// to 2 for bilinear and 1 otherwise, the stride to the window for pooling and 1 otherwise.
tessera::ResampleOptions with_defaults(const tessera::ResampleOptions& o, int spatial);

// The position s of output element o in dimension d, exactly.
Ratio resample_position(const tessera::ResampleOptions& o, int64_t element, int d);
// Positions of a window of pooling in dimension d: the most integers that [s, s + window) holds.
int64_t window_extent(const tessera::ResampleOptions& o, int d);

void resample_fields(std::any& options, FieldVisitor& v);
void check_resample_options(Infer& ctx, int spatial);
// Refuses ratios whose exact arithmetic would leave 64 bits for sizes up to `size` in dimension d.
void check_resample_range(const Infer& ctx, const tessera::ResampleOptions& o, int64_t size, int d);

}  // namespace tsr
