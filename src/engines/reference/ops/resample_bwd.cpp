// SPDX-License-Identifier: Apache-2.0
#include "engines/reference/ops/resample.hpp"
#include "graph/ops/slots.hpp"

namespace tsr::ref {

template <class R>
void resample_bwd(const Context<R>& c) {
  using tessera::ResampleOptions;
  using namespace slots::resample_bwd;
  const auto& options = c.template options<ResampleOptions>();
  Array<R> dy = c.in(kDy), dx(c.out_tensor(0).dims), x;
  Ints index;
  if (c.has(kIndex))
    index = c.integers(kIndex);
  else if (c.has(kX))
    x = c.in(kX);
  each_window(options, dx.dims, dy.dims,
              [&](int64_t plane, int64_t e, const std::vector<Tap>& taps, const ResampleOptions& o) {
                auto give = [&](const Tap& t, double weight) {
                  if (t.element >= 0 && weight != 0) dx[plane + t.element] += static_cast<R>(o.alpha * weight) * dy[e];
                };
                if (o.mode != tessera::ResampleMode::max_pool) {
                  for (const Tap& t : taps) give(t, t.weight);
                } else if (c.has(kIndex)) {
                  for (const Tap& t : taps)
                    if (t.position == index[static_cast<size_t>(e)]) give(t, 1);
                } else if (const Tap* best = largest_tap(o, x.data.data() + plane, taps)) {
                  give(*best, 1);
                }
              });
  c.out(0, dx);
}

TESSERA_REFERENCE(resample_bwd);

}  // namespace tsr::ref
