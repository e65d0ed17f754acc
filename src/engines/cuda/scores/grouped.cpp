// SPDX-License-Identifier: Apache-2.0
#include "engines/cuda/scores/grouped.hpp"

namespace tsr::cuda {

using dev::attention::Pages;

Reason check_pieces(const Graph& g, const attention::Sequences& x, const char* name) {
  constexpr int64_t kElements = 8;
  const Tensor& t = g.tensor(x.id);
  auto no = [&](const auto&... text) { return Reason::no(name, " ", describe(t), ": ", text...); };
  if (x.dims[3] > 1 && x.strides[3] != 1) return no("elements of a row lie ", x.strides[3], " apart, not side by side");
  for (int i = 0; i < 3; ++i)
    if (x.dims[i] > 1 && x.strides[i] % kElements != 0)
      return no("stride ", x.strides[i], " of dimension ", i, " is no multiple of 16 bytes");
  if (x.offsets != kNone && x.multiplier % kElements != 0)
    return no("offsets count ", x.multiplier, " elements, no multiple of 16 bytes");
  if (t.stored && t.alignment < 16) return no("it is aligned to ", t.alignment, " bytes, not to 16");
  if (x.pages && x.dims[0] > 0x7fffffff) return no("it has ", x.dims[0], " pages, the limit is ", 0x7fffffff);
  return Reason::yes();
}

Pages pages_of(const attention::Problem& p) {
  auto odd = [](const attention::Sequences& x) { return x.pages && x.dims[2] % dev::attention::kWarpRows != 0; };
  if (!p.k.pages && !p.v.pages) return Pages::none;
  return odd(p.k) || odd(p.v) ? Pages::any : Pages::whole;
}

}  // namespace tsr::cuda
