// SPDX-License-Identifier: Apache-2.0
// The end of kernels whose results go through generated code (Epilogue of the toolkit): E holds its operands and
// numbers.
#pragma once

#include "device/memory.cuh"

namespace tsr::dev {

// Values that all elements share.
template <class C, class E>
typename C::Rows known_to_all(const E& e) {
  typename C::Rows r;
  i64 origin[C::kOperands + 1] = {};
  C::before(e, origin, r);
  return r;
}

// V values of the product, already what they count for; the code stores what becomes of them where `at` says.
template <class C, int V, class E, class L>
void finish_values(const E& e, const i64* at, const typename C::Rows& r, const L (&values)[V]) {
  typename C::Loaded x;
  typename C::Late late;
  typename C::Kept kept;
  typename C::Sums none;
#pragma unroll
  for (int v = 0; v < V; ++v) x.t0.v[v] = values[v];
  C::load(e, at, x);
  C::store(e, at, x, late, kept, r, none);
}

}  // namespace tsr::dev
