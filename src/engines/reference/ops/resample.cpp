// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/resample.hpp"

namespace tsr::ref {

template <class R>
void resample(const Context<R>& c) {
  using tessera::ResampleOptions;
  const auto& options = c.template options<ResampleOptions>();
  Array<R> x = c.in(0), y(c.out_tensor(0).dims);
  Array<int64_t> index(y.dims);
  each_window(options, x.dims, y.dims,
              [&](int64_t plane, int64_t e, const std::vector<Tap>& taps, const ResampleOptions& o) {
                const R* values = x.data.data() + plane;
                R result = 0;
                if (o.mode == tessera::ResampleMode::max_pool) {
                  const Tap* best = largest_tap(o, values, taps);
                  if (best) result = tap_value(o, values, *best), index[e] = best->position;
                } else {
                  for (const Tap& t : taps)
                    if (t.weight != 0) result += static_cast<R>(t.weight) * tap_value(o, values, t);
                }
                y[e] = static_cast<R>(o.alpha) * result;
              });
  c.out(0, y);
  c.out(1, index);
}

TESSERA_REFERENCE(resample);

}  // namespace tsr::ref
