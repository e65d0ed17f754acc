// SPDX-License-Identifier: Apache-2.0
// The random stream of a node: seed and offset from input tensors where given, otherwise from its options.
#pragma once

#include "base/philox.hpp"
#include "engines/reference/context.hpp"

namespace tsr::ref {

struct Stream {
  uint64_t seed, offset;
  double uniform(int64_t i) const { return to_uniform(random_word(seed, offset, static_cast<uint64_t>(i))); }
  bool bernoulli(int64_t i, double p) const { return uniform(i) < p; }
};

template <class R, class Options>
Stream stream(const Context<R>& c, int seed_slot, int offset_slot, const Options& o) {
  return {static_cast<uint64_t>(c.template scalar<int64_t>(seed_slot, o.seed)),
          static_cast<uint64_t>(c.template scalar<int64_t>(offset_slot, o.offset))};
}

}  // namespace tsr::ref
