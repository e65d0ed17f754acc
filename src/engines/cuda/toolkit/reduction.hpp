// SPDX-License-Identifier: Apache-2.0
// What kernels leave of reductions behind products, and the kernels that join it (device/epilogue.cuh): two, where
// there is much.
#pragma once

#include "engines/cuda/toolkit/binder.hpp"
#include "engines/cuda/toolkit/epilogue.hpp"
#include "runtime/kernel.hpp"

namespace tsr::cuda {

// Pieces of one or several neighbouring results, the parts of each, and how many groups of both.
struct LeftParts {
  int64_t groups = 1, slots = 1, pieces = 1;
};

struct JoinPlan {
  LeftParts parts;
  int64_t chunks = 1;                    // to which slots are joined first; as many as slots: nothing is
  size_t left_bytes = 0, all_bytes = 0;  // what is left, and with what is joined first
  Grid first, last;

  bool twice() const { return chunks < parts.slots; }
  // Calls f("false" or "true", grid) for each kernel: whether it is the last one.
  template <class F>
  void each(const F& f) const {
    if (twice()) f("false", first);
    f("true", last);
  }
  dev::Parts args() const {
    return {nullptr, nullptr, parts.pieces, static_cast<int>(parts.slots), static_cast<int>(chunks)};
  }
};
// `bytes`: of a part.
JoinPlan plan_joins(const LeftParts& parts, dev::Reduced over, int64_t bytes);
// Also binds `field`, of the arguments of `to`: parts lie from byte `first` of the workspace on.
template <class Args>
JoinPlan plan_joins(const LeftParts& parts, dev::Reduced over, int64_t bytes, KernelArgs<Args>& to, dev::Parts& field,
                    size_t first = 0) {
  JoinPlan p = plan_joins(parts, over, bytes);
  field = p.args();
  to.workspace(field.left, first);
  to.workspace(field.joined, first + (p.twice() ? p.left_bytes : 0));
  return p;
}

// As device code names it.
std::string device_name(dev::Reduced over);

}  // namespace tsr::cuda
