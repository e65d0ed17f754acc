// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "engines/reference/ops/list.hpp"
#include "engines/reference/random.hpp"

namespace tsr::ref {

template <class R>
void rng(const Context<R>& c) {
  const auto& o = c.template options<tessera::RngOptions>();
  Stream s = stream(c, 0, 1, o);
  Array<R> y(c.out_tensor(0).dims);
  for (int64_t i = 0; i < y.size(); ++i) {
    switch (o.distribution) {
      case tessera::Distribution::bernoulli:
        y[i] = s.bernoulli(i, o.p);
        break;
      case tessera::Distribution::uniform:
        y[i] = R(o.low) + R(o.high - o.low) * R(s.uniform(i));
        break;
      case tessera::Distribution::normal: {
        // Box and Muller: two uniform numbers make two normal ones.
        int64_t even = i & ~int64_t{1};
        R radius = std::sqrt(-2 * std::log(1 - R(s.uniform(even)))),
          angle = 2 * std::numbers::pi_v<R> * R(s.uniform(even + 1));
        y[i] = R(o.mean) + R(o.stddev) * radius * (i == even ? std::cos(angle) : std::sin(angle));
      }
    }
  }
  c.out(0, y);
}

TESSERA_REFERENCE(rng);

}  // namespace tsr::ref
